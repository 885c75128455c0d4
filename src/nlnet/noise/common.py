"""The noise that all pages of a stack have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import about
from nlnet.inputs import find_data_range
from nlnet.noise.blocks import sample_tiles
from nlnet.noise.deciding import decide_noise
from nlnet.noise.record import Noise

_SAMPLED_PAGES = 8
"""Pages that are looked at, at most."""


def sampled_pages(count: int) -> list[int]:
    """Return which of a stack's pages are looked at.

    Examples
    --------
    >>> sampled_pages(3), sampled_pages(99)
    ([0, 1, 2], [0, 14, 28, 42, 56, 70, 84, 98])
    """
    chosen = np.linspace(0, count - 1, min(count, _SAMPLED_PAGES)).round().astype(int)
    return [int(number) for number in chosen]


def find_common_noise(
    count: int,
    planes_of: Callable[[int], Array],
    data_range: float | None,
    kind: str | None,
    *,
    subject: str = "",
) -> Noise:
    """Estimate the noise of all pages from some of them, as if they were one image.

    Parameters
    ----------
    count : int
        Number of pages, at least 1.
    planes_of : callable
        Called with the number of a page; returns its (C, H, W) planes.
    data_range : float or None
        The value of white; None for that of the dtype.
    kind : str or None
        What the noise is; None to find that out, too.
    subject : str
        What errors call all pages together.

    Raises
    ------
    InputError
        If the pages cannot have that data range.
    """
    parts = [
        tile.copy() for number in sampled_pages(count) for tile in sample_tiles(planes_of(number))
    ]
    sample = np.concatenate(parts, axis=1)
    with about(subject):
        return decide_noise(sample, find_data_range(sample, data_range), None, kind)
