"""Checkpoints: everything that a run needs to continue as if it had never stopped."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import torch

from nlnet.atomic import write_atomically
from nlnet.errors import ModelError, NLNetError, trying
from nlnet.training.settings import TrainingSettings, settings_from_mapping

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
