"""Pages that show nearly the same, as of a movie or a stack: each is merged with its neighbours.

What a page and its neighbours share is averaged before a network removes the noise that is left.
Each page is denoised by itself first. These guides tell how things move between pages, and where a
neighbour shows something else (`nlnet.engine.series`). Where it does, it is left out, so that at a
cut a page comes out as by itself.

All pages are in units of their noise, whose standard deviation is 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from nlnet.engine.jobs import threads_for
from nlnet.engine.series import Neighbour, Plane, align, in_threads, merge
from nlnet.masks import Mask

REACH = 4
"""How many pages before and after a page are its neighbours."""

_RIDGE = 0.1
"""Variance of the brightness of blocks, in that of the noise, at which a gain that is estimated is
halfway between 1 and what the blocks say: without contrast, there is only an offset."""

_ROUNDS = 4
"""Of estimating the change of brightness, each without what fits worst before."""

_UNLIKE = 0.3
"""Misfit above which a page shows something else altogether, as after a cut."""

_NEGLIGIBLE = 0.1
"""Change of the gain below which motion is found well enough."""

_GAINS = (0.25, 4.0)
"""Changes of brightness that are allowed for."""


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
    """

    noisy: Plane
    guide: Plane
    hidden: Mask | None = None

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
    number : int
        Which page it is, from 0.
    noisy : (C, H, W) array
        The average.
    left : (H, W) array
        Standard deviation of the noise in it.
    """

    number: int
    noisy: Plane
    left: Plane


def merge_pages(
    count: int, read: Callable[[int], Page | None], threads: int | None
) -> Iterator[MergedPage | None]:
    """Yield every page of a series, merged with its neighbours.

    Only a page, its neighbours and the result are in memory.

    Parameters
    ----------
    count : int
        Number of pages.
    read : callable
        Called once for each page, in order; returns None for a page that is missing, which is
        nobody's neighbour, and for which None is yielded.
    threads : int or None
        Number of threads.
    """
    pages: dict[int, Page | None] = {}
    for number in range(count):
        for each in range(number + REACH if number else 0, min(number + REACH + 1, count)):
            pages[each] = read(each)
        pages.pop(number - REACH - 1, None)
        page = pages[number]
        others = [each for at, each in sorted(pages.items()) if at != number and each is not None]
        yield None if page is None else MergedPage(number, *merge_page(page, others, threads))


def merge_page(page: Page, others: list[Page], threads: int | None) -> tuple[Plane, Plane]:
    """Return a page averaged with others, and the standard deviation of the noise that is left."""
    luminance = _luminance(page)

    def neighbour(other: Page) -> Neighbour | None:
        field, gain, offset, misfit = find_motion(luminance, _luminance(other))
        return None if misfit > _UNLIKE else other.as_neighbour(field, gain, offset)

    workers = threads_for(page.noisy.size, threads)
    alike = [each for each in in_threads(neighbour, others, workers) if each is not None]
    return merge(page.noisy, page.guide, alike, threads)


def find_motion(reference: Plane, other: Plane) -> tuple[Plane, float, float, float]:
    """Return the motion from one (H, W) guide to another, gain and offset back, and the misfit.

    The misfit is the median of what is left of the difference of the means of blocks.
    """
    field, means = align(reference, other)
    gain, offset = change_of_brightness(means)
    if abs(gain - 1) > _NEGLIGIBLE:
        # What is darker has smaller gradients, so that motion looks smaller than it is.
        field, means = align(reference, other * np.float32(gain) + np.float32(offset))
        more_gain, more_offset = change_of_brightness(means)
        rest = means[..., 0] - more_gain * means[..., 1] - more_offset
        gain, offset = gain * more_gain, offset * more_gain + more_offset
    else:
        rest = means[..., 0] - gain * means[..., 1] - offset
    return field, gain, offset, float(np.median(np.abs(rest)))


def change_of_brightness(means: npt.NDArray[np.floating]) -> tuple[float, float]:
    """Return the gain and offset that turn the brightness of a page into that of another.

    Parameters
    ----------
    means : (..., 2) array
        Means of blocks of the other page and of the page, in units of the noise.

    Examples
    --------
    >>> here = np.linspace(5, 90, 50)
    >>> gain, offset = change_of_brightness(np.stack([0.8 * here + 2, here], axis=-1))
    >>> round(gain, 2), round(offset, 1)
    (0.8, 2.0)
    """
    wanted, given = means.reshape(-1, 2).T.astype(np.float64)
    weights = np.ones_like(given)
    gain, offset = 1.0, 0.0
    for _ in range(_ROUNDS):
        center, target = np.average(given, weights=weights), np.average(wanted, weights=weights)
        ridge = _RIDGE * weights.sum()
        products = weights * (given - center)
        gain = float(
            (np.sum(products * (wanted - target)) + ridge)
            / (np.sum(products * (given - center)) + ridge)
        )
        gain = min(max(gain, _GAINS[0]), _GAINS[1])
        offset = float(target - gain * center)
        apart = np.abs(wanted - gain * given - offset)
        weights = 1 / (1 + (apart / (2 * np.median(apart) + 1e-6)) ** 2) ** 2
    return gain, offset


def _luminance(page: Page) -> Plane:
    luminance: Plane = page.guide[0]
    if len(page.guide) > 1:
        luminance = page.guide.mean(axis=0, dtype=np.float32)
    return luminance
