"""Block matching of whole images: check, pad, and hand the tiles to the kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.config import NetworkConfig
from nlnet.errors import InputError
from nlnet.kernels.matching import TILE_COLUMNS, TILE_ROWS, match_tile
from nlnet.kernels.simd.vectors import LANES
from nlnet.parallel import Workers


def find_groups(
    image: FloatArray,
    config: NetworkConfig,
    workers: Workers,
    done: Callable[[float], None] | None = None,
) -> Groups:
    """Return, for every pixel, the offsets of the K patches most like the one around it.

    Distances are computed in float32, whatever the image's dtype: training in float64 then sees
    the very groups that denoising does.

    Parameters
    ----------
    image : (H, W) array
        A grayscale image, or the luminance of a color image.
    config : NetworkConfig
        Patch size, group size and search window.
    workers : Workers
        The threads to use; the groups are the same to the bit for any number of them.
    done : callable, optional
        Called with the share of the work finished.

    Returns
    -------
    (H, W, K, 2) int8 array
        (dy, dx) of each member: the pixel itself, then by ascending squared distance, equal ones
        by ascending length of the offset, then row by row.
    """
    height, width = image.shape
    check_size(height, width, config)
    # One vector of room at the right, for the kernel reads whole vectors.
    edges = ((config.patch_radius,) * 2,) * 2
    padded = np.pad(image.astype(np.float32), edges, mode="symmetric")
    padded = np.ascontiguousarray(np.pad(padded, ((0, 1), (0, LANES))))
    offsets, pairs = _window_offsets(config.window)
    groups = np.empty((*image.shape, config.group_size, 2), np.int8)
    levels, taps = (0,) * (config.group_size - 1), (0,) * config.patch_size

    def work(corner: tuple[int, int]) -> None:
        match_tile(padded, offsets, pairs, *corner, levels, taps, groups)

    tiles = [(y, x) for y in range(0, height, TILE_ROWS) for x in range(0, width, TILE_COLUMNS)]
    workers.map(work, tiles, None if done is None else lambda count: done(count / len(tiles)))
    return groups


def check_size(height: int, width: int, config: NetworkConfig) -> None:
    """Raise InputError unless every pixel of such an image can have a whole group."""
    if min(height, width) < config.patch_size:
        raise InputError(
            f"The image is {width}x{height} pixels, but both sides must be at least the patch "
            f"size, {config.patch_size}."
        )
    # A corner sees the least: a quarter of the window.
    seen = config.window // 2 + 1
    if min(height, seen) * min(width, seen) < config.group_size:
        raise InputError(
            f"The image is {width}x{height} pixels, too few to find {config.group_size} patches "
            f"in a window of {config.window}x{config.window} at its corners."
        )


@functools.lru_cache(maxsize=8)
def _window_offsets(window: int) -> tuple[Array, Array]:
    """All offsets of a window by rank, and the ranks of each offset below and its opposite.

    Rank: by length, then row by row. "Below": of a pair (o, -o), the one that is later row by row.
    """
    reach = window // 2
    span = np.arange(-reach, reach + 1)
    offsets = np.array([(dy, dx) for dy in span for dx in span])
    offsets = offsets[np.argsort((offsets**2).sum(axis=1), kind="stable")]
    rank = {(dy, dx): number for number, (dy, dx) in enumerate(offsets.tolist())}
    pairs = [(rank[o], rank[-o[0], -o[1]]) for o in rank if o > (0, 0)]
    return offsets, np.array(pairs)
