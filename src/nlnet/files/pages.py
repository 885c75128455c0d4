"""The pages of an image file, of a command or of an upload: denoised one after the other."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.hot_pixels import hot_pixels_of
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings
from nlnet.denoising.pages import PageLoop, groups_of_pages
from nlnet.denoising.plan import Plan, Request
from nlnet.errors import InputError, about
from nlnet.files.series import CHANNELS, axes_of, series_of_file
from nlnet.files.settings import FileSigma, Settings, page_mask, page_sigmas
from nlnet.images import ImageFile
from nlnet.inputs import find_data_range
from nlnet.masks import Planes, is_missing, read_planes
from nlnet.progress import Report


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
    series = None
    if settings.along is not None:
        with about(repr(name)):
            series = series_of_file(pages[0], count, settings.along)
    done = sorted(work.run(series, report), key=lambda result: result[0])
    found = [found for *_, found in done if found is not None]
    return [with_pixels(page, pixels) for _, page, pixels, _ in done], found


class PageWork(PageLoop[ImageFile]):
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
        self._settings, self._names = settings, names
        leading = self._first.leading
        request = Request(
            settings.noise,
            settings.data_range or self._first.data_range,
            hot_pixels=bool(settings.hot_pixels),
            error=settings.error is not None,
        )
        each = settings.per_page or settings.sigma_map is not None
        axes = axes_of(self._first, len(pages))
        if len(leading) < 2 or math.prod(leading) != len(pages):
            leading = tuple(axes.values())
        self.noise_axis = settings.noise_axis
        if self.noise_axis is None and CHANNELS in axes:
            self.noise_axis = list(axes).index(CHANNELS)
        with about(repr(name)):
            self._sigmas = sigmas_of_pages(settings.sigma, len(pages))
            groups = groups_of_pages(leading, self.noise_axis, per_page=each)
        height, width = self._first.pixels.shape[:2]
        dtype = np.dtype(np.float32) if settings.writing.depth == "float32" else None
        super().__init__((height, width), groups, request, network, dtype)

    def look(self) -> Iterator[tuple[int, Plan, int]]:
        """Yield what is found in pages that have their noise in common, without denoising them.

        That is the number of the group, what is decided for it, and how many of its pixels are hot
        or dead: in the first page as in the last.
        """
        for group in np.unique(self.groups).tolist():
            members = np.flatnonzero(self.groups == group).tolist()
            plan = self.plan_group(members)
            ends = (self.read(number)[1] for number in {members[0], members[-1]})
            hot = [hot_pixels_of(end.planes, plan.noise) for end in ends if end is not None]
            yield group, plan, int(np.logical_and.reduce(hot).sum())

    def common(self, number: int) -> Plan | None:
        """Return what is decided for all pages that have their noise in common with a page."""
        with about(self.name_of(number)):
            return super().common(number)

    def read(self, number: int) -> tuple[ImageFile, Planes | None]:
        """Return a page, and what has been checked of it; None if it is missing in a series."""
        page = self._pages[number] if number else self._first
        if self._settings.along is not None and is_missing(page.pixels):
            return page, None
        with about(self.name_of(number)):
            mask = page_mask(self._settings.mask, *self._beside(number))
            return page, read_planes(page.pixels, mask, None if page.channels == 1 else -1)

    def name_of(self, number: int) -> str:
        """Return what errors call a page."""
        return self._names(number)

    def sigma_of(self, number: int, planes: Planes | None = None) -> float | Array | None:
        """Return the sigma of a page, or the map of it, in the page's units."""
        given: float | Array | None = self._sigmas[number]
        if given is None and planes is not None:
            given = page_sigmas(self._settings.sigma_map, *self._beside(number))
        if given is None:
            return None
        values = self._first.pixels if planes is None else planes.planes
        return given * (find_data_range(values, self.request.data_range) / 255)

    def _beside(self, number: int) -> tuple[int, int, int]:
        return number, len(self._pages), self._settings.max_pixels


def with_pixels(page: ImageFile, pixels: Array | None) -> ImageFile:
    """Return a page with what its pixels have become; None if they stay."""
    if pixels is None:
        return page
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
