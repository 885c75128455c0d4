"""Grouping: the weighted sum of a group's patches, its adjoint, and the gradient of the weights.

The patch transform is linear, so the sum over a group may be taken of the patches themselves,
before the transform: L_r x = F (sum_k w_k P_{i_r,k} x). The kernels work on one tile and on a
window of the image around it that holds every patch its groups can name. Both fit in the cache.
"""

from __future__ import annotations

import numpy as np

from nlnet.arrays import Array
from nlnet.network.kernels.compile import kernel
from nlnet.network.kernels.simd.patches import (
    SPREAD_STEP,
    SPREAD_TOGETHER,
    multiply_patch,
    spread_patches,
    sum_patches,
)

_TOGETHER = (0,) * SPREAD_TOGETHER


@kernel
def copy_window(rows: Array, first: int, height: int, top: int, left: int, window: Array) -> None:
    """Copy a part of an image, continued by symmetric boundaries, starting at (top, left).

    `rows` are the image's rows from `first` on, as many as are at hand; those that the window needs
    must be among them. `height` is that of the whole image.
    """
    width = rows.shape[1]
    inner_first = max(0, -left)
    inner_last = min(window.shape[1], width - left)
    for row in range(window.shape[0]):
        y = top + row
        y = -1 - y if y < 0 else y
        y = 2 * height - 1 - y if y >= height else y
        y -= first
        if y < 0 or y >= rows.shape[0]:
            continue  # beyond the boundary's mirror image: no patch reaches there
        line = rows[y]
        window[row, inner_first:inner_last] = line[inner_first + left : inner_last + left]
        for column in range(max(0, inner_first - width), inner_first):
            window[row, column] = line[-1 - column - left]
        for column in range(inner_last, min(window.shape[1], inner_last + width)):
            window[row, column] = line[2 * width - 1 - column - left]


@kernel
def sum_groups(
    window: Array,
    reach: int,
    groups: Array,
    left: int,
    rows: tuple[int, int],
    columns: int,
    weights: Array,
    patches: Array,
    taps: tuple[int, ...],
) -> None:
    """Eq. (11) on patches: ``patches[r] = sum_k w_k P_{i_r,k} x`` for some rows of a tile.

    Parameters
    ----------
    window : (rows, stride)
        The image around the tile: `reach` and the patch radius more on every side.
    reach : int
        How far the members of a group are from it at most.
    groups : (tile rows, W, K, 2) int8
        The groups of the tile's rows.
    left, columns : int
        The tile's first column in `groups`, and how many it has.
    rows : (first, last)
        The tile's rows to work on.
    weights : (K,)
        The members' weights.
    patches : flat
        The result, pixel after pixel; it needs room for one more vector behind the last patch.
    taps : tuple
        As long as a patch is wide.
    """
    pixels, stride = window.reshape(-1), window.shape[1]
    offsets = groups.reshape(-1)
    pair, size = 2 * weights.shape[0], len(taps) * len(taps)
    for row in range(rows[0], rows[1]):
        corner = (row + reach) * stride + reach
        first = (row * groups.shape[1] + left) * pair
        begin = (row - rows[0]) * columns * size
        for x in range(columns):
            sum_patches(
                pixels,
                corner + x,
                stride,
                offsets,
                first + x * pair,
                weights,
                patches,
                begin + x * size,
                taps,
            )


@kernel
def spread_groups(
    patches: Array,
    reach: int,
    groups: Array,
    left: int,
    rows: tuple[int, int],
    columns: int,
    weights: Array,
    windows: Array,
    stride: int,
    taps: tuple[int, ...],
) -> None:
    """Exact adjoint of :func:`sum_groups`: add every patch back, weighted, to its group's places.

    `windows` is flat and holds two windows, of rows `stride` long, whose sum is the result (see
    :func:`add_windows`). It is fast where the first starts at a cache line, the second half a line
    off, and `stride` is a whole number of lines: `kernels.simd.patches.spread_patches`.

    Neighbouring pixels tend to add to overlapping places, and a vector that was just written can be
    read again at once only where it was written; so the pixels are visited SPREAD_STEP apart, and
    several together.
    """
    offsets = groups.reshape(-1)
    pair, size = 2 * weights.shape[0], len(taps) * len(taps)
    shift = windows.shape[0] // 2
    for row in range(rows[0], rows[1]):
        corner = (row + reach) * stride + reach
        first = (row * groups.shape[1] + left) * pair
        begin = (row - rows[0]) * columns * size
        for phase in range(SPREAD_STEP):
            x = phase
            while x + (SPREAD_TOGETHER - 1) * SPREAD_STEP < columns:
                spread_patches(
                    patches,
                    begin + x * size,
                    weights,
                    windows,
                    corner + x,
                    stride,
                    shift,
                    offsets,
                    first + x * pair,
                    taps,
                    _TOGETHER,
                )
                x += SPREAD_TOGETHER * SPREAD_STEP
            for last in range(x, columns, SPREAD_STEP):
                spread_patches(
                    patches,
                    begin + last * size,
                    weights,
                    windows,
                    corner + last,
                    stride,
                    shift,
                    offsets,
                    first + last * pair,
                    taps,
                    (0,),
                )


@kernel
def add_windows(windows: Array, part: Array) -> None:
    """Add up what :func:`spread_groups` has spread, into a window (rows, stride)."""
    flat = part.reshape(-1)
    shift = windows.shape[0] // 2
    for at in range(flat.shape[0]):
        flat[at] = windows[at] + windows[at + shift]


@kernel
def correlate_groups(
    window: Array,
    reach: int,
    groups: Array,
    left: int,
    columns: int,
    patches: Array,
    gradient: Array,
    taps: tuple[int, ...],
) -> None:
    """Gradient of the weights: ``gradient[k] += sum_r patches[r] . P_{i_r,k} x``."""
    pixels, stride = window.reshape(-1), window.shape[1]
    members, size = gradient.shape[0], len(taps) * len(taps)
    for row in range(groups.shape[0]):
        corner = (row + reach) * stride + reach
        for x in range(columns):
            at = (row * columns + x) * size
            for k in range(members):
                dy = np.int64(groups[row, left + x, k, 0])
                dx = np.int64(groups[row, left + x, k, 1])
                place = corner + x + dy * stride + dx
                gradient[k] += multiply_patch(patches, at, pixels, place, stride, taps)
