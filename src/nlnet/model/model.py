"""A trained network with its noise level, its origin and its measured quality."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from nlnet.atomic import write_atomically
from nlnet.errors import ModelError
from nlnet.model import file as model_file
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, check_parameters

_MIN_SIGMA = 0.1
"""On the 0-255 scale; with less noise, the rounding of float32 would no longer be small."""


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
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

    def __post_init__(self) -> None:
        if not self.name:
            raise ModelError("A model must have a name, but got an empty one.")
        # Names are printed: control characters would reach the terminal.
        if not self.name.isprintable() or self.name != self.name.strip():
            raise ModelError(
                f"Its name is {self.name!a}, but must be printable, without spaces around it."
            )
        if not _MIN_SIGMA <= self.sigma <= 255:
            raise ModelError(f"Its sigma is {self.sigma}, but must be from {_MIN_SIGMA} to 255.")
        check_parameters(self.stages, self.config)

    @property
    def parameter_count(self) -> int:
        """Number of learned values."""
        return self.config.parameter_count

    def __str__(self) -> str:
        config = self.config
        return (
            f"{self.name}: {'gray' if config.channels == 1 else 'color'}, sigma {self.sigma:g}, "
            f"{config.stages} stages, {config.patch_size}x{config.patch_size} patches, "
            f"{self.parameter_count:,} parameters"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one safetensors file, whole or not at all.

        The weights are stored in float32; the same model always gives the same bytes.

        Raises
        ------
        FileError
            If the file cannot be written.
        ModelError
            If name, provenance or figures are not plain values.
        """
        header = model_file.Header(
            self.name, float(self.sigma), self.config, self.provenance, self.figures
        )
        write_atomically(path, model_file.encode(header, self.stages))

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
        try:
            header, stages = model_file.decode(path)
            return cls(stages=stages, **vars(header))
        except ModelError as error:
            raise ModelError(f"{os.fspath(path)!r} is not a usable model: {error}") from error
