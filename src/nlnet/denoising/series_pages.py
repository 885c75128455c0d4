"""Denoising the pages of a series: to units of their noise, merged, denoised, and back.

Large pages are cut into windows, so that their size does not matter. Motion and brightness are
estimated for each window, and so are the same wherever it is worked on: a task that sees one window
and what is around it has the result of the whole series in memory.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.denoising.network import Network
from nlnet.denoising.page import PlannedPage, blend, denoise_planes
from nlnet.denoising.plan import Plan
from nlnet.denoising.series import REACH, MergedPage, Page, merge_pages
from nlnet.denoising.sigma_map import SigmaMap
from nlnet.engine.series import Plane
from nlnet.noise import store
from nlnet.noise.camera import Camera
from nlnet.noise.record import Noise, Photon
from nlnet.noise.stabilisation import Stabiliser, even_out
from nlnet.progress import Report, ignore, one_of

_BASE = 16
"""Radius of the square whose mean stays as it is where noise that varies is made even: only detail
is multiplied, so that factors that vary do not bend what is smooth."""

_ALONE = 0.6
"""Share of the noise that is left from which on the page by itself counts."""

_DARK = 4
"""Photons, read noise included, below which the Anscombe transform makes noise weaker than 1."""


def denoise_series(
    count: int,
    read: Callable[[int], PlannedPage | None],
    network: Network,
    report: Report,
    wanted: Sequence[int] | None = None,
) -> Iterator[tuple[int, PlannedPage | None, Array | None]]:
    """Yield the number of every page, the page, and its denoised image; None if it is missing.

    Parameters
    ----------
    count : int
        Number of pages.
    read : callable
        Called once for each page, in order; None for one that is missing.
    network, report
        As for `nlnet.denoising.page.denoise_planes`.
    wanted : sequence of int, optional
        The numbers of the pages to denoise, in order; all by default.
    """
    chosen = range(count) if wanted is None else wanted
    planned: dict[int, PlannedPage | None] = {}

    def read_page(number: int) -> Page | None:
        found = planned[number] = read(number)
        return None if found is None else _in_units(found, network)

    pages = merge_pages(count, read_page, network.threads, chosen)
    for done, (number, merged) in enumerate(pages):
        found, image = planned[number], None
        if merged is not None and found is not None:
            part = one_of(report, done, len(chosen))
            image = found.page.put_back(_remove_left(found, merged, network, part))
        yield number, found, image
        planned = {each: page for each, page in planned.items() if each > number}
        report((done + 1) / len(chosen))


def _in_units(found: PlannedPage, network: Network) -> Page:
    """Return a page in units of its noise, denoised by itself as well."""
    noisy = _forward(found)
    guide = noisy
    if not found.plan.idle:
        given, unit = found.sigma_map, _unit(found)
        if given is not None and unit is not None:
            values = np.asarray(_map(found))
            given = SigmaMap(values, given.low / unit, given.high / unit)
        whole = dataclasses.replace(network, strength=(1.0, 1.0))
        guide, _ = denoise_planes(noisy, _unit_plan(found), whole, ignore, sigma_map=given)
    spread = None if isinstance(found.plan.noise, Camera) else _map(found)  # it is not white
    return Page(noisy, guide, found.page.hidden, spread, _even_from(found))


def _remove_left(found: PlannedPage, merged: MergedPage, network: Network, report: Report) -> Array:
    """Remove the noise that is left after merging, and return the page in its own units."""
    planes, plan = found.page.planes, found.plan
    if plan.idle:
        return planes.copy()
    whole = network.unblended()
    # Where hardly anything was averaged, the page by itself is the better result.
    averaged = np.clip((merged.left - _ALONE) / (1 - _ALONE), 0, 1)
    alone = averaged if whole.strength == (1, 1) else 0.0
    denoised = merged.guide
    if np.min(alone) < 1:
        left = np.asarray(merged.left * _map(found), np.float32)
        typical = float(np.median(left))
        gains = np.float32(typical) / left
        base = local_means(merged.noisy)
        even = base + (merged.noisy - base) * gains
        denoised, _ = denoise_planes(even, _unit_plan(found, typical), whole, report)
        denoised = alone * merged.guide + (1 - alone) * (base + (denoised - base) / gains)
    back = _inverse(found, denoised)
    if plan.box is not None:
        back = np.clip(back, *plan.box)
    return store(blend(planes, back, network.strength), planes.dtype)


def _unit_plan(found: PlannedPage, factor: float = 1.0) -> Plan:
    """Return the plan for a page whose noise has the standard deviation 1, times a factor."""
    plan = found.plan
    unit = _unit(found)
    noise: Noise = Noise.white(factor)
    span, black = plan.span, plan.black
    if unit is not None:
        span, black = span / unit, black / unit
        if isinstance(plan.noise, Camera):
            noise = plan.noise.scaled(factor / unit)
    return dataclasses.replace(plan, noise=noise, span=span, black=black, box=None)


def _unit(found: PlannedPage) -> float | None:
    """Return the standard deviation of the noise, None if it depends on the brightness."""
    if found.plan.sigmas is None:
        return found.plan.noise.sigma
    low, high = found.plan.sigmas
    return math.sqrt(max(low, high / 16) * high)


def _map(found: PlannedPage) -> Plane | float:
    """Return the map of sigma in units of the page's noise, 1 if there is none."""
    if found.sigma_map is None:
        return 1.0
    return np.asarray(found.sigma_map.values / _unit(found), np.float32)


