"""Progress bars: on standard error, only for people who watch and only if it takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

_DELAY = 1.5
"""Seconds before a bar appears."""


@contextmanager
def share_bar(title: str) -> Iterator[Callable[[float], None]]:
    """Show the share of the work done; yields the function to report it to."""
    layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    # disable=None: no bar where standard error is not a terminal.
    with tqdm(
        total=1.0, desc=title, disable=None, delay=_DELAY, leave=False, bar_format=layout
    ) as bar:

        def report(share: float) -> None:
            bar.update(share - bar.n)

        yield report


@contextmanager
def count_bar(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Show how many items are done; yields the function to call after each."""
    with tqdm(
        total=total, desc=title, unit="image", disable=None, delay=_DELAY, leave=False
    ) as bar:

        def report() -> None:
            bar.update()

        yield report
