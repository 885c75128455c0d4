"""The work of a stage on one tile, from the image around it to what it adds there.

A row of the tile's pixels goes through all steps before the next one does, so that its patches and
features stay in the first-level cache.
"""

from __future__ import annotations

from nlnet.arrays import Array
from nlnet.kernels import grouping, rbf
from nlnet.kernels.compile import kernel
from nlnet.kernels.simd.products import transform, transform_back


@kernel
def spread_features(
    window: Array,
    reach: int,
    groups: Array,
    left: int,
    columns: int,
    weights: Array,
    filters: Array,
    transposed: Array,
    mixtures: rbf.Mixtures,
    patches: Array,
    features: Array,
    windows: Array,
    part: Array,
    taps: tuple[int, ...],
) -> None:
    """Compute ``L_r^T psi(L_r x)`` for the pixels r of a tile.

    Parameters
    ----------
    window, reach, groups, left, columns, weights, taps
        As of :func:`nlnet.kernels.grouping.sum_groups`.
    filters, transposed : flat
        F, (F, P), with room for a vector at the end, and its transpose.
    mixtures : Mixtures
        The potentials' derivatives psi.
    patches, features : flat
        Memory for a row of pixels, with room for a vector at the end.
    windows : flat
        Memory for :func:`nlnet.kernels.grouping.spread_groups`.
    part : (rows, stride)
        The result: what the tile adds to the window around it.
    """
    windows[:] = 0
    stride = part.shape[1]
    count = len(taps) * len(taps) - 1
    for row in range(groups.shape[0]):
        rows = (row, row + 1)
        grouping.sum_groups(window, reach, groups, left, rows, columns, weights, patches, taps)
        transform(patches, transposed, features, columns, taps)  # Eq. (12), Eq. (42)
        rbf.evaluate(features[: columns * count].reshape(columns, count), mixtures)  # Eq. (14)
        # Eq. (13): the two steps of the adjoint.
        transform_back(features, filters, patches, columns, taps)
        grouping.spread_groups(
            patches, reach, groups, left, rows, columns, weights, windows, stride, taps
        )
    grouping.add_windows(windows, part)
