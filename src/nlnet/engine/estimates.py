"""What the engine finds out about the noise of an image, from a sample of its values."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.engine.jobs import Job, threads_for
from nlnet.engine.library import check_status, instruction_set, load
from nlnet.engine.memory import address, call_in_memory
from nlnet.engine.network import EngineEye
from nlnet.engine.structures import (
    SAMPLE_PAGES,
    TYPES,
    EstimateTask,
    ExtremesFound,
    Grid,
    Measures,
    NoiseFound,
    Planes,
    SampleGiven,
)

KINDS = ("none", "white", "poisson", "camera")
"""``nlnet_found_kind``: the kinds of noise, in the order in which the eye gives their odds."""


class EngineSample:
    """A sample as the engine takes it.

    Parameters
    ----------
    extremes : ExtremesFound
        Those of all values of the image.
    tiles : sequence of (C, h, w) arrays
        All of one shape and dtype, page by page, row by row of their grid.
    pages, rows : int
        Pages, and rows of the grid that the tiles of each page are.
    """

    def __init__(
        self, extremes: ExtremesFound, tiles: Sequence[Array], pages: int, rows: int
    ) -> None:
        self._tiles = [_taken(tile) for tile in tiles]  # alive as long as their addresses
        self.channels, self.height, self.width = self._tiles[0].shape
        self.given = SampleGiven(
            extremes,
            TYPES[self._tiles[0].dtype],
            self.channels,
            pages,
            Grid(rows, len(tiles) // (pages * rows), self.height, self.width),
            (Planes * len(tiles))(*map(_planes, self._tiles)),
        )

    @property
    def pixels(self) -> int:
        """Pixels of all tiles."""
        return len(self._tiles) * int(self.height * self.width)


class Estimate(NamedTuple):
    """Noise that was found, and its strengths, (2, 3, h, w), if the eye has looked."""

    found: NoiseFound
    strengths: npt.NDArray[np.float32] | None

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return KINDS[self.found.kind]

    @property
    def odds(self) -> dict[str, float]:
        """The probability of each of `KINDS`, as the eye gives it."""
        return dict(zip(KINDS, self.found.odds, strict=True))


def sampled_pages(count: int) -> list[int]:
    """Return which of a stack's pages are looked at."""
    pages = (ctypes.c_int64 * SAMPLE_PAGES)()
    return pages[: load().nlnet_sample_pages(count, pages)]


def tile_places(height: int, width: int, pages: int) -> list[list[tuple[slice, slice]]]:
    """Return where the tiles of a page of this size are, row by row; a small one is one tile."""
    library, grid = load(), Grid()
    check_status(library.nlnet_sample_grid(height, width, pages, ctypes.byref(grid)), "The sample")

    def starts(count: int, side: int, tile: int) -> list[slice]:
        firsts = (library.nlnet_tile_start(number, count, side, tile) for number in range(count))
        return [slice(first, first + tile) for first in firsts]

    columns = starts(grid.columns, width, grid.width)
    return [[(row, column) for column in columns] for row in starts(grid.rows, height, grid.height)]


def find_extremes(values: Array) -> ExtremesFound:
    """Return the extremes of (C, H, W) or (C, N) finite values, of which there are some."""
    extremes, taken = ExtremesFound(), _taken(values if values.ndim == 3 else values[:, np.newaxis])
    given = ctypes.byref(_planes(taken)), TYPES[taken.dtype], ctypes.byref(extremes)
    check_status(load().nlnet_find_extremes(*given), "The sample")
    return extremes


def measure(sample: EngineSample) -> Measures:
    """Return what the values of a sample fill."""
    measures, given = Measures(), ctypes.byref(sample.given)
    call_in_memory(load().nlnet_measure_sample, "The sample", given, result=measures)
    return measures


def estimate_noise(
    eye: EngineEye,
    sample: EngineSample,
    measures: Measures,
    kind: str | None,
    threads: int | None = None,
) -> Estimate:
    """Find out what the noise of an image is.

    Parameters
    ----------
    eye : EngineEye
        What looks at the sample, with the maps that ``docs/engine.md`` describes.
    sample, measures
        Of the image; what its values fill is not a single one.
    kind : str or None
        The kind of noise, one of `KINDS`; None to find out.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.
    """
    found, count = NoiseFound(), threads_for(sample.pixels, threads)
    asked = 0 if kind is None else KINDS.index(kind)
    task = EstimateTask(
        sample.given, measures, asked, instruction_set(), count, ctypes.pointer(found)
    )
    job = Job(eye, task, (sample, found))
    job.run(count)
    if not found.looked:
        return Estimate(found, None)
    shape = (2, 3, found.rows, found.columns)
    maps = (ctypes.c_float * int(np.prod(shape))).from_address(found.strengths)
    strengths = np.array(maps, np.float32).reshape(shape)
    found.strengths = None  # they were in the memory of the job
    return Estimate(found, strengths)


def _taken(values: Array) -> Array:
    """Return values as the engine takes them; half precision and foreign byte order are copied."""
    if values.dtype in TYPES and values.dtype.isnative:
        return values
    native = values.dtype.newbyteorder("=")
    return values.astype(native if native in TYPES else np.float32)


def _planes(values: Array) -> Planes:
    return Planes(address(values), *values.shape, *values.strides)
