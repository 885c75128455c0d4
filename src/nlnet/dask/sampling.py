"""What an estimate looks at of an image that lies in chunks, gathered in one place.

Of a large image `nlnet.estimate_noise` reads a bounded sample: tiles on a grid, patches on another,
and the extremes of all values. Here that sample is taken from the chunks, and stands in for the
image, so that what is estimated from it is the same number, by the same code.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array
from nlnet.inputs import check_finite
from nlnet.noise.blocks import sample_tiles
from nlnet.noise.white import Extremes, find_extremes, patch_size_and_step


@dataclasses.dataclass(frozen=True)
class Summary:
    """The extremes and the sum of a chunk or a whole page, and how many values exceed a limit."""

    extremes: Extremes
    total: float
    above: int

    @classmethod
    def of(cls, block: Array, limit: float) -> Summary:
        """Look at a chunk, all values of which must be finite."""
        check_finite(block)
        total = float(block.sum(dtype=np.float64))
        return cls(find_extremes(block), total, int(np.count_nonzero(block > limit)))

    @classmethod
    def merge(cls, parts: Sequence[Summary]) -> Summary:
        """Return the summary of the whole from those of its parts."""
        each = [part.extremes for part in parts]
        low, high = min(part.low for part in each), max(part.high for part in each)
        extremes = Extremes(
            low,
            sum(part.low_count for part in each if part.low == low),
            high,
            sum(part.high_count for part in each if part.high == high),
            sum(part.count for part in each),
        )
        total = math.fsum(part.total for part in parts)
        return cls(extremes, total, sum(part.above for part in parts))


class _Count:
    """A mask of which only the number of its True values is known."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: object, kwargs: object
    ) -> Any:
        return self._count if function is np.count_nonzero else NotImplemented


class _Windows:
    """The sliding windows of an image, of which only those on the grid are there."""

    def __init__(self, patches: Array, step: int) -> None:
        self._patches = patches
        self._key = (slice(None), slice(None, None, step), slice(None, None, step))

    def __getitem__(self, key: object) -> Array:
        if key != self._key:
            raise IndexError(f"Windows are sampled at {self._key}, not at {key}.")
        return self._patches  # (C, rows, columns, size, size)


