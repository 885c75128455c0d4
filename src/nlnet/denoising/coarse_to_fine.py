"""Smaller versions of an image, and what was changed in them at the full size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, ReadRows

Planes = npt.NDArray[np.float32]

_LEAST_SIDE = 16
"""Images are halved as long as their shorter side keeps at least this many pixels."""

_BAND = 256
"""Rows that are halved at a time, so that no second copy of a large image is made."""


def scales_for(shape: tuple[int, int, int], wanted: int) -> int:
    """Return into how many scales an image can be taken apart."""
    count, side = 1, min(shape[1:])
    while count < wanted and side // 2 >= _LEAST_SIDE:
        count, side = count + 1, side // 2
    return count


def memory_of(shape: tuple[int, int, int], scales: int) -> int:
    """Return how many bytes the smaller images take, at most."""
    channels, height, width = shape
    return sum(
        2 * 4 * channels * (height >> scale) * (width >> scale) for scale in range(1, scales)
    )


def corrected(planes: Array, change: Planes | None) -> ReadRows:
    """Return a function that reads rows of planes, with what smaller scales changed added."""

    def read(first: int, last: int) -> Array:
        rows = planes[:, first:last]
        if change is None:
            return rows
        return rows.astype(np.float32) + enlarged(change, first, last, planes.shape[2])

    return read


def halve(planes: Array) -> Planes:
    """Return (C, H, W) planes at half the size, in float32: means of 2x2 pixels.

    Examples
    --------
    >>> halve(np.arange(16, dtype=np.uint8).reshape(1, 4, 4)).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    channels, height, width = planes.shape
    half = np.empty((channels, height // 2, width // 2), np.float32)
    for first in range(0, height // 2, _BAND):
        last = min(first + _BAND, height // 2)
        rows = planes[:, 2 * first : 2 * last, : width // 2 * 2].astype(np.float32)
        rows = rows[:, ::2] + rows[:, 1::2]
        half[:, first:last] = (rows[..., ::2] + rows[..., 1::2]) / 4
    return half


def enlarged(half: Planes, first: int, last: int, width: int) -> Planes:
    """Return rows, from `first` to `last`, of half-size planes at the full size; bilinear.

    Examples
    --------
    >>> enlarged(np.array([[[0.0, 4.0]]], np.float32), 0, 1, 5).tolist()
    [[[0.0, 1.0, 3.0, 4.0, 4.0]]]
    """
    rows, row_shares = _neighbors(np.arange(first, last), half.shape[1])
    columns, column_shares = _neighbors(np.arange(width), half.shape[2])
    near, far = half[:, rows[0]], half[:, rows[1]]
    wide = near + (far - near) * row_shares[:, np.newaxis]
    left, right = wide[..., columns[0]], wide[..., columns[1]]
    return np.asarray(left + (right - left) * column_shares)


def _neighbors(
    places: npt.NDArray[np.intp], size: int
) -> tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], Planes]:
    """Return the two places at half the size around each one, and the share of the second."""
    at = (places - 0.5) / 2
    below = np.floor(at).astype(np.intp)
    share = (at - below).astype(np.float32)
    return (np.clip(below, 0, size - 1), np.clip(below + 1, 0, size - 1)), share
