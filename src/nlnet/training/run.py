"""A run from beginning to end, as ``nlnet train`` does it: recipe, images, folder, signals."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout

from nlnet.errors import FileError, InputError, cannot, trying
from nlnet.evaluation.datasets import read_ids
from nlnet.training.checkpoints import FILE_NAME, Checkpoint, load_checkpoint
from nlnet.training.pictures import load_pictures
from nlnet.training.settings import TrainingSettings, first_difference, read_settings
from nlnet.training.team import Team
from nlnet.training.trainer import BEST_MODEL, Trainer

LOCK_NAME = ".lock"
"""The file whose lock says that a process trains in the folder."""


def run_training(
    config: Path,
    data: Path,
    run: Path,
    *,
    resume: bool = False,
    exclude: Path | None = None,
    threads: int | None = None,
    device: str = "cpu",
) -> bool:
    """Train a model by the recipe in `config`; return False if a signal ended it early.

    Parameters
    ----------
    config : Path
        The recipe, a TOML file.
    data : Path
        Folder with ``train/``, or what else the recipe trains on, and ``val/``.
    run : Path
        Folder for the results.
    resume : bool
        Go on with the run in `run`, which must be there; without, there must be none.
    exclude : Path, optional
        File with the names, without suffix, of images to leave out. Those of BSD68 always are.
    threads : int, optional
        Threads of each process.
    device : str
        Where to compute: "cpu", "cuda", "mps".

    Raises
    ------
    NLNetError
        One of its kinds, with one sentence, for whatever stops a run: a recipe or image that cannot
        be used, a full disk, a loss that is not finite, a process of the team that is gone.
    """
    with Team(device, threads) as team, contextlib.ExitStack() as held:
        settings = team.broadcast(lambda: read_settings(config))
        checkpoint = team.broadcast(lambda: _open_run(run, settings, held, resume=resume))
        pictures = load_pictures(data, settings, read_ids(exclude) if exclude else frozenset())
        if team.is_rank_0:
            _tell(
                f"{settings.name}: {len(pictures.training)} images to train on, "
                f"{len(pictures.validation)} to validate with, {pictures.left_out} left out."
            )
            if pictures.copies:
                _tell(f"Left out as copies of test images: {', '.join(pictures.copies)}.")
        with _stop_requests() as stop:
            trainer = Trainer(settings, pictures, run, team=team, checkpoint=checkpoint, stop=stop)
            return trainer.train()


def _open_run(
    run: Path, settings: TrainingSettings, held: contextlib.ExitStack, *, resume: bool
) -> Checkpoint | None:
    """Make the run's folder, or load the checkpoint in it; `held` keeps other trainings out."""
    if resume and not any((run / name).exists() for name in (FILE_NAME, LOCK_NAME)):
        raise FileError(
            f"There is no run in {str(run)!r} to go on with; without --resume one begins there."
        )
    with trying(f"make the folder {str(run)!r}"):
        run.mkdir(parents=True, exist_ok=True)
    try:
        # The system releases it when the process ends, even if it is killed; the file stays.
        held.enter_context(FileLock(run / LOCK_NAME, timeout=0))
    except Timeout as error:
        raise FileError(
            f"Another process is training in {str(run)!r}; wait for it, or name another folder."
        ) from error
    except OSError as error:
        raise cannot(f"write to the folder {str(run)!r}", error) from error
    begun = (run / FILE_NAME).exists()
    if begun and not resume:
        raise FileError(f"{str(run)!r} holds a run already; go on with --resume, or name another.")
    if not begun:
        if resume:
            _tell(f"The run in {str(run)!r} ended before its first checkpoint; it starts over.")
        return None
    checkpoint = load_checkpoint(run)
    difference = first_difference(settings, checkpoint.settings)
    if difference is not None:
        raise InputError(f"{str(run)!r} was started with another recipe: {difference}.")
    _check_best_model(run, checkpoint)
    return checkpoint


def _check_best_model(run: Path, checkpoint: Checkpoint) -> None:
    """Check that the best model of a run exists, or will be written again."""
    progress, best = checkpoint.progress, run / BEST_MODEL
    if progress.best_psnr is None or best.exists():
        return
    if progress.phase > checkpoint.settings.last_phase:
        raise FileError(
            f"The run in {str(run)!r} is finished, but its model {BEST_MODEL!r} is gone; put it "
            "back, or train again in another folder."
        )
    _tell(f"{str(best)!r} is gone: the best model from here on takes its place.")
    progress.best_psnr = None


@contextlib.contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Take note of SIGINT and SIGTERM; only a second signal ends the process as usual."""
    asked: list[int] = []
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for each, handler in previous.items():
            signal.signal(each, handler)

    for number in previous:
        signal.signal(number, ask)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _tell(sentence: str) -> None:
    sys.stderr.write(sentence + "\n")
