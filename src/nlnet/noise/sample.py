"""What is looked at to find the noise of an image: a sample of its values, of bounded size.

An array fills it, several pages of a stack do so together, and a dask array does it chunk by chunk.
Which pages and tiles that are, and what their values fill, the engine says
(``engine/src/estimates/sample.cpp``). Everything that is decided about the noise is decided
relative to that, whatever the dtype could hold. The ends of what values fill are percentiles, so
that stars and hot pixels are not taken for white.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.engine.estimates import EngineSample, Extremes, Measures, tile_places
from nlnet.errors import InputError

LEAST_SIDE = 8
"""Pixels that an image must have along a side for its noise to be estimated."""


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
    rows : int
        Rows of the grid that the tiles of a page are on.

    Examples
    --------
    >>> sample = Sample.of(np.arange(400, dtype=np.uint16).reshape(1, 20, 20) * 2)
    >>> sample.measures
    Measures(low=0.0, high=798.0, step=2.0, mean=399.0)
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    extremes: Extremes
    tiles: Sequence[Array]
    pages: int = 1
    rows: int = 1

    @classmethod
    def of(cls, planes: Array, pages: int = 1) -> "Sample":
        """Sample (C, H, W) planes of finite values, one of so many pages."""
        channels, height, width = planes.shape
        places = tile_places(planes.shape, pages)
        tiles = [planes[place] for row in places for place in row]
        extremes = Extremes.of(planes)
        return cls((channels, height, width), planes.dtype, extremes, tiles, rows=len(places))

    @classmethod
    def together(cls, samples: "Sequence[Sample]") -> "Sample":
        """Return the sample of several pages of one shape."""
        if len(samples) == 1:
            return samples[0]
        return dataclasses.replace(
            samples[0],
            extremes=Extremes.merge([each.extremes for each in samples]),
            tiles=[tile for each in samples for tile in each.tiles],
            pages=len(samples),
        )

    def kept(self) -> "Sample":
        """Return the sample with copies of its parts, so that the image can be forgotten."""
        return dataclasses.replace(self, tiles=[tile.copy() for tile in self.tiles])

    def for_engine(self) -> EngineSample:
        """Return the sample as the engine takes it."""
        return EngineSample(self.extremes, self.tiles, self.pages, self.rows)

    @functools.cached_property
    def measures(self) -> Measures:
        """What the values fill, as the engine tells."""
        return self.for_engine().measure() if self.extremes.count else Measures()

    @property
    def unit(self) -> float:
        """The 255th part of what the values fill; 0 if all are the same."""
        return (self.measures.high - self.measures.low) / 255

    @property
    def magnitude(self) -> float:
        """The largest value, of either sign."""
        ends = (self.extremes.low, self.extremes.high) if self.extremes.count else (0.0,)
        return max(map(abs, ends))

    def share_above(self, limit: float) -> float:
        """Return the share of the values above a limit."""
        count = sum(int(np.count_nonzero(tile > limit)) for tile in self.tiles)
        return count / max(sum(tile.size for tile in self.tiles), 1)


def check_size(shape: tuple[int, ...]) -> None:
    """Raise InputError if an image of shape (C, H, W) is too small."""
    if min(shape[1:]) < LEAST_SIDE:
        raise InputError(
            f"The image is {shape[2]}x{shape[1]} pixels, but estimating its noise takes at least "
            f"{LEAST_SIDE}x{LEAST_SIDE}; give sigma instead."
        )
