r"""The paper's recursion: match once on the noisy input, then run the stages.

.. math::

    x_{t+1} = P_C\Big((1 - \gamma_t)\, x_t + \gamma_t\, y
        - \sum_r L_{t,r}^T\, \psi_t(L_{t,r}\, x_t)\Big), \qquad x_1 = y

which is Eq. (22) to (24), with :math:`L_r x = F \sum_k w_k P_{i_r,k}\, x`: the patches of a group
are summed with their weights, then transformed. Gray and color are one path.

The engine computes it: ``engine/src/stages.cpp`` the sum over r, ``schedule.cpp`` the order in
which rows of the image pass through all stages, ``sweep.cpp`` the rest. `nlnet.torch.plain`
states it in a few lines of torch, and ``tests/slow.py`` straight from the paper; the engine is
tested against both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from nlnet.arrays import Box, ReadRows, WriteRows
from nlnet.engine import tasks
from nlnet.engine.network import EngineNetwork
from nlnet.errors import InputError
from nlnet.network.block import prepare, prepare_blank
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import check_size
from nlnet.network.parameters import StageParameters
from nlnet.network.refinement import Refinement
from nlnet.progress import Progress

BOX: Box = (0.0, 255.0)
"""The intensity box of an 8-bit image, the scale the network works on."""

LOW_TILES = (32, 16, 8)
"""Heights of tiles for less memory than those of the engine's own choice take."""

ROWS_COPIES = 4
"""Copies of the rows being read or written that exist at once: scaled, converted, checked."""

OTHER_MEMORY = 4_000_000
"""Upper bound in bytes for the tables of a network's stages and the overhead of threads."""


def denoise_rows(
    read: ReadRows,
    write: WriteRows,
    shape: tuple[int, int, int],
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    refinement: Refinement | None = None,
    *,
    box: Box | None = BOX,
    threads: int | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Denoise an image of any size that is read and written some rows at a time.

    Parameters
    ----------
    read : callable
        ``read(first, last)`` returns rows of the noisy image, gray or RGB planes (C, rows, W) on
        the 0-255 scale, of the parameters' dtype. Every row is asked for once, in order.
    write : callable
        ``write(first, rows)`` takes rows of the estimate, in order; they are the engine's memory,
        and must be copied to be kept. It and `read` are called in other threads than this one, but
        only one at a time.
    shape : (C, H, W)
        Shape of the whole image.
    config : NetworkConfig
        The network's shape.
    stages : sequence of StageParameters
        Its learned values.
    refinement : Refinement, optional
        Runs after the stages.
    box : (low, high) or None
        Intensities that the estimate is kept in; None for no constraint.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.
    max_memory : int, optional
        Bytes that may be used besides what is read and written. Less memory takes more time.
    progress : callable, optional
        Called with the share of the work done; an exception it raises stops the work.

    Raises
    ------
    InputError
        If the image is too small for the network, or `max_memory` for the image.
    """
    check_size(*shape[1:], config)
    network = prepare(config, stages, refinement)
    needed = functools.partial(_memory_needed, network, shape, config, threads)
    tile_rows = 0 if max_memory is None else choose_tile_rows(needed, shape, max_memory)
    options = {"threads": threads, "tile_rows": tile_rows, "progress": progress}
    tasks.denoise(network, read, write, shape, box=box, **options)  # type: ignore[arg-type]


def least_memory(shape: tuple[int, int, int], config: NetworkConfig, threads: int | None) -> int:
    """Return the smallest `max_memory` that :func:`denoise_rows` accepts, in float32."""
    check_size(*shape[1:], config)
    return _memory_needed(prepare_blank(config), shape, config, threads, LOW_TILES[-1])


def choose_tile_rows(needed: Callable[[int], int], shape: tuple[int, ...], max_memory: int) -> int:
    """Return the largest height of tiles with which an image takes at most `max_memory` bytes.

    Raises
    ------
    InputError
        If there is none.
    """
    heights = (tasks.default_tile_rows(), *LOW_TILES)
    for tile_rows in heights:
        if needed(tile_rows) <= max_memory:
            return tile_rows
    raise InputError(
        f"max_memory is {max_memory} bytes, but an image of {shape[2]}x{shape[1]} pixels takes at "
        f"least {needed(heights[-1])}; raise it (--max-memory of the command), or leave it out."
    )


def _memory_needed(
    network: EngineNetwork,
    shape: tuple[int, int, int],
    config: NetworkConfig,
    threads: int | None,
    tile_rows: int,
) -> int:
    """Return the bytes of a job, of the network's tables, and of rows on their way to it."""
    channels, _, width = shape
    value = network.dtype.itemsize
    passing = ROWS_COPIES * (tile_rows + config.margin) * channels * width * value
    job = tasks.denoising_memory(network, shape, threads, tile_rows)
    return job + passing + memory_of_tables(config, value)


def memory_of_tables(config: NetworkConfig, value: int = 4) -> int:
    """Return about how many bytes a network takes besides its jobs, of values of so many bytes."""
    weights = 0
    if config.refinement is not None:
        # In the block, and as the engine has them.
        weights = 2 * value * config.refinement.parameter_count(config.channels)
    return weights + OTHER_MEMORY