class SampledPlanes:
    """An image (C, H, W) of which only a sample is in memory.

    It answers what the estimates ask of an array, and refuses everything else.

    Parameters
    ----------
    shape, dtype
        Those of the whole image.
    summary : Summary
        That of the whole image.
    tiles : mapping
        The tiles of `nlnet.noise.blocks.sample_tiles`, by their top left corners.
    patches : (C, rows, columns, size, size) array or None
        The patches of `nlnet.noise.white.patch_size_and_step`.
    step : int
        Pixels from a patch to the next one.
    limit : float
        The limit above which values are counted in the summary.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: tuple[int, int, int],
        dtype: np.dtype[Any],
        summary: Summary,
        tiles: Mapping[tuple[int, int], Array],
        patches: Array | None,
        step: int,
        limit: float,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.size = summary.extremes.count
        self._summary = summary
        self._tiles = tiles
        self._patches = patches
        self._step = step
        self._limit = limit

    def min(self) -> Any:
        """Return the least value of the whole image."""
        return self._summary.extremes.low

    def max(self) -> Any:
        """Return the largest value of the whole image."""
        return self._summary.extremes.high

    def mean(self) -> float:
        """Return the mean of the whole image."""
        return self._summary.total / self.size

    def __len__(self) -> int:
        return self.shape[0]

    def __eq__(self, value: object) -> _Count:  # type: ignore[override]
        """Count the values that are one of the extremes."""
        extremes = self._summary.extremes
        counts = {extremes.high: extremes.high_count, extremes.low: extremes.low_count}
        return _Count(counts[cast(float, value)])

    def __gt__(self, limit: float) -> _Count:
        """Count the values above the limit; above a higher one none are known."""
        return _Count(self._summary.above if limit <= self._limit else 0)

    def __getitem__(self, key: tuple[slice, slice, slice]) -> Array:
        _, rows, columns = key
        return self._tiles[int(rows.start), int(columns.start)]

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: object, kwargs: object
    ) -> Any:
        if function is sliding_window_view and self._patches is not None:
            return _Windows(self._patches, self._step)
        return NotImplemented


def sample_planes(
    planes: da.Array, *, tiles: bool, patches: bool, limit: float = math.inf
) -> Delayed:
    """Return a task that gathers (C, H, W) planes: the whole of a small image, or a sample.

    Parameters
    ----------
    planes : dask array
        The image. Every chunk is looked at once.
    tiles, patches : bool
        Whether the kind of the noise will be asked for, and the strength of white noise.
    limit : float
        Values above it are counted.

    Raises
    ------
    InputError
        If there must be patches, but the image is too small; and when it is computed, if values
        are NaN, infinite or too large.
    """
    size, step = patch_size_and_step(planes.shape) if patches else (1, 1)
    wanted = cast(list[da.Array], sample_tiles(cast(Array, planes)))
    if wanted[0] is planes:
        return cast(Delayed, delayed(_checked)(_in_one_piece(planes)))
    gathered = delayed(_gather)(
        planes.shape,
        planes.dtype,
        [delayed(Summary.of)(block, limit) for block in _tasks(planes)],
        [_in_one_piece(tile) for tile in wanted] if tiles else [],
        _in_one_piece(_patches(planes, size, step)) if patches else None,
        size,
        step,
        limit,
    )
    return cast(Delayed, gathered)


def _patches(planes: da.Array, size: int, step: int) -> da.Array:
    """Return the patches of the grid side by side, (C, rows * size, columns * size)."""
    rows, columns = (
        (np.arange(0, length - size + 1, step)[:, np.newaxis] + np.arange(size)).ravel()
        for length in planes.shape[1:]
    )
    return cast(da.Array, planes[:, rows][:, :, columns])


def _in_one_piece(array: da.Array) -> Delayed:
    return _tasks(array.rechunk(-1))[0]


def _tasks(array: da.Array) -> list[Delayed]:
    # Not optimized, which is done to the graph as a whole: parts that were fused on their own, here
    # and for another page, would not fit together.
    return cast(list[Delayed], array.to_delayed(optimize_graph=False).ravel().tolist())


def _checked(planes: Array) -> Array:
    check_finite(planes)
    return planes


def _gather(
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    summaries: Sequence[Summary],
    tiles: Sequence[Array],
    sheet: Array | None,
    size: int,
    step: int,
    limit: float,
) -> SampledPlanes:
    patches = None
    if sheet is not None:
        channels, rows, columns = sheet.shape
        cut = sheet.reshape(channels, rows // size, size, columns // size, size)
        patches = cut.swapaxes(2, 3)
    corners = _tile_corners(shape) if tiles else []
    return SampledPlanes(
        shape,
        dtype,
        Summary.merge(summaries),
        dict(zip(corners, tiles, strict=True)),
        patches,
        step,
        limit,
    )


def _tile_corners(shape: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Return the top left corners of the tiles, which those of their coordinates begin with."""
    _, height, width = shape
    rows = np.broadcast_to(np.arange(height)[:, np.newaxis], shape)
    columns = np.broadcast_to(np.arange(width), shape)
    return [
        (int(row[0, 0, 0]), int(column[0, 0, 0]))
        for row, column in zip(sample_tiles(rows), sample_tiles(columns), strict=True)
    ]


def to_lazy_planes(page: da.Array, channels: int | None) -> da.Array:
    """Return a page with its channels first, (C, H, W)."""
    planes = page[np.newaxis] if channels is None else da.moveaxis(page, channels, 0)
    return cast(da.Array, planes)


def lazy_object(value: Any) -> da.Array:
    """Return a task's result, of any kind, as a dask array without axes."""
    return cast(
        da.Array, da.from_delayed(delayed(_as_array)(value), shape=(), dtype=np.dtype(object))
    )


def _as_array(value: object) -> Array:
    array = np.empty((), object)
    array[()] = value
    return array
