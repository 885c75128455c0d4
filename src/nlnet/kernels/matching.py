"""Block matching: for every pixel, the K nearest patches in a window around it.

A tile of the image keeps, for each pixel, its best candidates so far, while all offsets of the
window pass by from the centre outwards. The distance of two patches serves both of them, so only
half of the offsets are computed. Every distance is summed in one fixed order, columns of a patch
row first, then its rows, and candidates are ordered by (distance, rank of the offset), whatever
the order they come in: the groups do not depend on tiles or threads.
"""

from __future__ import annotations

import numpy as np

from nlnet.arrays import Array
from nlnet.kernels.compile import kernel
from nlnet.kernels.simd.candidates import offer, patch_distances
from nlnet.kernels.simd.vectors import LANES

TILE_COLUMNS = 128

_FAR = np.float32(np.finfo(np.float32).max)
_RANK_BITS = 0xFFFFF


@kernel
def match_tile(
    strip: Array,
    strip_top: int,
    height: int,
    offsets: Array,
    pairs: Array,
    top: int,
    left: int,
    levels: tuple[int, ...],
    taps: tuple[int, ...],
    groups: Array,
) -> None:
    """Find the groups of the pixels of one tile.

    Parameters
    ----------
    strip : (rows, W + p - 1 + LANES) float32
        Part of the image, padded by the patch radius on every side: all rows that patches in the
        tile's search windows have. Whole vectors are read, hence the room at the right.
    strip_top : int
        Row of the padded image that the strip starts with.
    height : int
        Height of the whole image.
    offsets : (window * window, 2) int64
        (dy, dx) of every offset of the window, by rank: nearest first, then row-major.
    pairs : (n, 2) int64
        Ranks of an offset of the lower half plane and of its opposite, nearest first.
    top, left : int
        The tile's first pixel.
    levels, taps : tuple
        Only their lengths matter, and are compiled in: K - 1 and the patch size.
    groups : (tile rows, W, K, 2) int8
        The result: (dy, dx) of each member, the pixel itself first.
    """
    width = groups.shape[1]
    pixels, pitch = strip.reshape(-1), strip.shape[1]
    reach = offsets[-1, 0]
    bottom = top + groups.shape[0]
    right = min(left + TILE_COLUMNS, width)
    blocks = (right - left + LANES - 1) // LANES
    level_count = len(levels)

    keys = np.full((bottom - top) * blocks * level_count * LANES, np.float64(_FAR))
    worst = np.full((bottom - top) * blocks * LANES, _FAR)
    # Distances d(r, r + offset) for r in the tile and up to `reach` pixels around it.
    stride = TILE_COLUMNS + 2 * reach + LANES
    distances = np.full((bottom - top + reach) * stride, _FAR)

    for pair in range(pairs.shape[0]):
        rank, opposite = pairs[pair]
        dy, dx = offsets[rank]
        # Pixels r with r and r + offset in the image, and one of the two in the tile.
        first_row = max(top - dy, 0)
        last_row = min(bottom, height - dy)
        wanted = left - max(dx, 0)
        first = max(wanted, 0, -dx)
        last = min(right - min(dx, 0), width - max(dx, 0))
        count = last - first
        if count <= 0 or last_row <= first_row:
            continue
        begin = (first_row - top + reach) * stride + reach - left
        for x in range(first, last, LANES):
            here = (first_row - strip_top) * pitch + x
            patch_distances(
                pixels,
                here,
                here + dy * pitch + dx,
                pitch,
                distances,
                begin + x,
                stride,
                last_row - first_row,
                taps,
            )
        _mark_outside(
            distances,
            begin,
            stride,
            last_row - first_row,
            wanted,
            first,
            last,
            left + blocks * LANES + max(-dx, 0),
        )
        for y in range(top, bottom):
            line = (y - top) * blocks
            start = (y - top + reach) * stride + reach
            if y + dy < height:
                _offer_row(keys, worst, line, blocks, distances, start, rank, levels)
            if y - dy >= 0:
                start -= dy * stride + dx
                _offer_row(keys, worst, line, blocks, distances, start, opposite, levels)

    _write_groups(keys, offsets, left, right, levels, groups)


@kernel
def _mark_outside(
    distances: Array,
    begin: int,
    stride: int,
    rows: int,
    wanted: int,
    first: int,
    last: int,
    end: int,
) -> None:
    """Set the distances to patches outside the image, left of `first` and from `last` on."""
    for row in range(rows):
        line = begin + row * stride
        distances[line + wanted : line + first] = _FAR
        distances[line + last : line + end] = _FAR


@kernel
def _offer_row(
    keys: Array,
    worst: Array,
    line: int,
    blocks: int,
    distances: Array,
    start: int,
    rank: int,
    levels: tuple[int, ...],
) -> None:
    """Offer every pixel of one row of the tile its candidate at one offset."""
    for block in range(blocks):
        at = (line + block) * LANES
        offer(keys, at * len(levels), worst, at, distances, start + block * LANES, rank, levels)


@kernel
def _write_groups(
    keys: Array, offsets: Array, left: int, right: int, levels: tuple[int, ...], groups: Array
) -> None:
    """Turn the ranks in the keys' last bits into the offsets of the group's members."""
    blocks = (right - left + LANES - 1) // LANES
    ranks = keys.view(np.int64)
    for y in range(groups.shape[0]):
        for x in range(left, right):
            block, lane = divmod(x - left, LANES)
            at = (y * blocks + block) * len(levels) * LANES + lane
            groups[y, x, 0, 0] = 0
            groups[y, x, 0, 1] = 0
            for level in range(len(levels)):
                rank = ranks[at + level * LANES] & _RANK_BITS
                groups[y, x, level + 1, 0] = offsets[rank, 0]
                groups[y, x, level + 1, 1] = offsets[rank, 1]
