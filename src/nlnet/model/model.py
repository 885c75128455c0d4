"""A trained network with all one has to know about it; the models that come with nlnet."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from nlnet.atomic import write_atomically
from nlnet.errors import InputError, ModelError
from nlnet.model import file as model_file
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, check_parameters

_SUFFIX = ".safetensors"
_MIN_SIGMA = 0.1
"""On the 0-255 scale; with less noise, rounding to float32 is no longer small beside it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A network, the noise it was trained for, where it comes from and how good it is.

    Parameters
    ----------
    config : NetworkConfig
        The shape of the network.
    stages : tuple of StageParameters
        One a stage; checked against the config.
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


def load_model(name_or_path: str | os.PathLike[str]) -> Model:
    """Load a model by its shipped name, such as ``gray-5x5-s25``, or from a file.

    Loading is strict: a file is either exactly what :meth:`Model.save` writes, or an error.

    Parameters
    ----------
    name_or_path : str or path
        One of `shipped_models`, or the path of a model file; a string is a path if it ends with
        ``.safetensors`` or names something that exists.

    Returns
    -------
    Model
        Its weights are float32.

    Raises
    ------
    FileError
        If the file cannot be opened.
    ModelError
        If the name is unknown, or the file is not an intact model file of a known version.

    Examples
    --------
    >>> load_model("gray-9x9-s25")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    nlnet.errors.ModelError: Unknown model 'gray-9x9-s25'; ...
    """
    if isinstance(name_or_path, str):
        if name_or_path in shipped_models():
            return _load_shipped(name_or_path)
        if not _is_path(name_or_path):
            raise _no_such_model(name_or_path)
    return _load_file(name_or_path)


def select_model(name_or_path: str | os.PathLike[str], sigma: float) -> Model:
    """Load a model; of a family, such as ``gray-5x5``, the one trained nearest to `sigma`.

    Parameters
    ----------
    name_or_path : str or path
        The name of a family or of a shipped model, or the path of a model file.
    sigma : float
        Standard deviation of the noise on the 0-255 scale. Nearest means in log sigma; of two
        equally near models it is the one for less noise.

    Raises
    ------
    FileError, ModelError
        As `load_model`.
    InputError
        If sigma is not positive and finite.
    """
    family = [name for name in shipped_models() if family_of(name) == name_or_path]
    if not family:
        return load_model(name_or_path)
    if not 0 < sigma < math.inf:
        raise InputError(f"sigma is {sigma}, but must be positive and finite.")
    members = sorted((_load_shipped(name) for name in family), key=lambda model: model.sigma)
    return nearest_model(members, sigma)


def nearest_model(models: Iterable[Model], sigma: float) -> Model:
    """Return the model trained nearest to `sigma` in log sigma; the first of equals."""
    # The floor keeps the logarithm of a quotient that underflows finite.
    return min(
        models, key=lambda model: abs(math.log(max(sigma / model.sigma, sys.float_info.min)))
    )


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with nlnet, sorted."""
    folder = importlib.resources.files("nlnet.model") / "weights"
    if not folder.is_dir():
        return ()
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


@functools.cache
def _load_shipped(name: str) -> Model:
    resource = importlib.resources.files("nlnet.model") / "weights" / f"{name}{_SUFFIX}"
    with importlib.resources.as_file(resource) as path:
        return _load_file(path)


def _load_file(path: str | os.PathLike[str]) -> Model:
    try:
        header, stages = model_file.decode(path)
        return Model(
            config=header.config,
            stages=stages,
            sigma=header.sigma,
            name=header.name,
            provenance=header.provenance,
            figures=header.figures,
        )
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)!r} is not a usable model: {error}") from error


def family_of(name: str) -> str:
    """Return a shipped model's name without its sigma: gray-5x5 for gray-5x5-s25."""
    return re.sub(r"-s[\d.]+$", "", name)


def _is_path(text: str) -> bool:
    return text.endswith(_SUFFIX) or os.path.exists(text)


def _no_such_model(name: str) -> ModelError:
    shipped = shipped_models()
    members = [known for known in shipped if family_of(known) == name]
    if members:
        return ModelError(f"{name!r} is a family; name one of its models: {', '.join(members)}.")
    return ModelError(
        f"Unknown model {name!r}; the shipped ones are {', '.join(shipped) or 'none'}, "
        f"and the path of a {_SUFFIX} file works too."
    )
