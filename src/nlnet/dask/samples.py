"""A sample of an image that stands in for the whole image when its noise is estimated.

The same code gives the same estimate from the sample as from the whole image.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array
from nlnet.dask.masks import find_hidden
from nlnet.inputs import check_finite
from nlnet.masks import Mask
from nlnet.noise.white import Extremes, find_extremes


@dataclasses.dataclass(frozen=True)
class Summary:
    """The extremes and the sum of a chunk or a whole page, and how many values exceed a limit.

    Only visible pixels count; `hidden` is the number of those that are masked or NaN.
    """

    extremes: Extremes
    total: float
    above: int
    hidden: int = 0

    @classmethod
    def of(cls, planes: Array, given: Mask | None, limit: float) -> Summary:
        """Summarize a chunk (C, H, W), whose values must be finite unless they are hidden."""
        hidden = find_hidden(planes, given)
        values = planes if hidden is None else planes[:, ~hidden]
        count = 0 if hidden is None else int(np.count_nonzero(hidden))
        check_finite(values)
        if not values.size:
            return cls(Extremes(math.inf, 0, -math.inf, 0, 0), 0.0, 0, count)
        total = float(values.sum(dtype=np.float64))
        above = int(np.count_nonzero(values > limit))
        return cls(find_extremes(values), total, above, count)

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
        above, hidden = (sum(getattr(part, name) for part in parts) for name in ("above", "hidden"))
        return cls(extremes, total, above, hidden)


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
