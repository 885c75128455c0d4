"""How an array is cut for denoising: chunks with enough room for a halo."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.inputs import check_channel_axis
from nlnet.network.config import NetworkConfig
from nlnet.network.recursion import least_memory

_SIDES_IN_REACHES = (12, 8, 6, 4, 3, 2, 1)
"""Sides of blocks to choose from: at 12 times its halo a block costs 1.36 times its own pixels."""


_LARGE_BLOCK = 2**30
"""Bytes that the pages of a block may take unless `max_memory` says how many."""


def merge_small(lengths: Sequence[int], least: int) -> tuple[int, ...]:
    """Join neighbouring chunks of an axis until each has a length of at least `least`.

    Examples
    --------
    >>> merge_small((4, 4, 4, 4, 1), 6)
    (8, 9)
    >>> merge_small((3, 2), 6)
    (5,)
    """
    merged: list[int] = []
    for length in lengths:
        if merged and merged[-1] < least:
            merged[-1] += length
        else:
            merged.append(length)
    if len(merged) > 1 and merged[-1] < least:
        last = merged.pop()
        merged[-1] += last
    return tuple(merged)


def whole_chunks(lengths: Sequence[int], unit: int) -> tuple[int, ...]:
    """Move the seams of an axis to multiples of `unit`, so that no such unit is cut.

    Examples
    --------
    >>> whole_chunks((5, 4, 1, 3), 2)
    (4, 4, 2, 3)
    """
    seams = [place - place % unit for place in itertools.accumulate(lengths)]
    ends = sorted({*seams[:-1], sum(lengths)} - {0})
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def stand_in(array: da.Array, stacked: int = 0) -> Array:
    """Return an array of one page's shape and dtype that takes no memory, for checks.

    Raises
    ------
    InputError
        If it is no dask array, its shape is not known, or it has too few axes.
    """
    if not isinstance(array, da.Array):
        raise InputError(
            f"The array is of type {type(array).__name__}, but must be a dask array; "
            "nlnet.denoise takes arrays in memory."
        )
    if any(math.isnan(length) for length in array.shape):
        raise InputError(
            "The array's chunks are of unknown size, but must be known: "
            "array.compute_chunk_sizes() finds out."
        )
    return np.broadcast_to(np.zeros((), array.dtype), array.shape[stacked:])


def computed_apart(array: da.Array) -> da.Array:
    """Return the same array with tasks of its own, so that chunks are computed twice, not kept."""
    tasks = dict(array.__dask_graph__())
    if not all(
        isinstance(task, np.ndarray) or hasattr(task, "substitute") for task in tasks.values()
    ):
        return array  # tasks in dask's old form: chunks are kept, which is also correct
    # Not by dask's own `clone`, which loses dependencies of arrays that were rechunked.
    token = uuid.uuid4().hex
    renamed = {key: _renamed(key, token) for key in tasks}
    graph = {
        renamed[key]: task
        if isinstance(task, np.ndarray)
        else task.substitute(renamed, key=renamed[key])
        for key, task in tasks.items()
    }
    return da.Array(graph, _renamed(array.name, token), array.chunks, meta=array)


def _renamed(key: Any, token: str) -> Any:
    """Return another key for a task: of a chunk it is a tuple that begins with a name."""
    return (f"{key[0]}-{token}", *key[1:]) if isinstance(key, tuple) else f"{key}-{token}"


def image_axes(page: Array, channel_axis: int | None) -> tuple[tuple[int, int], int | None]:
    """Return the axes of rows and columns, and that of the channels; all counted from the end."""
    axis = check_channel_axis(page, channel_axis)
    if axis is None:
        return (-2, -1), None
    channels = axis if axis < 0 else axis - page.ndim
    rows, columns = sorted({-3, -2, -1} - {channels})
    return (rows, columns), channels


def block_sides(
    units: tuple[int, int],
    shape: tuple[int, int, int, int],
    config: NetworkConfig,
    *,
    threads: int,
    itemsize: int,
    max_memory: int | None = None,
    scales: int = 1,
) -> tuple[int, int]:
    """Return rows and columns of the blocks that images are worked on in, multiples of `units`.

    Parameters
    ----------
    units : (int, int)
        Rows and columns of the chunks that are written, which no two blocks may share.
    shape : (N, C, H, W)
        Shape of the images, N of which are in one chunk.
    config : NetworkConfig
        The network, whose reach is the halo around a block.
    threads, max_memory
        For the work on one block.
    itemsize : int
        Bytes of a value of the image.
    scales : int
        The number of scales that its noise may be removed at.

    Raises
    ------
    InputError
        If even the smallest block does not fit into `max_memory`.
    """
    pages, channels, *size = shape
    for reaches in _SIDES_IN_REACHES:
        sides = [_side(unit, config.unit, reaches * config.reach) for unit in units]
        # Seams are moved, and the halo is widened, to whole units of the network.
        around = 2 * config.reach + 3 * (config.unit - 1)
        rows, columns = (
            min(side + around, length) for side, length in zip(sides, size, strict=True)
        )
        # The block, its copy with the halo, and the result; in float32 what smaller scales change,
        # and its copy, at half the size.
        values = 3 * itemsize + (2 if scales > 1 else 0)
        held = values * pages * channels * rows * columns
        needed = held + least_memory((channels, rows, columns), config, threads)
        if max_memory is None:
            fits = held <= _LARGE_BLOCK or reaches == _SIDES_IN_REACHES[-1]
        else:
            fits = needed <= max_memory
        if fits:
            return sides[0], sides[1]
    raise InputError(
        f"max_memory is {max_memory} bytes, but a block of {columns}x{rows} pixels takes at least "
        f"{needed}; raise it (--max-memory of the command), or leave it out."
    )


def _side(unit: int, whole: int, wanted: int) -> int:
    """Return a multiple of `unit` near what is wanted; of `whole`, too, if there is a near one."""
    both = math.lcm(unit, whole)
    step = both if both <= wanted else unit
    return step * max(1, round(wanted / step))
