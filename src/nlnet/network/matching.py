"""Block matching of whole images, or of some rows of them: check, pad, and cut into tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.errors import InputError
from nlnet.network.config import NetworkConfig
from nlnet.network.kernels.grouping import copy_window
from nlnet.network.kernels.matching import (
    TILE_COLUMNS,
    Area,
    Memory,
    margin_of,
    match_tile,
    memory_shapes,
)
from nlnet.network.parallel import Workers

BAND_ROWS = 32


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
    image = np.ascontiguousarray(image, np.float32)
    groups = np.empty((height, width, config.group_size, 2), np.int8)
    tasks = [
        task
        for top in range(0, height, BAND_ROWS)
        for task in matching_tasks(
            image, 0, height, top, groups[top : top + BAND_ROWS], config, workers
        )
    ]
    workers.map(
        lambda task: task(), tasks, None if done is None else lambda count: done(count / len(tasks))
    )
    return groups


def matching_tasks(
    rows: FloatArray,
    first: int,
    height: int,
    top: int,
    groups: Groups,
    config: NetworkConfig,
    workers: Workers,
) -> Iterator[Callable[[], None]]:
    """Yield the tasks, one a tile, that find the groups of some of an image's rows.

    Parameters
    ----------
    rows : (n, W) array
        Rows of the image, from `first` on: at least those that the patches concerned cover.
    first, height : int
        Number of the first of these rows, and how many the whole image has.
    top : int
        The first row whose groups are wanted.
    groups : (rows, W, K, 2) int8 array
        Where the groups of that row and of those below it go.
    config : NetworkConfig
        Patch size, group size and search window.
    workers : Workers
        The threads that the tasks will run in.
    """
    if config.group_size == 1:
        yield functools.partial(groups.fill, 0)
        return
    image = np.ascontiguousarray(rows, np.float32)
    width, radius, reach = rows.shape[1], config.patch_radius, config.window // 2
    # Row y of the padded image is the first row of the patches around the image's row y.
    strip_top = max(top - reach, 0)
    strip_bottom = min(top + len(groups) + reach, height) + 2 * radius
    offsets, pairs = _window_offsets(config.window)
    levels, taps = (0,) * (config.group_size - 1), (0,) * config.patch_size
    shapes = memory_shapes(len(groups), reach, radius, len(levels))

    def match(left: int) -> None:
        right = min(left + TILE_COLUMNS, width)
        area = Area(top, left, top + len(groups), right, height, strip_top, reach, margin_of(reach))
        memory = Memory(
            workers.scratch("strip", shapes.strip, np.float32),
            workers.scratch("keys", shapes.keys, np.float64),
            workers.scratch("worst", shapes.worst, np.float32),
            workers.scratch("distances", shapes.distances, np.float32),
        )
        memory.strip.fill(np.nan)
        beyond = left - area.margin - radius  # the image's column that the strip starts with
        first_column = max(beyond, -radius)
        last_column = min(beyond + shapes.strip[1], width + radius)
        copy_window(
            image,
            first,
            height,
            strip_top - radius,
            first_column,
            memory.strip[: strip_bottom - strip_top, first_column - beyond : last_column - beyond],
        )
        match_tile(area, offsets, pairs, levels, taps, memory, groups)

    for left in range(0, width, TILE_COLUMNS):
        yield functools.partial(match, left)


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
