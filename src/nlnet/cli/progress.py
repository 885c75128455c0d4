"""Progress bars on standard error: only on a terminal, and only if the work takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

_DELAY = 1.5
"""Seconds before a bar appears."""


def _bar(title: str, total: float, **more: Any) -> tqdm[Any]:
    from tqdm import tqdm

    # disable=None: no bar where standard error is not a terminal.
    return tqdm(total=total, desc=title, disable=None, delay=_DELAY, leave=False, **more)


@contextmanager
def share_bar(title: str) -> Iterator[Callable[[float], object]]:
    """Show the share of the work done; yields the function to report it to."""
    if not sys.stderr.isatty():
        yield lambda share: None  # without a terminal, do not even load tqdm
        return
    layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    with _bar(title, 1.0, bar_format=layout) as bar:
        yield Bar(bar).report


class Bar:
    """A bar, and lines of text above it."""

    def __init__(self, bar: tqdm[Any]) -> None:
        self._bar = bar

    def report(self, done: float) -> None:
        """Show how much is done."""
        self._bar.update(done - self._bar.n)

    def say(self, line: str, stream: TextIO | None = None) -> None:
        """Print a line, on standard output unless said otherwise."""
        self._bar.write(line, file=stream or sys.stdout)


@contextmanager
def file_bar(title: str, total: int) -> Iterator[Bar]:
    """Show how many files are done and how long the rest will take."""
    layout = "{desc}: {n:.0f}/{total}|{bar}| {elapsed}, {remaining} left"
    with _bar(title, total, bar_format=layout) as bar:
        yield Bar(bar)
