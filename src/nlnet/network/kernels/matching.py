"""Block matching: for every pixel, the K nearest patches in a window around it.

A tile of the image keeps, for each pixel, its best candidates so far, while all offsets of the
window pass by from the centre outwards, a batch at a time: first the distances of all patches at
these offsets, then, for each pixel, those of the candidates that beat its worst one. The distance
of two patches serves both of them, so only half of the offsets are computed.

Every distance is summed in one fixed order, and candidates are ordered by (distance, rank of the
offset), whatever the order they come in: the groups do not depend on tiles or threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nlnet.arrays import Array
from nlnet.network.kernels.compile import kernel
from nlnet.network.kernels.simd.candidates import MOST_HITS, find_hits, insert, patch_distances
from nlnet.network.kernels.simd.vectors import WIDE_LANES

TILE_COLUMNS = 128

BATCH = MOST_HITS // 2
"""Pairs of offsets at a time: their distances stay in the second-level cache."""

_STRIP = (0,) * 3
"""Vectors of patches side by side, measured together on the way down.

Each of them, and one more, has running sums in four registers. A tile's 128 columns, and the 16
more that offsets reach, are a whole number of threes, whether a vector has 8 lanes or 16.
"""
_STRIP_COLUMNS = len(_STRIP) * WIDE_LANES

_FAR = np.float32(np.finfo(np.float32).max)
_RANK_BITS = 0xFFFFF


class Area(NamedTuple):
    """A tile, [top, bottom) x [left, right), of an image, and where its strip is."""

    top: int
    left: int
    bottom: int
    right: int
    height: int
    """Of the whole image."""
    strip_top: int
    """Row of the padded image that the strip starts with."""
    reach: int
    """How far offsets reach, down and to either side."""
    margin: int
    """As :func:`margin_of` says."""


class Memory(NamedTuple):
    """What a thread needs for one tile."""

    strip: Array
    """(rows, columns) float32: the image around the tile, padded by the patch radius on every side.

    Its rows are all that patches in the tile's search windows have. Column ``x - left + margin`` is
    where the patches around the image's column x start. What is beyond the padding is NaN, so that
    nothing is like a patch outside the image.
    """
    keys: Array
    """(blocks of WIDE_LANES pixels, levels, WIDE_LANES) float64: see :func:`insert`."""
    worst: Array
    """(blocks, WIDE_LANES) float32: the distances of the last level."""
    distances: Array
    """(BATCH, rows + reach, stride) float32: d(r, r + offset), r in the tile and around it."""


class Shapes(NamedTuple):
    """The shapes of a tile's :class:`Memory`."""

    strip: tuple[int, int]
    keys: tuple[int, int, int]
    worst: tuple[int, int]
    distances: tuple[int, int, int]


