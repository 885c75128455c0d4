"""What the engine finds out about the noise of an image, from a sample of its values."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from nlnet.arrays import Array, Float32Array
from nlnet.engine.jobs import Job, threads_for
from nlnet.engine.library import TYPES, check_status, instruction_set, load
from nlnet.engine.memory import address, array_at, call, usable
from nlnet.engine.network import EngineEye

KINDS = ("none", "white", "poisson", "camera")
"""``nlnet_found_kind``: the kinds of noise, in the order in which the eye gives their odds."""


@dataclasses.dataclass(frozen=True)
class Extremes:
    """The least and the largest value of an image or of a part of it, and how many have them."""

    low: float
    high: float
    low_count: int
    high_count: int
    count: int

    @classmethod
    def of(cls, values: Array) -> Extremes:
        """Return the extremes of finite values, (C, H, W) or (C, N)."""
        if not values.size:
            return cls(math.inf, -math.inf, 0, 0, 0)
        taken = usable(values if values.ndim == 3 else values[:, None])
        found = load().extremes()
        planes = ctypes.byref(_planes(taken))
        check_status(load().find_extremes(planes, TYPES[taken.dtype], ctypes.byref(found)))
        return cls(*(getattr(found, each.name) for each in dataclasses.fields(cls)))

    @classmethod
    def merge(cls, parts: Sequence[Extremes]) -> Extremes:
        """Return the extremes of the whole from those of its parts."""
        low, high = min(part.low for part in parts), max(part.high for part in parts)
        return cls(
            low,
            high,
            sum(part.low_count for part in parts if part.low == low),
            sum(part.high_count for part in parts if part.high == high),
            sum(part.count for part in parts),
        )


class Measures(NamedTuple):
    """What the values of a sample fill: nearly all are from low to high."""

    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    mean: float = 0.0


class EngineSample:
    """A sample as the engine takes it.

    Parameters
    ----------
    extremes : Extremes
        Those of all values of the image.
    tiles : sequence of (C, h, w) arrays
        All of one shape and dtype, page by page, row by row of their grid.
    pages, rows : int
        Pages, and rows of the grid that the tiles of each page are.
    """

    def __init__(self, extremes: Extremes, tiles: Sequence[Array], pages: int, rows: int) -> None:
        self._tiles = [usable(tile) for tile in tiles]  # alive as long as their addresses
        channels, *size = self._tiles[0].shape
        engine = load()
        self._given = engine.sample(
            engine.extremes(*dataclasses.astuple(extremes)),
            TYPES[self._tiles[0].dtype],
            channels,
            pages,
            engine.grid(rows, len(tiles) // (pages * rows), *size),
            (engine.planes * len(tiles))(*map(_planes, self._tiles)),
        )
        self._pixels = len(tiles) * math.prod(size)

    def measure(self) -> Measures:
        """Return what its values fill."""
        measures = load().measures()
        call("measure_sample", ctypes.byref(self._given), result=measures)
        return Measures(*(getattr(measures, name) for name in Measures._fields))

    def estimate_noise(
        self, eye: EngineEye, measures: Measures, kind: str | None, threads: int | None = None
    ) -> tuple[Any, Float32Array | None]:
        """Find out what the noise of the image is.

        Parameters
        ----------
        eye : EngineEye
            What looks at the sample, with the maps that ``docs/engine.md`` describes.
        measures : Measures
            Of the sample; what its values fill is not a single one.
        kind : str or None
            The kind of noise, one of `KINDS`; None to find out.
        threads : int, optional
            Number of threads; by default all CPUs the process may use.

        Returns
        -------
        found, strengths
            An ``nlnet_found_noise``, and the maps of strengths, (2, 3, h, w), if the eye has
            looked.
        """
        engine, count = load(), threads_for(self._pixels, threads)
        found = engine.found_noise()
        asked = 0 if kind is None else KINDS.index(kind)
        given = self._given, engine.measures(*measures), asked, instruction_set(), count
        task = engine.estimate_task(*given, ctypes.pointer(found))
        job = Job("estimate_noise", eye.handle, task, (eye, self, found))
        job.run(count)
        if not found.looked:
            return found, None
        # They are in the memory of the job.
        return found, array_at(found.strengths, (2, 3, found.rows, found.columns)).copy()


def sampled_pages(count: int) -> list[int]:
    """Return which of a stack's pages are looked at.

    Examples
    --------
    >>> sampled_pages(3), sampled_pages(99)
    ([0, 1, 2], [0, 14, 28, 42, 56, 70, 84, 98])
    """
    pages = (ctypes.c_int64 * load().constants["SAMPLE_PAGES"])()
    return pages[: load().sample_pages(count, pages)]


def tile_places(shape: tuple[int, ...], pages: int = 1) -> list[list[tuple[slice, slice, slice]]]:
    """Return where the tiles of (C, H, W) planes are, row by row: a small image is one tile."""
    whole, (_, height, width) = slice(None), shape
    if 0 in shape:
        return [[(whole, whole, whole)]]
    engine, grid = load(), load().grid()
    check_status(engine.sample_grid(height, width, pages, ctypes.byref(grid)))

    def starts(count: int, side: int, tile: int) -> list[slice]:
        firsts = (engine.tile_start(number, count, side, tile) for number in range(count))
        return [slice(first, first + tile) for first in firsts]

    columns = starts(grid.columns, width, grid.width)
    rows = starts(grid.rows, height, grid.height)
    return [[(whole, row, column) for column in columns] for row in rows]


def _planes(values: Array) -> Any:
    return load().planes(address(values), *values.shape, *values.strides)
