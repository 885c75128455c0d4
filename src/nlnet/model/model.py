"""A trained network with its noise level, its origin and its measured quality."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

from nlnet.atomic import write_atomically
from nlnet.errors import ModelError
from nlnet.model import file as model_file
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, check_parameters
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement, RefinementFunctions

_MIN_SIGMA = 0.1
"""On the 0-255 scale; with less noise, the rounding of float32 would no longer be small."""


class Trained:
    """What a model for one sigma and one for every sigma have in common."""

    config: NetworkConfig
    sigma: float
    sigmas: tuple[float, ...]
    sets: tuple[tuple[StageParameters, ...], ...]
    name: str
    provenance: Mapping[str, Any]
    figures: Mapping[str, Any]
    refinement: Refinement | RefinementFunctions | None

    def __post_init__(self) -> None:
        """Raise ModelError unless its parts fit together."""
        config, refinement = self.config, self.refinement
        check_name(self.name)
        if (refinement and refinement.config) != config.refinement:
            raise ModelError("Its refinement is not the one that its config says.")
        if refinement is not None and refinement.channels != config.channels:
            raise ModelError(
                f"Its refinement is for {refinement.channels} channels, but its stages for "
                f"{config.channels}."
            )
        for stages in self.sets:
            check_parameters(stages, config)

    @property
    def parameter_count(self) -> int:
        """Number of learned values."""
        config = self.config
        refinement = config.refinement and config.refinement.parameter_count(config.channels)
        return len(self.sets) * config.parameter_count + (refinement or 0)

    @property
    def noise(self) -> str:
        """What noise it is for, in a word."""
        return "-".join(f"{each:g}" for each in (self.sigmas[:1] + self.sigmas[-1:]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __str__(self) -> str:
        config = self.config
        return (
            f"{self.name}: {'gray' if config.channels == 1 else 'color'}, "
            f"sigma {self.noise}, {config.stages} stages, "
            f"{config.patch_size}x{config.patch_size} patches, "
            f"{'' if config.refinement is None else 'a refinement, '}"
            f"{self.parameter_count:,} parameters"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file, whole or not at all.

        The weights are stored in float32, or what `nlnet.model.file` says of a model with a
        refinement; the same model always gives the same bytes.

        Raises
        ------
        FileError
            If the file cannot be written.
        ModelError
            If name, provenance or figures are not plain values, or there is a refinement for one
            sigma: only that of a family can be kept.
        """
        if isinstance(self.refinement, Refinement):
            raise ModelError("It has a refinement for one sigma; save the family that it is of.")
        facts = (self.config, self.provenance, self.figures, self.sigmas)
        sigma = REFERENCE_SIGMA if self.sigmas else float(self.sigma)
        header = model_file.Header(self.name, sigma, *facts)
        write_atomically(path, model_file.encode(header, self.sets, self.refinement))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Model(Trained):
    """A network, the noise it was trained for, where it comes from and how good it is.

    Parameters
    ----------
    config : NetworkConfig
        The shape of the network.
    stages : tuple of StageParameters
        One for each stage; checked against the config.
    sigma : float
        Standard deviation of the noise it was trained for, on the 0-255 scale.
    name : str
        What tables call it.
    provenance : mapping
        Plain values that say where it comes from: data, recipe, seed, commit, licence.
    figures : mapping
        Plain values that were measured with it, such as its PSNR on a test set.
    refinement : Refinement, optional
        Runs after the stages; the config has its sizes.

    Examples
    --------
    >>> from nlnet.network.parameters import initial_parameters
    >>> config = NetworkConfig()
    >>> print(Model(config, initial_parameters(config), sigma=25, name="untrained"))
    untrained: gray, sigma 25, 5 stages, 5x5 patches, 6,645 parameters
    """

    config: NetworkConfig
    stages: tuple[StageParameters, ...]
    sigma: float
    name: str
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    refinement: Refinement | None = None

    def __post_init__(self) -> None:
        if not _MIN_SIGMA <= self.sigma <= 255:
            raise ModelError(f"Its sigma is {self.sigma}, but must be from {_MIN_SIGMA} to 255.")
        super().__post_init__()

    @property
    def sigmas(self) -> tuple[float, ...]:  # type: ignore[override]
        """None: its values are no functions of sigma."""
        return ()

    @property
    def sets(self) -> tuple[tuple[StageParameters, ...], ...]:  # type: ignore[override]
        """Its values, as one set."""
        return (self.stages,)

    @property
    def noise(self) -> str:
        """What noise it is for, in a word."""
        return f"{self.sigma:g}"

    def at(self, sigma: float) -> Model:
        """Return the model itself: it is for one sigma, to which images are scaled."""
        return self

    def without_refinement(self) -> Model:
        """Return the model without its refinement; the model itself, if it has none."""
        if self.refinement is None:
            return self
        config = dataclasses.replace(self.config, refinement=None)
        return dataclasses.replace(self, config=config, refinement=None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read what :meth:`save` wrote; its weights are float32.

        Raises
        ------
        FileError
            If the file cannot be opened.
        ModelError
            If it is not an intact model file of a known version.
        """
        with naming_file(path):
            header, sets, _ = model_file.decode(path)
            if header.sigmas:
                raise ModelError("It is for every sigma; nlnet.load_model loads it.")
            facts = (header.sigma, header.name, header.provenance, header.figures)
            return cls(header.config, sets[0], *facts)


@contextlib.contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of a model file name it."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)!r} is not a usable model: {error}") from error


def check_name(name: str) -> None:
    """Raise ModelError unless a model may have this name."""
    if not name:
        raise ModelError("A model must have a name, but got an empty one.")
    # Names are printed: control characters would reach the terminal.
    if not name.isprintable() or name != name.strip():
        raise ModelError(f"Its name is {name!a}, but must be printable, without spaces around it.")
