"""How an array lies: axes of pages and of images, and chunks with enough room for a halo."""

from __future__ import annotations

import dataclasses
import itertools
import math
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import dask.array as da
import numpy as np

from nlnet.denoising.network import least_memory
from nlnet.errors import InputError
from nlnet.inputs import check_channel_axis, check_dtype
from nlnet.network.config import NetworkConfig

_SIDES_IN_REACHES = (12, 8, 6, 4, 3, 2, 1)
"""Sides of blocks to choose from: at 12 times its halo a block costs 1.36 times its own pixels."""


_LARGE_BLOCK = 2**30
"""Bytes that the pages of a block may take unless `max_memory` says how many."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which axes count pages, and which are rows, columns and channels of a page.

    Parameters
    ----------
    pages : tuple of int
        Lengths of the axes at the front that count pages.
    shape : (C, H, W)
        Shape of a page.
    image_axes : (int, int)
        The axes of rows and columns, counted from the end.
    channel_axis : int or None
        The axis of the channels, counted from the end.
    """

    pages: tuple[int, ...]
    shape: tuple[int, int, int]
    image_axes: tuple[int, int]
    channel_axis: int | None

    @classmethod
    def of(
        cls, shape: tuple[int, ...], dtype: np.dtype[Any], stacked: int, channel_axis: int | None
    ) -> Layout:
        """Return the layout of an array whose first axes, so many as `stacked`, count pages.

        Raises
        ------
        InputError
            If that cannot be a stack of images, or the dtype is not supported.
        """
        page = np.broadcast_to(np.zeros((), dtype), shape[stacked:])
        check_dtype(page)
        axis = check_channel_axis(page, channel_axis)
        axes = {-2, -1} if axis is None else {-3, -2, -1}
        axis = axis if axis is None or axis < 0 else axis - 3
        rows, columns = sorted(axes - {axis})
        channels = 1 if axis is None else page.shape[axis]
        sizes = channels, page.shape[rows], page.shape[columns]
        return cls(shape[:stacked], sizes, (rows, columns), axis)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.pages) + (2 if self.channel_axis is None else 3)

    @property
    def pixel_axes(self) -> tuple[int, ...]:
        """The axes that masks and maps have as well: all but that of the channels."""
        return tuple(axis for axis in range(self.ndim) if axis - self.ndim != self.channel_axis)

    @property
    def pixel_shape(self) -> tuple[int, ...]:
        """Lengths of these axes."""
        return (*self.pages, *self.shape[1:])

    def spread(self, given: da.Array, array: da.Array) -> da.Array:
        """Return a mask or a map, of one page or of all, for all pages, chunked as the array is."""
        whole = da.broadcast_to(given, self.pixel_shape)
        chunks = tuple(array.chunks[axis] for axis in self.pixel_axes)
        return cast(da.Array, whole.rechunk(chunks))


class LazyPages(NamedTuple):
    """Pages as dask arrays, and what lies beside their pixels, chunked alike."""

    values: da.Array
    """The pages."""
    hidden: da.Array | None = None
    """Which pixels are left out, of the shape of the pages and (H, W); so is NaN."""
    maps: da.Array | None = None
    """Maps of sigma, of the same shape."""

    def apart(self) -> LazyPages:
        """Return the same with tasks of its own, so that chunks are computed twice, not kept."""
        return LazyPages._make(each if each is None else _computed_apart(each) for each in self)


def layout_of(array: da.Array, stacked: object, channel_axis: int | None) -> Layout:
    """Return the layout of a dask array; parameters as for `nlnet.dask.denoise`.

    Raises
    ------
    InputError
        If it is no dask array, its shape is not known, or it is no stack of images.
    """
    if not isinstance(stacked, int) or isinstance(stacked, bool) or stacked < 0:
        raise InputError(f"stacked is {stacked!r}, but must be a whole number of at least 0.")
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
    return Layout.of(array.shape, array.dtype, stacked, channel_axis)


def as_lazy(given: Any) -> da.Array:
    """Return an array as a dask array."""
    if isinstance(given, da.Array):
        return given
    return cast(da.Array, da.from_array(np.asarray(given), name=False))


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


def _computed_apart(array: da.Array) -> da.Array:
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


def halo_of(config: NetworkConfig, *, smaller: bool) -> tuple[int, int]:
    """Return the unit that seams of chunks are multiples of, and how much is around a chunk.

    If there are smaller scales, chunks are halved on their own, and what is enlarged is not exact
    in the outermost pixels.
    """
    unit = max(2, config.unit) if smaller else config.unit
    reach = config.reach + 2 if smaller else config.reach
    return unit, unit * -(-reach // unit)


def block_sides(
    units: tuple[int, int],
    shape: tuple[int, int, int, int],
    config: NetworkConfig,
    *,
    threads: int | None,
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
    unit, halo = halo_of(config, smaller=scales > 1)
    for reaches in _SIDES_IN_REACHES:
        sides = [_side(each, config.unit, reaches * config.reach) for each in units]
        around = 2 * halo + unit - 1  # seams are moved to whole units
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
