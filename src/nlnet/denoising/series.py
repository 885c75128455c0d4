"""Pages that show nearly the same, as of a movie or a stack: each is merged with its neighbours.

What a page and its neighbours share is averaged before a network removes the noise that is left.
Each page is denoised by itself first. These guides tell how things move between pages, and where a
neighbour shows something else (`nlnet.engine.series`). Where it does, it is left out, so that at a
cut a page comes out as by itself.

All pages are in units of their noise, whose standard deviation is 1.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array
from nlnet.denoising.series_motion import Motion, Motions, find_motion, follow, moves
from nlnet.engine.jobs import threads_for
from nlnet.engine.series import BLOCK, Neighbour, Plane, in_threads, keep, merge
from nlnet.masks import Mask

REACH = 4
"""How many pages before and after a page are its neighbours."""

_ALIKE = 0.85
_GUIDES = 0.01
"""A page shows another scene if it differs from one by more than this share of the variance that
the one shows, and what guides err by."""

_KEPT = 4.0
"""What stands out of the noise that a page loses, in its standard deviation: noise itself does in
one of 16,000 coefficients."""

_TREND, _BALANCED = 2.0, 3.0
"""How much more than the nearest page others may differ if nothing moves: those on one side alone,
and those that pages as far on the other side balance. What grows or fades differs more and more."""

_POINT, _AROUND = 5.0, 4
"""What a point stands out by to be one that only this page shows, in standard deviations of what
averaging removes within 5x5 pixels, and the pixels around it that are left as they are."""

_MERGED = 0.6
"""Share of the noise that averaging removes, at least, where it tells how strong the noise is."""

_REMOVED = 0.98
"""What the squares of tuning films say in the median, if the noise is known."""

_SQUARES = 50
"""How many squares of pixels tell that, at least."""


@dataclasses.dataclass(frozen=True, eq=False)
class Page:
    """A page of a series.

    Parameters
    ----------
    noisy : (C, H, W) array
        The page; pixels that are left out are filled.
    guide : (C, H, W) array
        The page, denoised by itself.
    hidden : (H, W) array of bool or None
        The pixels that are left out.
    spread : (H, W) array, float or None
        Standard deviation of the noise; None if noise is stronger in some frequencies than others.
    even_from : float or None
        Brightness from which on the noise has that strength, if it was found from the pages and so
        may be wrong: noise of next to no photons is weaker than 1. None if it is given.
    """

    noisy: Plane
    guide: Plane
    hidden: Mask | None = None
    spread: Plane | float | None = 1.0
    even_from: float | None = None

    def luminance(self) -> tuple[Plane, Plane]:
        """Return that of both."""
        if len(self.guide) == 1:
            return self.noisy[0], self.guide[0]
        return self.noisy.mean(0, dtype=np.float32), self.guide.mean(0, dtype=np.float32)

    def as_neighbour(self, field: Plane, gain: float, offset: float) -> Neighbour:
        """Return the page as a neighbour of another one."""
        guide = self.guide
        if self.hidden is not None:
            guide = np.where(self.hidden, np.float32(np.nan), guide)
        return Neighbour(self.noisy, guide, field, gain, offset)


@dataclasses.dataclass(frozen=True, eq=False)
class MergedPage:
    """A page that has been averaged with its neighbours.

    Parameters
    ----------
    noisy : (C, H, W) array
        The average.
    left : (H, W) array
        Standard deviation of the noise in it.
    guide : (C, H, W) array
        The page, denoised by itself.
    """

    noisy: Plane
    left: Plane
    guide: Plane


def merge_pages(
    count: int,
    read: Callable[[int], Page | None],
    threads: int | None,
    wanted: Iterable[int] | None = None,
) -> Iterator[tuple[int, MergedPage | None]]:
    """Yield the pages of a series with their numbers, each merged with its neighbours.

    Only a page, its neighbours and the result are in memory.

    Parameters
    ----------
    count : int
        Number of pages.
    read : callable
        Called once for each page that is needed, in order; returns None for a page that is missing,
        which is nobody's neighbour, and for which None is yielded.
    threads : int or None
        Number of threads.
    wanted : iterable of int, optional
        The numbers of the pages to merge, in order; all by default.
    """
    pages: dict[int, Page | None] = {}
    motions: Motions = {}
    for number in range(count) if wanted is None else wanted:
        near = range(max(0, number - REACH), min(number + REACH + 1, count))
        pages = {each: pages[each] if each in pages else read(each) for each in near}
        there = {each: page for each, page in pages.items() if page is not None}
        if number not in there:
            yield number, None
            continue
        motions = {pair: found for pair, found in motions.items() if there.keys() >= {*pair}}
        merged, left = merge_page(there, number, threads, motions)
        yield number, MergedPage(merged, left, there[number].guide)


def merge_page(
    pages: Mapping[int, Page], number: int, threads: int | None, motions: Motions | None = None
) -> tuple[Plane, Plane]:
    """Return a page averaged with others, and the standard deviation of the noise that is left.

    Parameters
    ----------
    pages : mapping
        Pages by their numbers in the series.
    number : int
        Of the page to average.
    threads : int or None
        Number of threads.
    motions : dict, optional
        The motion between pages and the next ones before and after that is known from before; what
        is found is added.
    """
    motions = {} if motions is None else motions
    page, order = pages[number], sorted(pages)
    shown = {each: page.luminance() for each, page in pages.items()}

    def find(pair: tuple[int, int], expected: Plane | None = None) -> Motion:
        return find_motion(shown[pair[0]], shown[pair[1]], expected)

    several = threads_for(page.noisy.size, threads)
    steps = [*itertools.pairwise(order), *itertools.pairwise(order[::-1])]
    missing = [step for step in steps if step not in motions]
    motions.update(zip(missing, in_threads(find, missing, several), strict=True))
    place = order.index(number)
    # What things do from page to page leads to where they are in pages further away.
    expected: dict[int, Plane] = {}
    for way in (order[place:], order[place::-1]):
        field = None
        for step in itertools.pairwise(way):
            field = follow(field, motions[step].field)
            expected[step[1]] = field

    def motion_of(other: int) -> Motion:
        known = motions.get((number, other))
        return known or find((number, other), expected[other])

    others = [each for each in order if each != number]
    found = dict(zip(others, in_threads(motion_of, others, several), strict=True))
    # Pages that show something else do not tell what moves.
    if not moves([each for each in found.values() if is_alike(each)]):
        found = {other: each.still() for other, each in found.items()}
        found = near_enough(found, number)
    alike = [
        pages[other].as_neighbour(each.field, each.gain, each.offset)
        for other, each in found.items()
        if is_alike(each)
    ]
    merged, left, removed = merge(page.noisy, page.guide, alike, threads)
    if alike and page.even_from is not None and page.spread is not None:
        bright = page.guide.min(axis=0) >= page.even_from
        factor = strength_of_noise(page.noisy - merged, np.where(bright, removed, 0))
        left, removed = left * factor, removed * factor
    if alike and page.spread is not None:
        merged = keep(page.noisy, merged, removed * page.spread, _KEPT, threads)
        points = shown_once(page.noisy - merged, removed * page.spread)
        merged, left = np.where(points, page.noisy, merged), np.where(points, np.float32(1), left)
    return merged, left


def near_enough(found: Mapping[int, Motion], number: int) -> dict[int, Motion]:
    """Return the neighbours of a page that differ little more than the nearest one does."""
    nearest = min(found, key=lambda other: (abs(other - number), found[other].left), default=number)
    return {
        other: each
        for other, each in found.items()
        if each.left <= (_BALANCED if 2 * number - other in found else _TREND) * found[nearest].left
    }


def is_alike(found: Motion) -> bool:
    """Whether two pages show the same scene."""
    return found.left < _ALIKE * found.shown + _GUIDES


def shown_once(lost: Plane, removed: Plane) -> Mask:
    """Return where a page shows points that its neighbours do not, (H, W).

    Parameters
    ----------
    lost : (C, H, W) array
        What averaging has taken from the page.
    removed : (H, W) array
        Standard deviation of the noise in it.

    Examples
    --------
    >>> lost = np.zeros((1, 20, 20), np.float32)
    >>> lost[0, 9:12, 9:12] = 4
    >>> shown_once(lost, np.ones((20, 20), np.float32)).any(axis=0).nonzero()[0]
    array([ 5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15])
    """
    wide = np.pad(lost, ((0, 0), (2, 2), (2, 2)), mode="edge")
    for _ in range(4):  # 1, 4, 6, 4, 1, whose squares have the sum 70
        wide = wide[:, 1:] + wide[:, :-1]
        wide = wide[:, :, 1:] + wide[:, :, :-1]
    points = np.asarray((np.abs(wide) > 70 * _POINT * removed).any(axis=0))
    if not points.any():
        return points
    around: Array = np.pad(points, _AROUND)
    for axis in (0, 1):
        around = np.asarray(sliding_window_view(around, 2 * _AROUND + 1, axis).any(axis=-1))
    return around


def strength_of_noise(lost: Plane, removed: Plane) -> np.float32:
    """Return the standard deviation of what averaging has removed, relative to what it should be.

    Texture that is taken for noise in every page by itself is the same in its neighbours, so that
    averaging does not remove it: what it removes tells how strong the noise is. Squares in which
    neighbours show something else have too much of it, so the median of all squares counts; and
    noise is never taken for stronger than each page says.
    """
    rows, columns = removed.shape[0] // BLOCK, removed.shape[1] // BLOCK
    lost, removed = (each[..., : rows * BLOCK, : columns * BLOCK] for each in (lost, removed))
    shape = rows, BLOCK, columns, BLOCK
    merged = removed.reshape(shape).min(axis=(1, 3)) > _MERGED
    if np.count_nonzero(merged) < _SQUARES:
        return np.float32(1)
    units = lost / np.maximum(removed, np.float32(_MERGED))
    variances = units.reshape(-1, *shape).var(axis=(2, 4))
    return np.float32(min(1.0, math.sqrt(float(np.median(variances[:, merged]))) / _REMOVED))
