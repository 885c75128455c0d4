"""A training recipe: one strict TOML file per model."""

import dataclasses
import math
import operator
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nlnet.errors import InputError, trying
from nlnet.model.family import SIGMAS_WANTED, are_sigmas
from nlnet.network.config import NetworkConfig
from nlnet.strict import build

VALIDATION_SIGMAS = (5.0, 15.0, 25.0, 50.0)
"""The noise that models for every sigma are validated with."""

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


Rule = tuple[str, bool, str]
"""The name of a setting, whether it can be used, and what it must be."""


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """What the crops are: their noise, side and number, and whether each epoch draws new ones.

    Noise is "white", of the recipe's sigmas; or that of "pairs" of clean and noisy files; or
    "simulated", as cameras, films and microscopes have it. `folders` are those of the data folder
    that are trained on. Greedy training and L-BFGS always keep their crops. `source` and `terms`
    say what the images are and how they may be used; they go into the model file.
    """

    noise: Literal["white", "pairs", "simulated"] = "white"
    folders: tuple[str, ...] = ("train",)
    crop: int = 128
    crops: int = 400
    fresh: bool = True
    augment: bool = True
    source: str = dataclasses.field(default="", compare=False)
    terms: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class PhaseSettings:
    """How one phase is optimized.

    With Adam, an epoch sees all crops in steps of `batch`. It has two rates, one for the mixtures
    and filters, one for group weights and step sizes; both decay along a cosine to `final_rate` of
    where they began. With L-BFGS, an epoch is one iteration on all crops; `batch` is how many of
    them are in memory at once. `average` is the decay of a running average of the parameters, 0 for
    none. Muon, for refinements, takes steps of the same length in all directions of a convolution's
    weights, with `rate`; all else it leaves to Adam, with `scalar_rate`.
    """

    optimizer: Literal["adam", "lbfgs", "muon"] = "adam"
    epochs: int = 10
    batch: int = 16
    rate: float = 0.01
    scalar_rate: float = 0.005
    final_rate: float = 0.01
    average: float = 0.0

    def rules(self) -> Iterator[Rule]:
        """Yield what its numbers must be."""
        yield "epochs", self.epochs >= 0, "at least 0"
        yield "batch", self.batch >= 1, "at least 1"
        yield "rate", 0 < self.rate < math.inf, "above 0 and finite"
        yield "scalar_rate", 0 < self.scalar_rate < math.inf, "above 0 and finite"
        yield "final_rate", 0 <= self.final_rate <= 1, "from 0 to 1"
        yield "average", 0 <= self.average < 1, "at least 0 and below 1"


