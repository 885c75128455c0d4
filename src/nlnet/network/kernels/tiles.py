"""The work of a stage on its tiles, from the image around each to what it adds there.

A few rows of the tile's pixels go through all steps before the next ones do: few enough that their
patches and features stay in the cache, and enough that each step finds there what it needs besides.
"""

from __future__ import annotations

from nlnet.arrays import Array
from nlnet.network.kernels import grouping, rbf
from nlnet.network.kernels.compile import kernel
from nlnet.network.kernels.simd.products import transform, transform_back

ROWS_AT_ONCE = 8


@kernel
def spread_features(
    rows: Array,
    first: int,
    height: int,
    top: int,
    columns: tuple[int, int],
    side: int,
    reach: int,
    groups: Array,
    weights: Array,
    filters: Array,
    transposed: Array,
    mixtures: rbf.Mixtures,
    window: Array,
    patches: Array,
    features: Array,
    windows: Array,
    parts: Array,
    taps: tuple[int, ...],
) -> None:
    """Compute ``L_r^T psi(L_r x)`` for the pixels r of some neighbouring tiles.

    Parameters
    ----------
    rows, first, height
        The image x, as of :func:`nlnet.network.kernels.grouping.copy_window`.
    top, side : int
        The tiles' first row, and how wide they are; the image's last one may be narrower.
    columns : (first, last)
        Which of the tiles from left to right.
    reach, weights, taps
        As of :func:`nlnet.network.kernels.grouping.sum_groups`.
    groups : (tile rows, W, K, 2) int8
        The groups of the tiles' rows.
    filters, transposed : flat
        F, (F, P), and its transpose, both with room for a vector at the end.
    mixtures : Mixtures
        The potentials' derivatives psi.
    window, patches, features, windows
        Memory: for the image around a tile, for ROWS_AT_ONCE rows of its pixels, with room for a
        vector at the end, and for :func:`nlnet.network.kernels.grouping.spread_groups`.
    parts : (columns of tiles, window rows, stride)
        The result: what each tile adds to the window around it.
    """
    stride = parts.shape[2]
    margin = reach + len(taps) // 2
    size = len(taps) * len(taps) - 1
    for column in range(columns[0], columns[1]):
        left = column * side
        count = min(side, groups.shape[1] - left)
        grouping.copy_window(
            rows,
            first,
            height,
            top - margin,
            left - margin,
            window[: groups.shape[0] + 2 * margin, : side + 2 * margin],
        )
        windows[:] = 0
        for row in range(0, groups.shape[0], ROWS_AT_ONCE):
            here = (row, min(row + ROWS_AT_ONCE, groups.shape[0]))
            pixels = count * (here[1] - here[0])
            grouping.sum_groups(window, reach, groups, left, here, count, weights, patches, taps)
            transform(patches, transposed, features, pixels, taps)  # Eq. (12), Eq. (42)
            rbf.evaluate(features[: pixels * size].reshape(pixels, size), mixtures)  # Eq. (14)
            # Eq. (13): the two steps of the adjoint.
            transform_back(features, filters, patches, pixels, taps)
            grouping.spread_groups(
                patches, reach, groups, left, here, count, weights, windows, stride, taps
            )
        grouping.add_windows(windows, parts[column])
