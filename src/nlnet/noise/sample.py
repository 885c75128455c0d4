"""What is looked at to find the noise of an image: a sample of its values, of bounded size.

An array fills it, several pages of a stack do so together, and a dask array does it chunk by chunk.
Everything that is decided about the noise is decided relative to what the values of the sample
fill, whatever the dtype could hold: `low` and `high` are percentiles, so that stars and hot pixels
are not taken for white.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array

SAMPLED_PAGES = 8
"""Pages of a stack that are looked at, at most."""

_TILE = 192
_MAX_PIXELS = 400_000
"""Of larger images, so many pixels are looked at, in square tiles on a grid."""

_LEAST_TILES = 4
"""Tiles of a page, at least; if there is room for fewer, they are half as wide."""

_MAX_VALUES = 50_000
"""Values that are sorted to find percentiles."""

_OUTSIDE = 0.01
_BEYOND = 0.1
"""`low` and `high` are the percentiles of such a share of the values, moved apart by a tenth of
what is between them, but not beyond the extremes: most images end there."""

_CLIPPED_SHARE = 1e-3
"""A value that so many pixels share, and none goes beyond, is one where values were clipped."""

_DRAWN = 0.5
"""If a larger share of the neighbors in all other patches are equal, the image is a drawing, whose
constant patches say that it has no noise."""

_BAND = 32
"""Rows of an image that are compared at a time, in the cache."""


@dataclasses.dataclass(frozen=True)
class Extremes:
    """The least and the largest value of an image or of a part of it, and how many have them."""

    low: float
    low_count: int
    high: float
    high_count: int
    count: int

    @classmethod
    def of(cls, values: Array) -> Extremes:
        """Return the extremes of finite values."""
        if not values.size:
            return cls(math.inf, 0, -math.inf, 0, 0)
        ends = values.min(), values.max()
        parts = [
            values[..., first : first + _BAND, :] for first in range(0, values.shape[-2], _BAND)
        ]
        low_count, high_count = (
            sum(int(np.count_nonzero(part == end)) for part in parts) for end in ends
        )
        return cls(float(ends[0]), low_count, float(ends[1]), high_count, values.size)

    @classmethod
    def merge(cls, parts: Sequence[Extremes]) -> Extremes:
        """Return the extremes of the whole from those of its parts."""
        low, high = min(part.low for part in parts), max(part.high for part in parts)
        return cls(
            low,
            sum(part.low_count for part in parts if part.low == low),
            high,
            sum(part.high_count for part in parts if part.high == high),
            sum(part.count for part in parts),
        )

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Whether values seem to have been clipped at the least, and at the largest of them."""
        least = _CLIPPED_SHARE * self.count
        return self.low_count > least, self.high_count > least


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """What is looked at of an image, or of several pages that have their noise in common.

    Parameters
    ----------
    shape : (C, H, W)
        That of the image, or of a page.
    dtype : dtype
        That of the image.
    extremes : Extremes
        Those of all values.
    tiles : sequence of (C, h, w) arrays
        The whole of a small image, or parts of a large one.
    pages : int
        How many pages share the sample; their tiles follow each other.

    Examples
    --------
    >>> sample = Sample.of(np.arange(400, dtype=np.uint16).reshape(1, 20, 20) * 2)
    >>> sample.low, sample.high, sample.step
    (0.0, 798.0, 2.0)
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    extremes: Extremes
    tiles: Sequence[Array]
    pages: int = 1

    @classmethod
    def of(cls, planes: Array, pages: int = 1) -> Sample:
        """Sample (C, H, W) planes of finite values, one of so many pages."""
        channels, height, width = planes.shape
        tiles = [planes[place] for place in tile_places(planes.shape, pages)]
        return cls((channels, height, width), planes.dtype, Extremes.of(planes), tiles)

    @classmethod
    def together(cls, samples: Sequence[Sample]) -> Sample:
        """Return the sample of several pages of one shape."""
        if len(samples) == 1:
            return samples[0]
        return dataclasses.replace(
            samples[0],
            extremes=Extremes.merge([each.extremes for each in samples]),
            tiles=[tile for each in samples for tile in each.tiles],
            pages=len(samples),
        )

    def kept(self) -> Sample:
        """Return the sample with copies of its parts, so that the image can be forgotten."""
        return dataclasses.replace(self, tiles=[tile.copy() for tile in self.tiles])

    @functools.cached_property
    def _sorted(self) -> npt.NDArray[np.float64]:
        size = sum(tile.size for tile in self.tiles)
        step = max(1, math.isqrt(max(size - 1, 0) // _MAX_VALUES) + (size > _MAX_VALUES))
        values = [tile[:, ::step, ::step].ravel() for tile in self.tiles]
        return np.sort(np.concatenate(values)).astype(np.float64)

    @property
    def low(self) -> float:
        """The value that few are below: nearly the least one."""
        return self._ends[0]

    @property
    def high(self) -> float:
        """The value that few are above: nearly the largest one."""
        return self._ends[1]

    @functools.cached_property
    def _ends(self) -> tuple[float, float]:
        values = self._sorted
        if not values.size:
            return 0.0, 0.0
        outside = int(_OUTSIDE * values.size)
        low, high = float(values[outside]), float(values[-1 - outside])
        if low == high:
            return self.extremes.low, self.extremes.high
        beyond = _BEYOND * (high - low)
        return max(low - beyond, self.extremes.low), min(high + beyond, self.extremes.high)

    @functools.cached_property
    def step(self) -> float:
        """The smallest difference between two values: their quantisation, if there is one."""
        steps = np.diff(self._sorted)
        return float(steps[steps > 0].min(initial=math.inf)) if steps.any() else 0.0

    @functools.cached_property
    def mean(self) -> float:
        """The mean value."""
        return float(self._sorted.mean()) if self._sorted.size else 0.0

    @property
    def unit(self) -> float:
        """The 255th part of what the values fill; 0 if all are the same."""
        return (self.high - self.low) / 255

    @property
    def magnitude(self) -> float:
        """The largest value, of either sign."""
        ends = (self.extremes.low, self.extremes.high) if self.extremes.count else (0.0,)
        return max(map(abs, ends))

    def share_above(self, limit: float) -> float:
        """Return the share of the values above a limit."""
        count = sum(int(np.count_nonzero(tile > limit)) for tile in self.tiles)
        return count / max(sum(tile.size for tile in self.tiles), 1)

    @functools.cached_property
    def scaled_tiles(self) -> list[npt.NDArray[np.float32]]:
        """The tiles in float32, from 0 to 255 between `low` and `high`."""
        precise = np.float32 if self.dtype.itemsize < 4 else np.float64
        return [
            np.asarray(
                np.subtract(tile, self.low, dtype=precise) / self.unit, np.float32, order="C"
            )
            for tile in self.tiles
        ]

    @property
    def scaled_limits(self) -> tuple[float, float]:
        """The values on that scale beyond which noise was clipped; infinite where it was not."""
        low, high = (
            (end - self.low) / self.unit for end in (self.extremes.low, self.extremes.high)
        )
        clipped = self.extremes.clipped
        # Values next to those at which noise was clipped are left out, too.
        return low + 0.01 if clipped[0] else -math.inf, high - 0.01 if clipped[1] else math.inf


def sampled_pages(count: int) -> list[int]:
    """Return which of a stack's pages are looked at.

    Examples
    --------
    >>> sampled_pages(3), sampled_pages(99)
    ([0, 1, 2], [0, 14, 28, 42, 56, 70, 84, 98])
    """
    chosen = np.linspace(0, count - 1, min(count, SAMPLED_PAGES)).round().astype(int)
    return [int(number) for number in chosen]


def tile_places(shape: tuple[int, ...], pages: int = 1) -> list[tuple[slice, slice, slice]]:
    """Return where the tiles of (C, H, W) planes are: a small image is one tile."""
    _, height, width = shape
    budget = _MAX_PIXELS / pages
    if height * width <= budget:
        return [(slice(None), slice(None), slice(None))]
    side = _TILE if budget >= _LEAST_TILES * _TILE**2 else _TILE // 2
    tiles = budget / side**2
    # As many rows and columns of tiles as the image's shape asks for.
    rows = max(1, min(round(math.sqrt(tiles * height / width)), height // side or 1))
    columns = max(1, min(int(tiles / rows), width // side or 1))
    return [
        (slice(None), slice(top, top + side), slice(left, left + side))
        for top in np.linspace(0, max(height - side, 0), rows).astype(int).tolist()
        for left in np.linspace(0, max(width - side, 0), columns).astype(int).tolist()
    ]


def without_constant(patches: Array) -> Array:
    """Leave constant patches (N, size, size) out, which carry no information on noise.

    In a drawing they stay: there, they say that there is none.
    """
    varied = (patches != patches[:, :1, :1]).any(axis=(1, 2))
    if varied.all():
        return patches
    others = patches[varied]
    drawn = not others.size or (others[:, :, 1:] == others[:, :, :-1]).mean() > _DRAWN
    return patches if drawn else others