def _even_from(found: PlannedPage) -> float | None:
    """Return the brightness above which estimated noise is even; None if it is given."""
    if not found.plan.estimated:
        return None
    if not isinstance(found.plan.noise, Photon):
        return -math.inf
    level = found.plan.noise.levels[0]
    dark = (_DARK * level.gain**2 - level.offset) / level.gain
    return float(Stabiliser(level).forward(np.array([dark]))[0])


def _forward(found: PlannedPage) -> Plane:
    planes, unit = found.page.planes, _unit(found)
    if found.plan.idle:
        return np.ascontiguousarray(planes, np.float32)
    if unit is not None:
        return np.ascontiguousarray(np.multiply(planes, 1 / unit, dtype=np.float32))
    return even_out(planes, found.plan.noise).astype(np.float32)


def _inverse(found: PlannedPage, planes: FloatArray) -> FloatArray:
    unit = _unit(found)
    if unit is not None:
        return np.asarray(planes * np.float32(unit))
    return even_out(planes, found.plan.noise, inverse=True)


def local_means(planes: FloatArray) -> FloatArray:
    """Return the mean of the square around every pixel of (C, H, W) planes.

    Examples
    --------
    >>> local_means(np.full((1, 40, 50), 3.0)).round(6).max()
    np.float64(3.0)
    """
    for axis in (1, 2):
        length = planes.shape[axis]
        sums = np.insert(np.cumsum(planes, axis, np.float64), 0, 0, axis)
        places = np.arange(length)
        first, last = np.maximum(places - _BASE, 0), np.minimum(places + _BASE + 1, length)
        shape = [1, 1, 1]
        shape[axis] = length
        planes = (sums.take(last, axis) - sums.take(first, axis)) / (last - first).reshape(shape)
    return planes


_WINDOW = 4096
"""Longest side of a page that is worked on as a whole."""

_AROUND = 512
"""Pixels around a window that are worked on with it: twice the reach of the networks, for the guide
and the result, and room for motion."""


def window_sides(length: int) -> tuple[tuple[int, ...], int]:
    """Return the sides of the windows that a side of a page is cut into, and the pixels around.

    Examples
    --------
    >>> window_sides(4000), window_sides(10000)
    (((4000,), 0), ((3333, 3333, 3334), 512))
    """
    count = -(-length // _WINDOW)
    ends = [length * number // count for number in range(count + 1)]
    sides = tuple(last - first for first, last in itertools.pairwise(ends))
    return sides, _AROUND if count > 1 else 0


def denoise_in_windows(
    size: tuple[int, int],
    count: int,
    read: Callable[[int], PlannedPage | None],
    network: Network,
    report: Report,
    wanted: Sequence[int] | None = None,
) -> Iterator[tuple[int, PlannedPage | None, Array | None]]:
    """Yield what `denoise_series` yields, for pages of any size."""
    windows = list(itertools.product(*map(_windows, size)))
    if len(windows) == 1:
        yield from denoise_series(count, read, network, report, wanted)
        return
    pages: dict[int, PlannedPage | None] = {}

    def whole(number: int) -> PlannedPage | None:
        """Read a page once; all windows come to it before the next but some."""
        if number not in pages:
            pages[number] = read(number)
            pages.pop(number - 2 * REACH - 1, None)
        return pages[number]

    def parts(at: int) -> Iterator[tuple[int, PlannedPage | None, Array | None]]:
        (_, rows, _), (_, columns, _) = windows[at]

        def read_part(number: int) -> PlannedPage | None:
            found = whole(number)
            return None if found is None else found.part((rows, columns))

        # All windows advance together: the last one tells how far the pages are.
        told = report if at + 1 == len(windows) else ignore
        return denoise_series(count, read_part, network, told, wanted)

    for results in zip(*map(parts, range(len(windows))), strict=True):
        number = results[0][0]
        found, image = pages[number], None
        for ((down, _, y), (right, _, x)), (*_, piece) in zip(windows, results, strict=True):
            if found is not None and piece is not None:
                image = found.page.image.astype(piece.dtype) if image is None else image
                image[down, right] = piece[y, x]
        yield number, found, image


def _windows(length: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield the windows of a side: each place, that with what is around, and the place in that."""
    sides, around = window_sides(length)
    for last, side in zip(itertools.accumulate(sides), sides, strict=True):
        first = last - side
        start, stop = max(0, first - around), min(length, last + around)
        yield slice(first, last), slice(start, stop), slice(first - start, last - start)