@dataclasses.dataclass(frozen=True)
class RefinementSettings(PhaseSettings):
    """How the refinement is optimized, with the stages as they are.

    It begins as that of the model `start`, if one is named. Every crop has noise of its own: half
    of them of a sigma between the two of `often`, if given. A step sees `batch` pieces of side
    `cut`; each set of crops serves `reuse` epochs. `bfloat16` computes its layers in
    bfloat16, in half the time on a CPU that has it (AVX-512 BF16, AMX).
    """

    optimizer: Literal["adam", "lbfgs", "muon"] = "muon"
    epochs: int = 0
    start: str | None = None
    cut: int = 96
    reuse: int = 8
    often: tuple[float, ...] = ()
    bfloat16: bool = False

    def rules(self) -> Iterator[Rule]:
        """Yield what its numbers must be."""
        yield from super().rules()
        yield "optimizer", self.optimizer == "muon", "muon"
        yield "cut", self.cut >= 1, "at least 1"
        yield "reuse", self.reuse >= 1, "at least 1"
        pair = not self.often or (len(self.often) == 2 and are_sigmas(self.often))
        yield "often", pair, "two, ascending, above 0 and at most 255"


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """A whole recipe.

    A recipe is for one `sigma`, or for every sigma: then `sigmas` says at which of them the learned
    values are given, and each step draws its own sigma between the first and the last.
    `validate_every` counts epochs. `start` names a model, shipped or a file, that joint training
    begins with instead of greedy training; its mixtures are rescaled from its sigma to this one.
    `backend` says what computes the stages: "plain" torch operations are slow, and easy to change.
    Two recipes are equal if they train the same model: how often checkpoints are saved, and what
    the model file says of data and licence, may differ.
    """

    name: str
    sigma: float | None = None
    sigmas: tuple[float, ...] = ()
    seed: int = 0
    start: str | None = None
    precision: Literal["float32", "float64"] = "float32"
    backend: Literal["auto", "engine", "plain"] = "auto"
    validate_every: int = 1
    checkpoint_minutes: float = dataclasses.field(default=2.0, compare=False)
    licence: str = dataclasses.field(default="", compare=False)
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    data: DataSettings = dataclasses.field(default_factory=DataSettings)
    greedy: PhaseSettings = dataclasses.field(default_factory=PhaseSettings)
    joint: PhaseSettings = dataclasses.field(default_factory=PhaseSettings)
    refinement: RefinementSettings = dataclasses.field(default_factory=RefinementSettings)

    def __post_init__(self) -> None:
        for name, holds, wanted in self._rules():
            if not holds:
                value = operator.attrgetter(name)(self)
                raise InputError(f"The setting {name!r} is {value!r}, but must be {wanted}.")

    def to_mapping(self) -> dict[str, Any]:
        """Return the recipe as plain values."""
        return {**dataclasses.asdict(self), "network": self.network.to_mapping()}

    def _rules(self) -> Iterator[Rule]:
        yield "name", bool(self.name), "a word"
        yield from self._sigma_rules()
        yield "seed", self.seed >= 0, "at least 0"
        yield "validate_every", self.validate_every >= 1, "at least 1"
        yield "checkpoint_minutes", 0 <= self.checkpoint_minutes < math.inf, "at least 0 and finite"
        patch = self.network.patch_size
        yield "data.crop", self.data.crop >= patch, f"at least the patch's {patch}"
        yield "data.folders", bool(self.data.folders), "one or more"
        yield "data.crops", self.data.crops >= 1, "at least 1"
        for phase in ("greedy", "joint", "refinement"):
            for name, holds, wanted in getattr(self, phase).rules():
                yield f"{phase}.{name}", holds, wanted
        yield "greedy.optimizer", self.greedy.optimizer != "muon", "adam or lbfgs"
        yield "joint.optimizer", self.joint.optimizer != "muon", "adam or lbfgs"
        yield from self._refinement_rules()
        epochs = self.joint.epochs + self.refinement.epochs
        if self.start is None and epochs == 0:
            epochs = self.greedy.epochs
        yield "joint.epochs", epochs >= 1, "at least 1, for nothing else is trained"

    def _refinement_rules(self) -> Iterator[Rule]:
        sizes, cut, crop = self.network.refinement, self.refinement.cut, self.data.crop
        fits = (self.refinement.epochs > 0) == (sizes is not None)
        yield "refinement.epochs", fits, "above 0 just where the network has a refinement"
        if sizes is not None:
            yield "sigmas", bool(self.sigmas), "given, for a refinement"
            fits = cut % sizes.unit == 0 and cut <= crop
            wanted = f"a multiple of {sizes.unit}, at most the crop's {crop}"
            yield "refinement.cut", fits, wanted
            yield "precision", self.precision == "float32", "float32, for a refinement"

    def _sigma_rules(self) -> Iterator[Rule]:
        if self.sigma is not None:
            yield "sigma", 0 < self.sigma <= 255, "above 0 and at most 255"
            yield "sigmas", not self.sigmas, "left out beside sigma"
            return
        yield "sigma", bool(self.sigmas), "given, or sigmas"
        yield "sigmas", are_sigmas(self.sigmas), SIGMAS_WANTED
        yield "start", self.start is not None, "a model, for sigmas"
        adam = self.joint.optimizer == "adam" and self.data.fresh
        yield "joint.optimizer", adam, "adam on fresh crops, for sigmas"

    @property
    def last_phase(self) -> int:
        """The number of the last phase: stages are counted first, then joint training."""
        return self.network.stages + (0 if self.network.refinement is None else 1)

    @property
    def validation_sigmas(self) -> tuple[float, ...]:
        """The sigmas that each image is validated with; a single 0 if images come with noise."""
        if self.data.noise != "white":
            return (0.0,)
        return VALIDATION_SIGMAS if self.sigma is None else (self.sigma,)

    def draw_sigma(self, epoch: int, step: int, often: Sequence[float] = ()) -> float:
        """Return the noise of a step: the recipe's, or one drawn evenly in log sigma.

        Half of them are drawn between the two of `often`, if given.
        """
        if self.sigma is not None:
            return self.sigma
        rng = np.random.default_rng((self.seed, epoch, step, 1))
        share = rng.uniform()
        ends = often if often and rng.uniform() < 0.5 else self.sigmas
        return float(ends[0] * (ends[-1] / ends[0]) ** share)


def read_settings(path: str | os.PathLike[str]) -> TrainingSettings:
    """Read a recipe; a typo, a wrong type or a missing value is an error of one sentence."""
    with trying(f"read {str(path)!r}"):
        text = Path(path).read_text(encoding="utf-8")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{str(path)!r} is not valid TOML: {error}.") from error
    return settings_from_mapping(values)


def settings_from_mapping(values: Mapping[str, Any]) -> TrainingSettings:
    """Build a recipe from plain values, as :meth:`TrainingSettings.to_mapping` gives them."""
    return build(TrainingSettings, values)


def first_difference(ours: Any, theirs: Any, where: str = "") -> str | None:
    """Say, in words, in which setting two recipes differ first; None if they are equal."""
    for field in dataclasses.fields(ours):
        here, there = getattr(ours, field.name), getattr(theirs, field.name)
        if not field.compare or here == there:
            continue
        name = where + field.name
        if dataclasses.is_dataclass(here):
            return first_difference(here, there, f"{name}.")
        return f"{name!r} is {here!r} and was {there!r}"
    return None
