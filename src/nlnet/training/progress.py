"""Progress of a run on the screen: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from tqdm import tqdm

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
