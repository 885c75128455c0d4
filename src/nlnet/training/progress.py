"""Progress of a run on the screen: a bar on a terminal, lines elsewhere."""

import io
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from nlnet.atomic import write_atomically
from nlnet.errors import InputError, trying

_LAYOUT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"


class Screen:
    """Live progress on standard error.

    On a terminal every phase is a bar; elsewhere every epoch is a line.

    Parameters
    ----------
    quiet : bool
        Show nothing: for all processes of a team but one.
    stream : text stream, optional
        Where to show it; by default standard error.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._stream = sys.stderr if stream is None else stream
        self._live = not quiet and self._stream.isatty()
        self._bar: tqdm[Any] | None = None
        self._epochs = 0
        self._validation = ""

    def begin(self, title: str, epochs: int, steps: int, done: int) -> None:
        """Start a phase of `epochs` epochs and `steps` steps, `done` of which are done already."""
        self.end()
        self._epochs, self._validation = epochs, ""
        self._bar = tqdm(
            total=steps,
            initial=done,
            desc=title,
            bar_format=_LAYOUT,
            # Elsewhere it only counts, and is never drawn again.
            file=self._stream if self._live else io.StringIO(),
            mininterval=0.1 if self._live else math.inf,
            dynamic_ncols=True,
        )

    def step(self, epoch: int, psnr: float, rate: float) -> None:
        """Count one step."""
        assert self._bar is not None
        self._bar.set_postfix_str(
            f"epoch {epoch + 1}/{self._epochs}, train {psnr:.2f}{self._validation} dB, "
            f"rate {rate:.2g}",
            refresh=False,
        )
        self._bar.update()

    def epoch(self, entry: Mapping[str, Any]) -> None:
        """Show what the log says of an epoch."""
        assert self._bar is not None
        words = [time.strftime("%H:%M:%S"), f"{entry['phase']} {entry['epoch']}/{entry['epochs']}"]
        words.append(f"train {entry['train_psnr']:.3f} dB")
        if entry["val_psnr"] is not None:
            words.append(f"val {entry['val_psnr']:.3f} dB")
            self._validation = f", val {entry['val_psnr']:.3f}"
        words.append(f"rate {entry['rate']:.2g}")
        spent, total, done, first = map(
            self._bar.format_dict.__getitem__, ("elapsed", "total", "n", "initial")
        )
        left = spent * (total - done) / max(1, done - first)  # at the speed it had so far
        words.append(f"{tqdm.format_interval(entry['seconds'])}, {tqdm.format_interval(left)} left")
        if not self._live:
            self.say("  ".join(words))

    def say(self, sentence: str) -> None:
        """Show a line."""
        if not self._quiet:
            tqdm.write(sentence, file=self._stream)

    def end(self) -> None:
        """End the phase; its bar stays."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


FILE_NAME = "log.jsonl"


class RunLog:
    """The log in a run's folder.

    Parameters
    ----------
    run : Path
        The run's folder.
    lines : int
        Lines of an earlier part of the run that are to be kept; those after its last checkpoint
        are dropped, for they will be written again.
    """

    def __init__(self, run: Path, lines: int) -> None:
        self._path = run / FILE_NAME
        with trying(f"read {str(self._path)!r}"):
            held = self._path.read_bytes() if self._path.is_file() else b""
        kept = b"".join(held.splitlines(keepends=True)[:lines])
        if kept != held:
            write_atomically(self._path, kept)

    def write(self, entry: dict[str, Any]) -> None:
        """Add one line."""
        line = json.dumps(entry) + "\n"
        with trying(f"write {str(self._path)!r}"), self._path.open("a") as stream:
            stream.write(line)


def read_log(run: Path) -> list[dict[str, Any]]:
    """Read the log of a run, given its folder or the file itself.

    Raises
    ------
    FileError
        If there is none, or it cannot be read.
    InputError
        If it is not a log, or has no line yet.
    """
    path = run / FILE_NAME if run.is_dir() else run
    with trying(f"read the log {str(path)!r}"):
        lines = path.read_text().splitlines()
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            entry["phase"], float(entry["train_psnr"]), float(entry["seconds"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"Line {number} of {str(path)!r} is not one of a log.") from error
        entries.append(entry)
    if not entries:
        raise InputError(f"The log {str(path)!r} has no line yet.")
    return entries
