"""A trained network with its noise level, its origin and its measured quality."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from nlnet.atomic import write_atomically
from nlnet.errors import ModelError
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, check_parameters
from nlnet.network.refinement import Refinement

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
    refinement: Refinement | None

    def __post_init__(self) -> None:
        """Raise ModelError unless its parts fit together."""
        config, refinement = self.config, self.refinement
        if not self.name:
            raise ModelError("A model must have a name, but got an empty one.")
        # Names are printed: control characters would reach the terminal.
        if not self.name.isprintable() or self.name != self.name.strip():
            raise ModelError(
                f"Its name is {self.name!a}, but must be printable, without spaces around it."
            )
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
        ends = (self.sigmas[0], self.sigmas[-1]) if self.sigmas else (self.sigma,)
        return "-".join(f"{sigma:g}" for sigma in ends)

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
        from nlnet.model.file import encode  # which knows all kinds of models

        write_atomically(path, encode(self))


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

    def at(self, sigma: float) -> Model:
        """Return the model itself: it is for one sigma, to which images are scaled."""
        return self

    def without_refinement(self) -> Model:
        """Return the model without its refinement; the model itself, if it has none."""
        if self.refinement is None:
            return self
        config = dataclasses.replace(self.config, refinement=None)
        return dataclasses.replace(self, config=config, refinement=None)
