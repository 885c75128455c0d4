"""Pages that show nearly the same, as of a movie or a stack: each is merged with its neighbours.

What a page and its neighbours share is averaged before a network removes the noise that is left.
Each page is denoised by itself first. These guides tell how things move between pages, and where a
neighbour shows something else (`nlnet.engine.series`). Where it does, it is left out, so that at a
cut a page comes out as by itself.

All pages are in units of their noise, whose standard deviation is 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

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

_MISFIT = 0.3
"""What the means of blocks may differ by after a change of brightness, in the median: if more is
left, no such change explains it."""

_UNLIKE = 0.05
"""Variance by which a difference may exceed what a page shows, on average over its blocks: beyond,
it is another scene."""

_MOVES = 0.72
"""Share that motion must leave at most of the differences without it: structures that grow or fade
from page to page, as in a stack, look as if they moved, but fit hardly better for it."""

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
    noisy : (C, H, W) array
        The average.
    left : (H, W) array
        Standard deviation of the noise in it.
    """

    noisy: Plane
    left: Plane


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
    for number in range(count) if wanted is None else wanted:
        near = range(max(0, number - REACH), min(number + REACH + 1, count))
        pages = {each: pages[each] if each in pages else read(each) for each in near}
        page = pages[number]
        others = [each for at, each in pages.items() if at != number and each is not None]
        yield number, None if page is None else MergedPage(*merge_page(page, others, threads))


def merge_page(page: Page, others: list[Page], threads: int | None) -> tuple[Plane, Plane]:
    """Return a page averaged with others, and the standard deviation of the noise that is left."""
    luminance = _luminance(page)

    def motion_of(other: Page) -> Motion:
        return find_motion(luminance, _luminance(other))

    found = in_threads(motion_of, others, threads_for(page.noisy.size, threads))
    left, before = (sum(getattr(each, name) for each in found) for name in ("left", "before"))
    if left > _MOVES * before:
        found = [each.still() for each in found]
    alike = [
        other.as_neighbour(each.field, each.gain, each.offset)
        for each, other in zip(found, others, strict=True)
        if each.left < each.shown + _UNLIKE
    ]
    return merge(page.noisy, page.guide, alike, threads)


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """How a page has moved and changed its brightness to become another one.

    Parameters
    ----------
    field, fits : array
        As `align` finds them.
    gain, offset : float
        What makes the other page as bright as this one.
    """

    field: Plane
    fits: Plane
    gain: float = 1.0
    offset: float = 0.0

    @classmethod
    def between(cls, field: Plane, fits: Plane) -> Motion:
        """Return the motion together with the change of brightness, if there is one."""
        means = fits[..., (0, 2)]
        gain, offset = change_of_brightness(means)
        rest = means[..., 0] - gain * means[..., 1] - offset
        if np.median(np.abs(rest)) > _MISFIT:
            gain, offset = 1.0, 0.0
        return cls(field, fits, gain, offset)

    @property
    def shown(self) -> float:
        """Mean variance of what the page shows in a block."""
        return float(self.fits[..., 1].mean())

    @property
    def left(self) -> float:
        """Mean variance of the difference in a block."""
        return float(self.fits[..., 3].mean())

    @property
    def before(self) -> float:
        """The same without motion."""
        return float(self.fits[..., 5].mean())

    def still(self) -> Motion:
        """Return what there is without motion."""
        fits = np.concatenate([self.fits[..., :2], self.fits[..., 4:], self.fits[..., 4:]], axis=-1)
        return Motion.between(np.zeros_like(self.field), fits)


def find_motion(reference: Plane, other: Plane) -> Motion:
    """Return the motion from one (H, W) guide to another, with the change of brightness back."""
    found = Motion.between(*align(reference, other))
    if abs(found.gain - 1) <= _NEGLIGIBLE:
        return found
    # What is darker has smaller gradients, so that motion looks smaller than it is.
    scaled = other * np.float32(found.gain) + np.float32(found.offset)
    field, fits = align(reference, scaled)
    fits[..., (2, 4)] = (fits[..., (2, 4)] - found.offset) / found.gain
    return Motion.between(field, fits)


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
