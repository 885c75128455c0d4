"""The pages of an image file, of a command or of an upload: denoised one after the other."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.hot_pixels import hot_pixels_of
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings, denoise_page, plan_together
from nlnet.denoising.pages import groups_of_pages
from nlnet.denoising.plan import Plan, Request
from nlnet.denoising.series_pages import PlannedPage
from nlnet.denoising.series_windows import denoise_in_windows
from nlnet.denoising.strength import check_strength
from nlnet.errors import InputError, about
from nlnet.files.series import series_of_file
from nlnet.files.settings import FileSigma, Settings
from nlnet.files.side_files import page_mask, page_sigmas
from nlnet.images import ImageFile
from nlnet.inputs import find_data_range
from nlnet.masks import Planes, is_missing, read_planes
from nlnet.progress import Report, one_of


def denoise_pages(
    pages: Sequence[ImageFile], settings: Settings, network: Network, report: Report, *, name: str
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

    Raises
    ------
    FileError, InputError, ModelError, Cancelled
        As `nlnet.denoise`, or if a mask or a map of sigma cannot be read; errors name the page.
    """
    count = len(pages)
    work = PageWork(
        pages, settings, network, name, lambda number: name_of_page(name, number, count)
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
    ) -> None:
        self._pages, self._first = pages, pages[0]
        self._settings, self._network, self._names = settings, network, names
        # Values that integers would round away are kept where floating ones are written.
        self._dtype = np.dtype(np.float32) if settings.writing.depth == "float32" else None
        channels, leading = self._first.channels, self._first.leading
        self._shares = check_strength(settings.strength_for(channels), channels)
        self._request = Request(
            settings.noise,
            settings.data_range or self._first.data_range,
            hot_pixels=bool(settings.hot_pixels),
            error=settings.error is not None,
        )
        each = settings.per_page or settings.sigma_map is not None
        leading = leading if math.prod(leading) == len(pages) else (len(pages),)
        with about(repr(name)):
            self._sigmas = sigmas_of_pages(settings.sigma, len(pages))
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

    def look(self) -> Iterator[tuple[int, Plan, int]]:
        """Yield what is found in pages that have their noise in common, without denoising them.

        That is the number of the group, what is decided for it, and how many of its pixels are hot
        or dead: in the first page as in the last.
        """
        for group in np.unique(self._groups).tolist():
            members = np.flatnonzero(self._groups == group).tolist()
            plan = self._plan_together(members)
            ends = (self._planes_of(number) for number in {members[0], members[-1]})
            hot = [hot_pixels_of(planes, plan.noise) for planes in ends if planes is not None]
            yield group, plan, int(np.logical_and.reduce(hot).sum())

    def _common(self, number: int) -> Plan | None:
        """Return what is decided for all pages that have their noise in common with a page."""
        group = int(self._groups[number])
        members = np.flatnonzero(self._groups == group).tolist()
        if group not in self._plans and len(members) > 1:
            self._plans[group] = self._plan_together(members)
        return self._plans.get(group)

    def _plan_together(self, members: Sequence[int]) -> Plan:
        sigma = self._sigmas[members[0]]
        if sigma is not None:
            sigma *= find_data_range(self._first.pixels, self._request.data_range) / 255
        return plan_together(
            len(members), lambda at: self._planes_of(members[at]), sigma, self._request
        )

    def _read(self, number: int) -> tuple[ImageFile, Planes | None]:
        """Return a page, and what has been checked of it; None if it is missing in a series."""
        page = self._pages[number] if number else self._first
        if self._settings.along is not None and is_missing(page.pixels):
            return page, None
        beside = number, len(self._pages), self._settings.max_pixels
        with about(self._names(number)):
            axis = None if page.channels == 1 else -1
            return page, read_planes(page.pixels, page_mask(self._settings.mask, *beside), axis)

    def _planes_of(self, number: int) -> Array | None:
        planes = self._read(number)[1]
        return None if planes is None else planes.planes

    def _sigma(self, number: int, planes: Planes) -> float | Array | None:
        """Return the sigma of a page, or the map of it, in the page's units."""
        beside = number, len(self._pages), self._settings.max_pixels
        sigma = self._sigmas[number]
        given = page_sigmas(self._settings.sigma_map, *beside) if sigma is None else sigma
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
