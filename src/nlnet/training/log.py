"""What a run tells: a JSONL log for the record, and a line on the screen for the eye."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

FILE_NAME = "log.jsonl"


class RunLog:
    """The log of a run, and its live progress on the terminal.

    Parameters
    ----------
    run : Path
        The run's folder.
    lines : int
        Lines of an earlier part of the run that are to be kept; those after its last checkpoint
        are dropped, for they will be written again.
    quiet : bool
        Write and show nothing: for all processes of a team but one.
    """

    def __init__(self, run: Path, lines: int, *, quiet: bool = False) -> None:
        self._path = run / FILE_NAME
        self._quiet = quiet
        self._bar: tqdm[Any] | None = None
        if not quiet:
            kept = self._path.read_text().splitlines()[:lines] if self._path.exists() else []
            self._path.write_text("".join(line + "\n" for line in kept))

    def begin(self, title: str, steps: int, done: int) -> None:
        """Start a phase of so many steps, some of which may be done already."""
        self.end()
        if not self._quiet and sys.stderr.isatty():
            self._bar = tqdm(total=steps, initial=done, desc=title, unit="step", leave=True)

    def advance(self, psnr: float, rate: float) -> None:
        """Count one step."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"train {psnr:.3f} dB, rate {rate:.2g}", refresh=False)
            self._bar.update()

    def write(self, **entry: Any) -> None:
        """Add one line to the log, and show it."""
        if self._quiet:
            return
        with self._path.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")
        words = [time.strftime("%H:%M:%S"), f"{entry['phase']} {entry['epoch']}/{entry['epochs']}"]
        words.append(f"train {entry['train_psnr']:.3f} dB")
        if entry.get("val_psnr") is not None:
            words.append(f"val {entry['val_psnr']:.3f} dB")
        words.append(f"rate {entry['rate']:.2g}")
        words.append(f"{entry['seconds']:.0f} s")
        self.say("  ".join(words))

    def say(self, sentence: str) -> None:
        """Show a line on the terminal."""
        if not self._quiet:
            tqdm.write(sentence, file=sys.stderr)

    def end(self) -> None:
        """End the phase."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
