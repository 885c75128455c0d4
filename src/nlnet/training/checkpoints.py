"""Checkpoints: everything that a run needs to continue as if it had never stopped."""

import dataclasses
import io
from pathlib import Path
from typing import Any

import torch

from nlnet.atomic import write_atomically
from nlnet.errors import ModelError, NLNetError, trying
from nlnet.model.loading import select_model
from nlnet.network.refinement import REFERENCE_SIGMA
from nlnet.training.settings import PhaseSettings, TrainingSettings, settings_from_mapping

FILE_NAME = "checkpoint.pt"
_VERSION = 1


@dataclasses.dataclass
class RunProgress:
    """How far a run has come.

    `phase` is the number of the phase: the stages of greedy training are counted from 0, then come
    joint training and refinement. `epoch` counts the phase's epochs that are done, and `step` the
    steps of the present epoch, whose losses add up to `loss_sum`. `pixels` counts what all steps
    saw, and `log_lines` the lines of the log. `earlier` says how the models that the run began with
    were trained.
    """

    phase: int = 0
    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    pixels: int = 0
    log_lines: int = 0
    best_psnr: float | None = None
    earlier: list[dict[str, Any]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Checkpoint:
    """A moment of a run: its recipe, its progress, the network, and the phase it is in.

    `phase` holds the optimizer and the running average; None at the beginning of a phase.
    """

    settings: TrainingSettings
    progress: RunProgress
    network: dict[str, Any]
    phase: dict[str, Any] | None

    def save(self, run: Path) -> None:
        """Write the checkpoint of a run, replacing the last one only once this one is whole."""
        plain = {"settings": self.settings.to_mapping(), "progress": vars(self.progress)}
        buffer = io.BytesIO()
        torch.save({"version": _VERSION, **vars(self), **plain}, buffer)
        write_atomically(run / FILE_NAME, buffer.getvalue())


def load_checkpoint(run: Path) -> Checkpoint:
    """Read the checkpoint of a run; its tensors are on the CPU.

    Raises
    ------
    FileError
        If there is none, or it cannot be read.
    ModelError
        If it is damaged, or of another version.
    """
    path = run / FILE_NAME
    with trying(f"read the checkpoint {str(path)!r}"):
        content = path.read_bytes()
    try:
        held = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        version = held["version"]
        if version == _VERSION:
            settings = settings_from_mapping(held["settings"])
            progress = RunProgress(**held["progress"])
            return Checkpoint(settings, progress, held["network"], held["phase"])
    except NLNetError:
        raise
    except Exception as error:  # torch raises many kinds for a file that is not its own
        raise ModelError(f"{str(path)!r} is damaged, or not a checkpoint of nlnet.") from error
    raise ModelError(
        f"{str(path)!r} is a checkpoint of version {version!r}, but this nlnet reads {_VERSION}."
    )


_UNITS = {"adam": "epochs of Adam", "lbfgs": "iterations of L-BFGS", "muon": "epochs of Muon"}
"""What an epoch is with each optimizer."""

_FACTS = ("recipe", "data", "seconds", "megapixels")
"""What is told of a model that another one begins with."""


def earlier(settings: TrainingSettings) -> list[dict[str, Any]]:
    """Return how the models that a recipe begins with were trained, in the order of training."""
    found: list[dict[str, Any]] = []
    for name in (settings.start, settings.refinement.start):
        if name is None:
            continue
        told = select_model(name, settings.sigma or REFERENCE_SIGMA).provenance
        facts = {key: told[key] for key in _FACTS if key in told}
        for entry in (*told.get("earlier", ()), {"name": name, **facts}):
            if entry not in found:
                found.append(entry)
    return found


def summarize(settings: TrainingSettings) -> str:
    """Say in one line how a recipe trains."""
    side = f"{settings.data.crop}x{settings.data.crop}"
    fresh = settings.data.fresh and settings.joint.optimizer == "adam"
    crops = f"{settings.data.crops} {'fresh ' if fresh else ''}crops of {side}"
    steps = []
    if settings.start is not None:
        steps.append(f"from {settings.start}")
    elif settings.greedy.epochs:
        steps.append(f"{_count(settings.greedy)} per stage")
    if settings.joint.epochs:
        steps.append(f"{_count(settings.joint)} jointly")
    if settings.refinement.epochs:
        begun = settings.refinement.start
        after = "" if begun is None else f" from that of {begun} on"
        steps.append(f"{_count(settings.refinement)} for the refinement{after}")
    return f"{', '.join(steps)}, {crops}"


def _count(phase: PhaseSettings) -> str:
    return f"{phase.epochs} {_UNITS[phase.optimizer]}"
