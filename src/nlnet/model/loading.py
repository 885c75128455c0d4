"""Models by their names: those that come with nlnet, and which of a family fits the noise."""

import functools
import math
import os
import re
import sys
from pathlib import Path

from nlnet.defaults import FAMILIES, FAST, QUALITIES
from nlnet.errors import InputError, ModelError
from nlnet.inputs import KINDS, check_sigma
from nlnet.model.family import Family
from nlnet.model.file import load_file
from nlnet.model.model import Model, Trained

AUTO = "auto"
"""Stands for the model that fits the image, and the quality that is asked for."""

ModelLike = str | os.PathLike[str] | Model | Family
"""What users may give as a model: a name, a path, or a loaded one."""

_WEIGHTS = Path(__file__).with_name("weights")
_SUFFIX = ".safetensors"


def load_model(name_or_path: str | os.PathLike[str]) -> Model | Family:
    """Load a model by its shipped name, such as ``gray-5x5-s25``, or from a file.

    Loading is strict: a file is either exactly what :meth:`Model.save` writes, or an error.

    Parameters
    ----------
    name_or_path : str or path
        One of `shipped_models`, or the path of a model file; a string is a path if it ends with
        ``.safetensors`` or names something that exists.

    Returns
    -------
    Model or Family
        A model for one sigma, or one for every sigma, whose method `at` gives that for one. Their
        weights are float32.

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
        if not (name_or_path.endswith(_SUFFIX) or os.path.exists(name_or_path)):
            raise _no_such_model(name_or_path)
    return load_file(name_or_path)


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
    if not family or family == [name_or_path]:
        return load_model(name_or_path).at(sigma)
    check_sigma(sigma, math.inf)
    trained_for = {name: float(name.removeprefix(f"{name_or_path}-s")) for name in family}
    names = sorted(trained_for, key=trained_for.__getitem__)
    nearest = min(names, key=lambda name: distance(trained_for[name], sigma))
    return load_model(nearest).at(sigma)


def distance(trained_for: float, sigma: float) -> float:
    """Return how far noise is from that of a training, in log sigma."""
    # The floor keeps the logarithm of a quotient that underflows finite.
    return abs(math.log(max(sigma / trained_for, sys.float_info.min)))


def distance_from(model: Model | Family, sigma: float) -> float:
    """Return how far noise is, in log sigma, from what a model is for; 0 if it is for every one."""
    return distance(model.sigma, sigma) if isinstance(model, Model) else 0.0


def check_quality(quality: object, model: object) -> None:
    """Raise InputError unless the quality is known, and left to choose the model.

    Examples
    --------
    >>> check_quality("best", AUTO)
    >>> check_quality("best", "gray-5x5")
    Traceback (most recent call last):
    nlnet.errors.InputError: Both the model 'gray-5x5' and the quality 'best' are given, but ...
    """
    if quality is None:
        return
    if not isinstance(quality, str) or quality not in QUALITIES:
        raise InputError(f"quality is {quality!r}, but must be one of {', '.join(QUALITIES)}.")
    if not isinstance(model, str) or model != AUTO:
        given = model.name if isinstance(model, Trained) else str(model)
        raise InputError(
            f"Both the model {given!r} and the quality {quality!r} are given, but the quality "
            "only chooses a model if none is named."
        )


def choose_model(
    model: ModelLike, channels: int, sigma: float, quality: str | None = None
) -> Model:
    """Return the model that a user asks for, if it is made for that number of channels.

    Parameters
    ----------
    model : str, path or Model
        As for `select_model`, a loaded model, or ``"auto"`` for the family that fits the channels.
    channels : int
        Those of the image: 1 or 3.
    sigma : float
        Standard deviation of its noise on the 0-255 scale.
    quality : str, optional
        One of `QUALITIES`, for ``"auto"``.

    Raises
    ------
    FileError, InputError, ModelError
        As `select_model`, or if the model is made for other images.
    """
    if isinstance(model, Trained):
        chosen = model.at(sigma)
    elif isinstance(model, (str, os.PathLike)):
        named = FAMILIES[quality or FAST][channels] if model == AUTO else model
        chosen = select_model(named, sigma)
    else:
        raise ModelError(f"model is {model!r}, but must be a name, a path or a Model.")
    if chosen.config.channels != channels:
        raise ModelError(
            f"The model {chosen.name!r} is made for {KINDS[chosen.config.channels]} images, "
            f"but this image is {KINDS[channels]}."
        )
    return chosen


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that come with nlnet, sorted."""
    return _names_in(_WEIGHTS)


@functools.cache
def _names_in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob(f"*{_SUFFIX}")))


@functools.cache
def _load_shipped(name: str) -> Model | Family:
    return load_file(_WEIGHTS / f"{name}{_SUFFIX}")


def family_of(name: str) -> str:
    """Return a shipped model's name without its sigma: gray-5x5 for gray-5x5-s25."""
    return re.sub(r"-s[\d.]+$", "", name)


def _no_such_model(name: str) -> ModelError:
    shipped = shipped_models()
    members = [known for known in shipped if family_of(known) == name]
    if members:
        return ModelError(f"{name!r} is a family; name one of its models: {', '.join(members)}.")
    return ModelError(
        f"Unknown model {name!r}; the shipped ones are {', '.join(shipped) or 'none'}, "
        f"and the path of a {_SUFFIX} file works too."
    )
