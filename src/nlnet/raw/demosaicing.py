"""Linear interpolation of the colors that a Bayer mosaic lacks, one of its four phases at a time.

H. Malvar, L. He, R. Cutler, "High-quality linear interpolation for demosaicing of Bayer-patterned
color images", ICASSP 2004. It is linear, so what it does to noise is known beforehand, and it needs
memory only for one phase. Pictures are developed by LibRaw, not by this.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import FloatArray

Pattern: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
"""Colors of the upper left 2x2 pixels: 0 for red, 1 for green, 2 for blue."""

RED, GREEN, BLUE = range(3)
BORDER = 2
"""Pixels of border that `pad` adds and `interpolate` expects."""

PHASES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Row and column of the first pixel of each phase; the others follow at every second one."""

_Taps: TypeAlias = Mapping[tuple[int, int], float]


def _symmetric(centre: float, **weights: float) -> _Taps:
    """Return the taps of a filter in eighths, given for one of each set of alike neighbors."""
    places = {
        "left": ((0, -1), (0, 1)),
        "up": ((-1, 0), (1, 0)),
        "far_left": ((0, -2), (0, 2)),
        "far_up": ((-2, 0), (2, 0)),
        "corner": ((-1, -1), (-1, 1), (1, -1), (1, 1)),
    }
    taps = {(0, 0): centre / 8}
    for name, weight in weights.items():
        taps |= dict.fromkeys(places[name], weight / 8)
    return taps


_ITSELF: _Taps = {(0, 0): 1.0}
_GREEN = _symmetric(4, left=2, up=2, far_left=-1, far_up=-1)
_FROM_ROW = _symmetric(5, left=4, far_left=-1, corner=-1, far_up=0.5)
_FROM_COLUMN = _symmetric(5, up=4, far_up=-1, corner=-1, far_left=0.5)
_FROM_CORNERS = _symmetric(6, corner=2, far_left=-1.5, far_up=-1.5)


def pad(mosaic: FloatArray) -> FloatArray:
    """Return a mosaic with a border that goes on with its pattern: mirrored at the last pixels."""
    return np.pad(mosaic, BORDER, mode="reflect")


def interpolate(padded: FloatArray, pattern: Pattern, phase: tuple[int, int]) -> FloatArray:
    """Return red, green and blue of the pixels of one phase, (3, h, w).

    Examples
    --------
    >>> flat = pad(np.full((4, 4), 7.0))
    >>> interpolate(flat, ((0, 1), (1, 2)), (0, 1)).ravel().tolist() == [7.0] * 12
    True
    """
    height, width = (size - 2 * BORDER for size in padded.shape)
    row, column = phase
    shape = len(range(row, height, 2)), len(range(column, width, 2))
    colors = np.zeros((3, *shape), padded.dtype)
    for color, plane in enumerate(colors):
        for (down, right), weight in _taps(pattern, phase, color).items():
            top, left = BORDER + row + down, BORDER + column + right
            rows = slice(top, top + 2 * shape[0] - 1, 2)
            columns = slice(left, left + 2 * shape[1] - 1, 2)
            plane += padded.dtype.type(weight) * padded[rows, columns]
    return colors


def variances(
    pattern: Pattern, phase: tuple[int, int], of_colors: Sequence[float]
) -> tuple[float, ...]:
    """Return the variances of the noise that `interpolate` makes of white noise.

    Parameters
    ----------
    pattern, phase
        As for `interpolate`.
    of_colors : sequence of float
        Variance of the noise at the mosaic's red, green and blue pixels.

    Examples
    --------
    >>> variances(((0, 1), (1, 2)), (0, 0), (1.0, 1.0, 1.0))
    (1.0, 0.5625, 0.953125)
    """
    row, column = phase
    return tuple(
        sum(
            weight**2 * of_colors[pattern[(row + down) % 2][(column + right) % 2]]
            for (down, right), weight in _taps(pattern, phase, color).items()
        )
        for color in (RED, GREEN, BLUE)
    )


def _taps(pattern: Pattern, phase: tuple[int, int], color: int) -> _Taps:
    row, column = phase
    here = pattern[row][column]
    if here == color:
        return _ITSELF
    if color == GREEN:
        return _GREEN
    if here != GREEN:
        return _FROM_CORNERS
    return _FROM_ROW if pattern[row][1 - column] == color else _FROM_COLUMN
