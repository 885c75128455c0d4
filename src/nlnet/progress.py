"""Progress: the share of the work that is done, reported for a whole or for its parts."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

Answer = TypeVar("Answer")

Progress: TypeAlias = Callable[[float], object]
"""A user's function, called with the share of the work done, from 0 to 1; False stops the work."""

Report: TypeAlias = Callable[[float], None]
"""The same inside of the package: only an exception stops the work."""


def ignore(share: float) -> None:
    """Report to nobody."""


def bar() -> Progress:
    """Return a function that shows a bar (tqdm), also in notebooks."""
    from tqdm.auto import tqdm

    shown = tqdm(total=1.0, bar_format="{percentage:3.0f}%|{bar}| {elapsed}<{remaining}")

    def show(share: float) -> None:
        shown.update(share - shown.n)
        if share >= 1:
            shown.close()

    return show


def part(
    report: Callable[[float], Answer], first: float, share: float
) -> Callable[[float], Answer]:
    """Return what a part of the work reports to: it begins at `first`, and is `share` of all.

    Examples
    --------
    >>> told = []
    >>> second_half = part(told.append, 0.5, 0.5)
    >>> second_half(0.0), second_half(1.0), told
    (None, None, [0.5, 1.0])
    """
    return lambda done: report(first + share * done)


def one_of(report: Callable[[float], Answer], number: int, count: int) -> Callable[[float], Answer]:
    """Return what one of several equal parts reports to, counted from 0."""
    return lambda done: report((number + done) / count)
