"""The pages of an image file, of a command or of an upload: denoised one after the other."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings, denoise_page, plan_together
from nlnet.denoising.pages import groups_of_pages
from nlnet.denoising.plan import SURE, Plan, Request
from nlnet.denoising.series_pages import PlannedPage
from nlnet.denoising.series_windows import denoise_in_windows
from nlnet.denoising.strength import check_strength
from nlnet.errors import InputError, about
from nlnet.files.series import series_of_file
from nlnet.files.settings import FileSigma, Settings
from nlnet.images import ImageFile
from nlnet.inputs import find_data_range
from nlnet.masks import Planes, is_missing, read_planes
from nlnet.noise.record import Camera, Noise, NoNoise
from nlnet.progress import Report, one_of

Side: TypeAlias = Callable[[int], Array | None]
"""Called with the number of a page; returns what lies beside it, a mask or a map of sigma."""


def denoise_pages(
    pages: Sequence[ImageFile],
    settings: Settings,
    network: Network,
    report: Report,
    *,
    name: str,
    mask_of: Side = lambda _: None,
    map_of: Side = lambda _: None,
) -> tuple[list[ImageFile], list[PageFindings]]:
    """Denoise all pages of a file, and say what was found in each.

    Parameters
    ----------
    pages : sequence of ImageFile
        The pages, which are decoded when they are asked for.
    settings : Settings
        What is asked for.
    network, report
        As for `nlnet.denoising.page.denoise_page`.
    name : str
        What errors call the file.
    mask_of, map_of : callable
        What masks, and maps of sigma if white is 255, lie beside the pages.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`; errors name the page.
    """
    count = len(pages)
    work = PageWork(
        pages,
        settings,
        network,
        name,
        lambda number: name_of_page(name, number, count),
        mask_of,
        map_of,
    )
    if settings.along is None:
        done = work.alone(report)
    else:
        with about(repr(name)):
            series = series_of_file(pages[0], count, settings.along)
        parts = (one_of(report, number, len(series)) for number in range(len(series)))
        done = itertools.chain.from_iterable(map(work.along, series, parts))
    results = sorted(done, key=lambda result: result[0])
    return [page for _, page, _ in results], [found for *_, found in results if found is not None]


Denoised: TypeAlias = tuple[int, ImageFile, PageFindings | None]
"""The number of a page, what it has become, and what was found; None if it is missing."""


class PageWork:
    """The work on pages, of one file or of several; parameters are as for `denoise_pages`.

    `names` is called with the number of a page, and returns what errors call it.
    """

    def __init__(
        self,
        pages: Sequence[ImageFile],
        settings: Settings,
        network: Network,
        name: str,
        names: Callable[[int], str],
        mask_of: Side,
        map_of: Side,
    ) -> None:
        self._pages, self._first = pages, pages[0]
        self._network, self._names = network, names
        self._mask_of, self._map_of = mask_of, map_of
        self._skips = settings.along is not None
        # Values that integers would round away are kept where floating ones are written.
        self._dtype = np.dtype(np.float32) if settings.writing.depth == "float32" else None
        with about(repr(name)):
            self._sigmas = sigmas_of_pages(settings.sigma, len(pages))
        strength, channels = settings.strength, self._first.channels
        if isinstance(strength, tuple) and channels == 1:
            strength = strength[0]
        self._shares = check_strength(strength, channels)
        white = settings.data_range or self._first.data_range
        error = settings.error is not None
        self._request = Request(settings.noise, white, hot_pixels=settings.hot_pixels, error=error)
        each = settings.per_page or map_of(0) is not None
        leading = self._first.leading
        leading = leading if math.prod(leading) == len(pages) else (len(pages),)
        with about(repr(name)):
            self._groups = groups_of_pages(leading, settings.noise_axis, per_page=each).ravel()
        self._plans: dict[int, Plan] = {}

    def alone(self, report: Report) -> Iterator[Denoised]:
        """Denoise every page by itself."""
        for number in range(len(self._pages)):
            page, planes = self._read(number)
            assert planes is not None
            with about(self._names(number)):
                pixels, found = denoise_page(
                    planes,
                    self._sigma(number, planes),
                    self._request,
                    self._shares,
                    self._network,
                    one_of(report, number, len(self._pages)),
                    self._common(number),
                    self._dtype,
                )
            yield number, _with_pixels(page, pixels), found

    def along(
        self, numbers: Sequence[int], report: Report, wanted: Collection[int] | None = None
    ) -> Iterator[Denoised]:
        """Denoise pages that are neighbors, given their numbers in order; of them those wanted."""
        kept: dict[int, ImageFile] = {}

        def planned(place: int) -> PlannedPage | None:
            number = numbers[place]
            kept[place], planes = self._read(number)
            if planes is None:
                return None
            with about(self._names(number)):
                asked = self._sigma(number, planes), self._request, self._common(number)
                return PlannedPage.of(planes, *asked, self._dtype)

        chosen = [at for at, number in enumerate(numbers) if wanted is None or number in wanted]
        height, width = self._first.pixels.shape[:2]
        size, asked = (height, width), (self._shares, self._network)
        done = denoise_in_windows(size, len(numbers), planned, *asked, report, chosen)
        for place, plan, pixels in done:
            page, found = kept[place], None
            if plan is not None and pixels is not None:
                page = _with_pixels(page, pixels)
                found = PageFindings(plan.plan, (), plan.page.left_out, plan.hot)
            yield numbers[place], page, found
            kept = {at: each for at, each in kept.items() if at > place}

    def _common(self, number: int) -> Plan | None:
        """Return what is decided for all pages that have their noise in common with a page."""
        group = int(self._groups[number])
        members = np.flatnonzero(self._groups == group).tolist()
        if group not in self._plans and len(members) > 1:
            one = self._sigmas[number]
            if one is not None:
                one *= find_data_range(self._first.pixels, self._request.data_range) / 255
            self._plans[group] = plan_together(
                len(members), lambda at: self._planes_of(members[at]), one, self._request
            )
        return self._plans.get(group)

    def _read(self, number: int) -> tuple[ImageFile, Planes | None]:
        """Return a page, and what has been checked of it; None if it is missing in a series."""
        page = self._pages[number] if number else self._first
        if self._skips and is_missing(page.pixels):
            return page, None
        with about(self._names(number)):
            axis = None if page.channels == 1 else -1
            return page, read_planes(page.pixels, self._mask_of(number), axis)

    def _planes_of(self, number: int) -> Array | None:
        planes = self._read(number)[1]
        return None if planes is None else planes.planes

    def _sigma(self, number: int, planes: Planes) -> float | Array | None:
        """Return the sigma of a page, or the map of it, in the page's units."""
        sigma = self._sigmas[number]
        given = self._map_of(number) if sigma is None else sigma
        if given is None:
            return None
        return given * (find_data_range(planes.planes, self._request.data_range) / 255)


def _with_pixels(page: ImageFile, pixels: Array) -> ImageFile:
    alpha = None if page.alpha is None else page.alpha.astype(pixels.dtype, copy=False)
    return dataclasses.replace(page, pixels=pixels, alpha=alpha)


def sigmas_of_pages(sigma: FileSigma, count: int) -> list[float | None]:
    """Return the sigma of every page, None where it has to be estimated.

    Raises
    ------
    InputError
        If there are several, but not one for each page.

    Examples
    --------
    >>> sigmas_of_pages(10.0, 2), sigmas_of_pages((10.0, 12.0), 2)
    ([10.0, 10.0], [10.0, 12.0])
    """
    if not isinstance(sigma, tuple):
        return [sigma] * count
    if len(sigma) != count:
        pages, wanted = f"{count} pages", "give one, or one for each page"
        if count == 1:
            pages, wanted = "1 page", "give one"
        raise InputError(f"{len(sigma)} sigmas are given for {pages}; {wanted}.")
    return list(sigma)


def name_of_page(name: str, number: int, count: int) -> str:
    """Return what errors call a page, of which the first is number 0.

    Examples
    --------
    >>> print(name_of_page("a.tif", 1, 3))
    'a.tif', page 2 of 3
    """
    return repr(name) + (f", page {number + 1} of {count}" if count > 1 else "")


def notes_of(found: Sequence[PageFindings], option: str = "--data-range") -> tuple[str, ...]:
    """Say what was lost, left out or doubtful in the pages of a file."""
    if not found:
        return ()
    unclipped = sum(page.plan.unclipped for page in found)
    notes = unclipped_note(unclipped, len(found), found[0].plan.white, option)
    plan = min((page.plan for page in found), key=lambda plan: plan.noise.certainty)
    doubtful = plan.noise.scaled(255 / plan.white)
    notes += left_out_note(sum(page.left_out for page in found)) + doubt_note(doubtful)
    hot = sum(page.hot for page in found)
    return (*notes, f"hot or dead pixels that were filled: {hot}") if hot else notes


def doubt_note(noise: Noise) -> tuple[str, ...]:
    """Say that it is not sure whether there is noise, if so, and what to do.

    Examples
    --------
    >>> for note in doubt_note(Noise.white(3.0)) + doubt_note(NoNoise(2.0, certainty=0.6)):
    ...     print(note)
    there may be noise of about 2 after all (40%): --noise camera, or --sigma, removes it
    """
    if noise.certainty >= SURE or not isinstance(noise, (Camera, NoNoise)):
        return ()
    if isinstance(noise, NoNoise):
        return (
            f"there may be noise of about {noise.sigma:.2g} after all "
            f"({1 - noise.certainty:.0%}): --noise camera, or --sigma, removes it",
        )
    return (
        f"it may be texture ({1 - noise.certainty:.0%}), so a part of it stays: --noise camera "
        "removes all of it, and --strength 0 nothing",
    )


def unclipped_note(
    count: int, pages: int, white: float, option: str = "--data-range"
) -> tuple[str, ...]:
    """Say in how many pages nothing was clipped, if any.

    Examples
    --------
    >>> for note in unclipped_note(2, 3, 1.0):
    ...     print(note)
    2 of 3 pages have values that noise around a range from 0 to 1 does not explain: nothing is \
clipped (--data-range says what white is)
    """
    if count == 0:
        return ()
    which = "it has" if pages == 1 else f"{count} of {pages} pages have"
    return (
        f"{which} values that noise around a range from 0 to {white:g} does not explain: nothing "
        f"is clipped ({option} says what white is)",
    )


def left_out_note(count: int) -> tuple[str, ...]:
    """Say how many pixels of a file were left out, if any.

    Examples
    --------
    >>> left_out_note(0), left_out_note(1)
    ((), ('1 pixel is masked or NaN: left as it is',))
    """
    if count == 0:
        return ()
    if count == 1:
        return ("1 pixel is masked or NaN: left as it is",)
    return (f"{count} pixels are masked or NaN: left as they are",)
