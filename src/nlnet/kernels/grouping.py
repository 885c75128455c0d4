"""Grouping: the weighted sum of a group's patches, its adjoint, and the gradient of the weights.

The patch transform is linear, so the sum over a group may be taken of the patches themselves,
before the transform: L_r x = F (sum_k w_k P_{i_r,k} x). The kernels work on one tile and on a
window of the image around it that holds every patch its groups can name. Both fit in the cache.
"""

from __future__ import annotations

import numpy as np

from nlnet.arrays import Array
from nlnet.kernels.compile import kernel
from nlnet.kernels.simd.patches import add_patch, multiply_patch, sum_patches
from nlnet.kernels.simd.vectors import LANES


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
def find_corners(
    groups: Array, left: int, columns: int, reach: int, stride: int, corners: Array
) -> None:
    """Where in the tile's window the patches of each group start, as flat indices.

    `groups` are those of the tile's rows, (rows, W, K, 2).
    """
    members = groups.shape[2]
    for pixel in range(corners.shape[0] // members):
        y, x = divmod(pixel, columns)
        for k in range(members):
            dy = np.int32(groups[y, left + x, k, 0])
            dx = np.int32(groups[y, left + x, k, 1])
            corners[pixel * members + k] = (y + reach + dy) * stride + x + reach + dx


@kernel
def sum_groups(
    window: Array, corners: Array, weights: Array, patches: Array, taps: tuple[int, ...]
) -> None:
    """Eq. (11) on patches: ``patches[r] = sum_k w_k P_{i_r,k} x``, one row of pixels after another.

    `patches` is flat and needs room for one more vector behind the last patch.
    """
    pixels, stride = window.reshape(-1), window.shape[1]
    members, size = weights.shape[0], len(taps) * len(taps)
    for pixel in range(corners.shape[0] // members):
        sum_patches(pixels, stride, corners, pixel * members, weights, patches, pixel * size, taps)


@kernel
def spread_groups(
    patches: Array,
    corners: Array,
    weights: Array,
    columns: int,
    window: Array,
    taps: tuple[int, ...],
) -> None:
    """Exact adjoint of :func:`sum_groups`: add every patch back, weighted, to its group's places.

    Neighbouring pixels tend to add to overlapping places, and a vector that was just written can
    be read again at once only where it was written; so the pixels are visited LANES apart.
    """
    pixels, stride = window.reshape(-1), window.shape[1]
    members, size = weights.shape[0], len(taps) * len(taps)
    for line in range(0, corners.shape[0] // members, columns):
        for k in range(members):
            for phase in range(LANES):
                for pixel in range(line + phase, line + columns, LANES):
                    corner = corners[pixel * members + k]
                    add_patch(patches, pixel * size, weights[k], pixels, corner, stride, taps)


@kernel
def correlate_groups(
    window: Array, corners: Array, patches: Array, gradient: Array, taps: tuple[int, ...]
) -> None:
    """Gradient of the weights: ``gradient[k] += sum_r patches[r] . P_{i_r,k} x``."""
    pixels, stride = window.reshape(-1), window.shape[1]
    members, size = gradient.shape[0], len(taps) * len(taps)
    for pixel in range(corners.shape[0] // members):
        for k in range(members):
            corner = corners[pixel * members + k]
            gradient[k] += multiply_patch(patches, pixel * size, pixels, corner, stride, taps)
