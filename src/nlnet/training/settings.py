"""A training recipe: one strict TOML file per model."""

from __future__ import annotations

import dataclasses
import os
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from nlnet.config import NetworkConfig
from nlnet.errors import FileError, InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """What the crops are: their side, how many, and whether each epoch draws new ones.

    Greedy training always keeps its crops, for it computes every stage's inputs only once.
    """

    crop: int = 128
    crops: int = 400
    fresh: bool = True
    augment: bool = True


@dataclasses.dataclass(frozen=True)
class PhaseSettings:
    """How one phase is optimised.

    With L-BFGS every step sees all crops, and an epoch is one step of five iterations. Rates
    apply to Adam: one for the mixtures and the filters, one for group weights and step sizes; both
    decay along a cosine to `final_rate` of where they began. `average` is the decay of a running
    average of the parameters, 0 for none.
    """

    optimizer: Literal["adam", "lbfgs"] = "adam"
    epochs: int = 10
    batch: int = 16
    rate: float = 0.01
    scalar_rate: float = 0.005
    final_rate: float = 0.01
    average: float = 0.0


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """A whole recipe.

    `validate_every` counts epochs. `start` names a model, shipped or a file, that joint training
    begins with instead of greedy training; its mixtures are rescaled from its sigma to this one.
    """

    name: str
    sigma: float
    seed: int = 0
    start: str | None = None
    validate_every: int = 1
    checkpoint_minutes: float = 2.0
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    data: DataSettings = dataclasses.field(default_factory=DataSettings)
    greedy: PhaseSettings = dataclasses.field(default_factory=PhaseSettings)
    joint: PhaseSettings = dataclasses.field(default_factory=PhaseSettings)

    def __post_init__(self) -> None:
        positive = {
            "sigma": self.sigma,
            "validate_every": self.validate_every,
            "checkpoint_minutes": self.checkpoint_minutes,
            "data.crop": self.data.crop,
            "data.crops": self.data.crops,
        }
        for phase in ("greedy", "joint"):
            settings: PhaseSettings = getattr(self, phase)
            positive[f"{phase}.batch"] = settings.batch
            positive[f"{phase}.rate"] = settings.rate
            positive[f"{phase}.scalar_rate"] = settings.scalar_rate
            if not 0 <= settings.average < 1:
                raise InputError(f"{phase}.average is {settings.average}, but must be in [0, 1).")
            if settings.epochs < 0:
                raise InputError(f"{phase}.epochs is {settings.epochs}, but must not be negative.")
        for name, value in positive.items():
            if not value > 0:
                raise InputError(f"{name} is {value}, but must be above 0.")

    def to_mapping(self) -> dict[str, Any]:
        """Return the recipe as plain values."""
        return dataclasses.asdict(self)


def read_settings(path: str | os.PathLike[str]) -> TrainingSettings:
    """Read a recipe; a typo, a wrong type or a missing value is an error of one sentence."""
    try:
        text = Path(path).read_bytes().decode()
    except OSError as error:
        raise FileError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not a text file.") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{str(path)!r} is not valid TOML: {error}.") from error
    return settings_from_mapping(values)


def settings_from_mapping(values: Mapping[str, Any]) -> TrainingSettings:
    """Build a recipe from plain values, as :meth:`TrainingSettings.to_mapping` gives them."""
    settings: TrainingSettings = _build(TrainingSettings, values, "")
    return settings


def _build(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    """Make a settings dataclass of a table, checking every key and type."""
    if kind is NetworkConfig:
        return NetworkConfig.from_mapping(values)
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise InputError(
            f"Unknown setting {where + unknown[0]!r}; the known ones are "
            f"{', '.join(where + name for name in hints)}."
        )
    needed = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in needed if name not in values]
    if missing:
        raise InputError(f"The setting {where + missing[0]!r} is missing.")
    return kind(
        **{name: _convert(hints[name], value, where + name) for name, value in values.items()}
    )


def _convert(hint: Any, value: Any, name: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise InputError(f"The setting {name!r} must be a table.")
        return _build(hint, value, f"{name}.")
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            choices = " or ".join(map(repr, typing.get_args(hint)))
            raise InputError(f"The setting {name!r} is {value!r}, but must be {choices}.")
        return value
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if float in kinds and type(value) is int:
        return float(value)
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not types.NoneType)
        raise InputError(f"The setting {name!r} is {value!r}, but must be of type {wanted}.")
    return value
