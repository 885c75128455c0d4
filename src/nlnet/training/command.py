"""``nlnet train`` and ``python -m nlnet.training``: read the recipe and the data, and run."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import torch

from nlnet.errors import FileError, InputError
from nlnet.evaluate import read_ids
from nlnet.training import checkpoints
from nlnet.training.data import TRAINING_FOLDERS, VALIDATION_FOLDER, load_images
from nlnet.training.settings import TrainingSettings, read_settings
from nlnet.training.team import Team
from nlnet.training.trainer import Trainer


def run_training(
    config: Path,
    data: Path,
    run: Path,
    *,
    resume: bool = False,
    threads: int | None = None,
    device: str = "cpu",
    exclude: Path | None = None,
) -> bool:
    """Train a model by the recipe in `config`; return False if a signal ended it early.

    Parameters
    ----------
    config : Path
        The recipe, a TOML file.
    data : Path
        Folder with ``train/`` and ``test/``, which are trained on, and ``val/``.
    run : Path
        Folder for the results; it must not hold a run already, unless `resume` goes on with it.
    exclude : Path, optional
        File with the ids of images in ``val/`` that are for the final test only.
    """
    settings = read_settings(config)
    checkpoint = _open_run(run, settings, resume=resume)
    skip = read_ids(exclude) if exclude else frozenset()
    channels = settings.network.channels
    training = [
        picture for name in TRAINING_FOLDERS for picture in load_images(data / name, channels)
    ]
    validation = load_images(data / VALIDATION_FOLDER, channels, skip)
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        trainer = Trainer(
            settings,
            training,
            validation,
            run,
            team=Team(torch.device(device)),
            checkpoint=checkpoint,
            threads=threads,
            stop=lambda: bool(asked),
        )
        return trainer.train()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _open_run(
    run: Path, settings: TrainingSettings, *, resume: bool
) -> checkpoints.Checkpoint | None:
    """Make the run's folder, or load the checkpoint in it."""
    if resume:
        checkpoint = checkpoints.load_checkpoint(run)
        if checkpoint.settings != settings:
            raise InputError(f"The run in {str(run)!r} was started with another recipe.")
        return checkpoint
    if (run / checkpoints.FILE_NAME).exists():
        raise FileError(f"{str(run)!r} holds a run already; go on with --resume, or name another.")
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {str(run)!r}: {error.strerror}.") from error
    return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    parser.add_argument("config", type=Path, help="the recipe, a TOML file")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with train/, test/ and val/"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="RUN",
        help="folder for checkpoint, log and the best model",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in RUN")
    parser.add_argument(
        "--exclude",
        type=Path,
        metavar="FILE",
        help="ids of images in val/ to leave out, one a line",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of each process")
    parser.add_argument("--device", default="cpu", help="where to compute: cpu, cuda, mps")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command by itself, as torchrun does."""
    parser = argparse.ArgumentParser(prog="python -m nlnet.training")
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    finished = run_training(
        arguments.config,
        arguments.data,
        arguments.out,
        resume=arguments.resume,
        threads=arguments.threads,
        device=arguments.device,
        exclude=arguments.exclude,
    )
    return 0 if finished else 130
