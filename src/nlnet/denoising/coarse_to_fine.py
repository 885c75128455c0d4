"""Removing correlated noise from coarse to fine: smaller versions of the image come first.

At half the size, the noise of neighboring pixels is less alike, and blotches are as small as grain.
There the networks for white noise remove them; what they changed is enlarged and added to the full
image, whose noise has lost its low frequencies then; the same network removes the rest. The idea is
that of M. Lebrun, M. Colom, J.-M. Morel, "The Noise Clinic: a blind image denoising algorithm",
Image Processing On Line (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, ReadRows, WriteRows
from nlnet.progress import Report, part

Planes = npt.NDArray[np.float32]

_LEAST_SIDE = 16
"""Images are halved as long as their shorter side keeps at least this many pixels."""

_BAND = 256
"""Rows that are halved at a time, so that no second copy of a large image is made."""


class Denoise(Protocol):
    """What removes white noise from rows of an image."""

    def __call__(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, int, int],
        sigma: float,
        report: Report,
    ) -> None:
        """Read rows whose noise has this sigma, and write them denoised."""


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


def remove_correlated(
    planes: Array,
    write: WriteRows,
    sigmas: Sequence[float],
    denoise: tuple[Denoise, Denoise],
    report: Report,
) -> None:
    """Denoise (C, H, W) planes at several scales, and write the rows of the result.

    Parameters
    ----------
    planes : (C, H, W) array
        The noisy image, of any dtype.
    write : callable
        ``write(first, rows)`` takes rows of the result.
    sigmas : sequence of float
        Standard deviation of the noise at the full size, at half the size, and so on.
    denoise : pair of callables
        What removes the noise at the full size, and at all others.
    report : callable
        Called with the share of the work done.
    """
    channels, height, width = planes.shape
    whole, smaller = denoise
    change: Planes | None = None
    own_share = 1.0
    if len(sigmas) > 1:
        own_share = 0.75  # a quarter of the pixels takes a quarter of the rest, and so on
        half = halve(planes)
        change = np.empty_like(half)
        remove_correlated(
            half,
            _writer(change),
            sigmas[1:],
            (smaller, smaller),
            part(report, 0.0, 1 - own_share),
        )
        change -= half
        del half

    whole(
        corrected(planes, change),
        write,
        (channels, height, width),
        sigmas[0],
        part(report, 1 - own_share, own_share),
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


def _writer(target: Planes) -> WriteRows:
    def write(first: int, rows: Array) -> None:
        target[:, first : first + rows.shape[1]] = rows

    return write