def margin_of(reach: int) -> int:
    """Return `reach` rounded up to whole vectors."""
    return -(-reach // WIDE_LANES) * WIDE_LANES


def memory_shapes(rows: int, reach: int, radius: int, levels: int) -> Shapes:
    """Return how much memory tiles of so many rows need; whole vectors are read and written."""
    margin = margin_of(reach)
    stride = margin + -(-(TILE_COLUMNS + margin) // _STRIP_COLUMNS) * _STRIP_COLUMNS
    blocks = rows * TILE_COLUMNS // WIDE_LANES
    return Shapes(
        strip=(
            rows + 2 * (reach + radius) + 1,
            stride + margin_of(reach + 2 * radius) + WIDE_LANES,
        ),
        keys=(blocks, levels, WIDE_LANES),
        worst=(blocks, WIDE_LANES),
        distances=(BATCH, rows + reach, stride),
    )


@kernel
def match_tile(
    area: Area,
    offsets: Array,
    pairs: Array,
    levels: tuple[int, ...],
    taps: tuple[int, ...],
    memory: Memory,
    groups: Array,
) -> None:
    """Find the groups of the pixels of one tile.

    Parameters
    ----------
    area : Area
        The tile.
    offsets : (window * window, 2) int64
        (dy, dx) of every offset of the window, by rank: nearest first, then row-major.
    pairs : (n, 2) int64
        Ranks of an offset of the lower half plane and of its opposite, nearest first.
    levels, taps : tuple
        Only their lengths matter, and are compiled in: K - 1 and the patch size.
    memory : Memory
        Of the shapes that :func:`memory_shapes` says, its strip filled.
    groups : (tile rows, W, K, 2) int8
        The result: (dy, dx) of each member, the pixel itself first.
    """
    keys, worst = memory.keys.reshape(-1), memory.worst.reshape(-1)
    distances = memory.distances.reshape(-1)
    keys[:] = _FAR
    worst[:] = _FAR
    plane, stride = memory.distances.shape[1] * memory.distances.shape[2], memory.distances.shape[2]
    steps = np.empty(2 * BATCH, np.int64)
    ranks = np.empty(2 * BATCH, np.int64)
    for first in range(0, pairs.shape[0], BATCH):
        batch = min(BATCH, pairs.shape[0] - first)
        for number in range(batch):
            rank, opposite = pairs[first + number]
            dy, dx = offsets[rank]
            begin = number * plane
            _measure_pair(
                memory.strip, area, dy, dx, distances[begin : begin + plane], stride, taps
            )
            steps[2 * number] = begin
            ranks[2 * number] = rank
            steps[2 * number + 1] = begin - dy * stride - dx
            ranks[2 * number + 1] = opposite
        _offer(keys, worst, area, distances, stride, steps[: 2 * batch], ranks, levels)
    _write_groups(keys, area, offsets, levels, groups)


@kernel
def _measure_pair(
    strip: Array,
    area: Area,
    dy: int,
    dx: int,
    distances: Array,
    stride: int,
    taps: tuple[int, ...],
) -> None:
    """Compute d(r, r + offset) for all r with one of the two in the tile."""
    # The columns of those r; whole vectors, so that the first one is aligned.
    first = area.left - (max(dx, 0) + WIDE_LANES - 1) // WIDE_LANES * WIDE_LANES
    last = area.right - min(dx, 0)
    origin = (area.reach - area.top) * stride + area.margin - area.left
    # The rows of those r for which both are in the image; elsewhere it is far.
    top = max(area.top - dy, 0)
    bottom = max(min(area.bottom, area.height - dy), top)
    for row in range(area.top - dy, top):
        distances[origin + row * stride + first : origin + row * stride + last] = _FAR
    for row in range(bottom, area.bottom):
        distances[origin + row * stride + first : origin + row * stride + last] = _FAR
    pixels, pitch = strip.reshape(-1), strip.shape[1]
    here = (top - area.strip_top) * pitch + area.margin - area.left
    there = here + dy * pitch + dx
    out = origin + top * stride
    count = bottom - top
    for column in range(first, last, _STRIP_COLUMNS):
        patch_distances(
            pixels,
            here + column,
            there + column,
            pitch,
            distances,
            out + column,
            stride,
            count,
            taps,
            _STRIP,
        )


@kernel
def _offer(
    keys: Array,
    worst: Array,
    area: Area,
    distances: Array,
    stride: int,
    steps: Array,
    ranks: Array,
    levels: tuple[int, ...],
) -> None:
    """Offer every pixel of the tile its candidates of one batch."""
    blocks = (area.right - area.left + WIDE_LANES - 1) // WIDE_LANES
    for row in range(area.bottom - area.top):
        start = (row + area.reach) * stride + area.margin
        for block in range(blocks):
            at = (row * blocks + block) * WIDE_LANES
            here = start + block * WIDE_LANES
            chosen = find_hits(worst, at, distances, here, steps)
            if chosen:
                insert(
                    keys, at * len(levels), worst, at, distances, here, steps, ranks, chosen, levels
                )


@kernel
def _write_groups(
    keys: Array, area: Area, offsets: Array, levels: tuple[int, ...], groups: Array
) -> None:
    """Turn the ranks in the keys' last bits into the offsets of the group's members."""
    blocks = (area.right - area.left + WIDE_LANES - 1) // WIDE_LANES
    ranks = keys.view(np.int64)
    for y in range(groups.shape[0]):
        for x in range(area.left, area.right):
            block, lane = divmod(x - area.left, WIDE_LANES)
            at = (y * blocks + block) * len(levels) * WIDE_LANES + lane
            groups[y, x, 0, 0] = 0
            groups[y, x, 0, 1] = 0
            for level in range(len(levels)):
                rank = ranks[at + level * WIDE_LANES] & _RANK_BITS
                groups[y, x, level + 1, 0] = offsets[rank, 0]
                groups[y, x, level + 1, 1] = offsets[rank, 1]
