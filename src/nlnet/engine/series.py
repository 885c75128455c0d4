"""Pages that show nearly the same, in the engine: the motion between them, and their average."""

import ctypes
import dataclasses
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nlnet.engine.jobs import threads_for
from nlnet.engine.library import instruction_set, load
from nlnet.engine.memory import address, call, checked_address

Given = TypeVar("Given")
Result = TypeVar("Result")
Plane = npt.NDArray[np.float32]

BLOCK = 8
"""Side of the blocks that have one vector of motion each."""

_BAND = 64
"""Rows that a thread merges at a time."""


def align(
    reference: Plane, other: Plane, noisy: tuple[Plane, Plane], expected: Plane | None = None
) -> tuple[Plane, Plane]:
    """Find the motion from one (H, W) plane to another, both denoised, in units of the noise.

    Parameters
    ----------
    reference, other : (H, W) arrays
        The planes.
    noisy : pair of arrays
        Both before they were denoised.
    expected : array, optional
        A field that is tried besides others.

    Returns
    -------
    field : (ceil(H / 8), ceil(W / 8), 2) array
        The vector (dy, dx) of every block.
    fits : (ceil(H / 8), ceil(W / 8), 8) array
        How the 16x16 pixels around it fit: mean and variance of the plane, the mean of the other
        one where it has moved to, the variance of the difference there, both without motion, and
        the covariance of the noisy planes with motion and without.
    """
    height, width = reference.shape
    blocks = _blocks(height, width)
    field, fits = np.empty((*blocks, 2), np.float32), np.empty((*blocks, 8), np.float32)
    given = [("The page", reference), ("The other page", other)]
    given += [("A noisy page", each) for each in noisy]
    pages = [checked_address(*each, reference.shape, np.float32) for each in given]
    start = None
    if expected is not None:
        start = checked_address("The expected motion", expected, field.shape, np.float32)
    _run("align", load().align_task(height, width, *pages, start, address(field), address(fits)))
    return field, fits


@dataclasses.dataclass(frozen=True, eq=False)
class Neighbour:
    """A page beside another one: that one shows ``gain * noisy + offset`` where it has moved to.

    Parameters
    ----------
    noisy, guide : (C, H, W) arrays
        The page and what it is compared by; NaN in the guide is left out.
    field : array
        The motion, as `align` finds it.
    gain, offset : float
        The change of brightness.
    """

    noisy: Plane
    guide: Plane
    field: Plane
    gain: float
    offset: float


def merge(
    noisy: Plane, guide: Plane, neighbours: Sequence[Neighbour], threads: int | None
) -> tuple[Plane, Plane, Plane]:
    """Average a (C, H, W) page with its neighbours, where the guides show the same.

    All values are in units of the noise, whose standard deviation is 1.

    Returns
    -------
    merged : (C, H, W) array
        The averaged page.
    left : (H, W) array
        The standard deviation of the noise that is left in it.
    removed : (H, W) array
        The same of the noise that the page has lost.
    """
    channels, height, width = shape = noisy.shape
    merged = np.empty(shape, np.float32)
    left, removed = np.empty((2, height, width), np.float32)
    structures = (load().neighbour * len(neighbours))(
        *(
            load().neighbour(
                checked_address("A neighbour", each.noisy, shape, np.float32),
                checked_address("A neighbour's guide", each.guide, shape, np.float32),
                checked_address("The motion", each.field, (*_blocks(height, width), 2), np.float32),
                each.gain,
                each.offset,
            )
            for each in neighbours
        )
    )

    page = checked_address("The page", noisy, shape, np.float32)
    given = page, checked_address("The guide", guide, shape, np.float32), structures
    results = address(merged), address(left), address(removed)

    def band(first: int, last: int) -> Any:
        sizes = height, width, channels, len(neighbours)
        return load().merge_task(*sizes, *given, first, last, *results)

    _run_in_bands("merge", band, shape, threads)
    return merged, left, removed


def keep(noisy: Plane, merged: Plane, removed: Plane, least: float, threads: int | None) -> Plane:
    """Return an averaged (C, H, W) page with what stands out of the noise that it has lost.

    Parameters
    ----------
    noisy, merged : (C, H, W) arrays
        The page and the average.
    removed : (H, W) array
        Standard deviation of the noise in their difference.
    least : float
        What stands out: coefficients of so many standard deviations.
    threads : int or None
        Number of threads.
    """
    channels, height, width = shape = noisy.shape
    kept = np.empty(shape, np.float32)

    given = (
        checked_address("The page", noisy, shape, np.float32),
        checked_address("The average", merged, shape, np.float32),
        checked_address("What is lost", removed, (height, width), np.float32),
    )

    def band(first: int, last: int) -> Any:
        return load().keep_task(height, width, channels, least, *given, first, last, address(kept))

    _run_in_bands("keep", band, shape, threads)
    return kept


def in_threads(
    function: Callable[[Given], Result], given: Sequence[Given], threads: int
) -> list[Result]:
    """Call a function of the engine for each of several values, in so many threads."""
    if min(threads, len(given)) < 2:
        return [function(each) for each in given]
    with ThreadPoolExecutor(min(threads, len(given))) as pool:
        return list(pool.map(function, given))


def _blocks(height: int, width: int) -> tuple[int, int]:
    return -(-height // BLOCK), -(-width // BLOCK)


def _run_in_bands(
    name: str,
    band: Callable[[int, int], Any],
    shape: tuple[int, ...],
    threads: int | None,
) -> None:
    """Run the tasks of some rows each in several threads."""

    def run(first: int) -> None:
        _run(name, band(first, min(first + _BAND, shape[1])))

    in_threads(run, range(0, shape[1], _BAND), threads_for(math.prod(shape), threads))


def _run(name: str, task: ctypes.Structure) -> None:
    """Run a task in this thread."""
    call(name, instruction_set(), ctypes.byref(task))
