"""How much memory a sweep needs, and how high its tiles may be for it to fit.

See :mod:`nlnet.network.sweep`.
"""

from __future__ import annotations

import math

from nlnet.errors import InputError
from nlnet.network.config import NetworkConfig
from nlnet.network.kernels.matching import memory_shapes
from nlnet.network.kernels.tiles import ROWS_AT_ONCE
from nlnet.network.tiles import TILE

ROWS_AHEAD = 2
"""Rows of tiles that matching may have begun before the first stage begins them."""

TILE_ROWS_TO_CHOOSE = (72, 32, 16, 8)
"""Heights of tiles, at most: the highest that stay in the cache, and less for less memory."""


def ring_length(margin: int, tile_rows: int) -> int:
    """Return how many rows of tiles must be kept: all that add to rows that are not yet final."""
    return -(-2 * margin // tile_rows) + 1


def rows_held(config: NetworkConfig, tile_rows: int) -> tuple[int, int]:
    """Return about how many rows are needed at once of the noisy image, and of other inputs."""
    lag = 2 * (config.margin + tile_rows)  # from a stage's input to its output
    ahead = config.margin + (ROWS_AHEAD + 1) * tile_rows
    return config.stages * lag + ahead, lag + tile_rows


def choose_tile_rows(
    shape: tuple[int, int, int],
    config: NetworkConfig,
    threads: int,
    itemsize: int,
    max_memory: int | None,
) -> int:
    """Return the largest height of tiles whose sweep fits into `max_memory` bytes.

    Raises
    ------
    InputError
        If even the smallest does not fit.
    """
    for at_most in TILE_ROWS_TO_CHOOSE:
        tile_rows = _even_rows(shape[1], at_most)
        needed = memory_needed(shape, config, threads, itemsize, tile_rows)
        if max_memory is None or needed <= max_memory:
            return tile_rows
    raise InputError(
        f"max_memory is {max_memory} bytes, but an image {shape[2]} pixels wide takes at least "
        f"{needed}; raise it (--max-memory of the command), or leave it out."
    )


def least_memory(
    shape: tuple[int, int, int], config: NetworkConfig, threads: int, itemsize: int
) -> int:
    """Return the smallest `max_memory` that :func:`choose_tile_rows` accepts."""
    lowest = _even_rows(shape[1], TILE_ROWS_TO_CHOOSE[-1])
    return memory_needed(shape, config, threads, itemsize, lowest)


def _even_rows(height: int, at_most: int) -> int:
    """Cut an image into rows of tiles of about the same height: a low one takes long for little."""
    return -(-height // -(-height // at_most))


def memory_needed(
    shape: tuple[int, int, int], config: NetworkConfig, threads: int, itemsize: int, tile_rows: int
) -> int:
    """Return an upper bound of the bytes a sweep holds besides what is read and written."""
    channels, height, width = shape
    margin = config.margin
    pixel = channels * itemsize
    noisy_rows, input_rows = rows_held(config, tile_rows)

    def held(rows: int) -> int:
        return 2 * min(rows, height) * width * pixel  # slabs are half empty

    groups = min(noisy_rows, height) * width * 2 * config.group_size
    # While the noisy image's rows move there are two of them.
    planes = 1.5 * held(noisy_rows) + (config.stages - 1) * held(input_rows)
    windows = (tile_rows + 2 * margin) * (TILE + 2 * margin + 32)
    ring = min(ring_length(margin, tile_rows), -(-height // tile_rows))
    parts = config.stages * ring * -(-width // TILE) * windows * pixel
    finished = 12 * width * tile_rows * pixel  # rows on their way from one stage to the next
    patch = 2 * config.patch_size**2 * itemsize
    shapes = memory_shapes(
        tile_rows, config.window // 2, config.patch_radius, config.group_size - 1
    )
    matching = 8 * sum(math.prod(shape) for shape in shapes)
    tile = ROWS_AT_ONCE * TILE * patch + 3 * windows * itemsize + matching
    total = groups + planes + parts + finished + threads * tile
    # Other slabs move, too; tables and Python itself take a few megabytes.
    return int(1.25 * total) + 4_000_000
