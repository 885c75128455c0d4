"""Many pages: what users say about their noise, checked before any is read, and the loop over them.

In the loop each page is read, planned, denoised, and handed on with what was found. Arrays of many
images and files of many pages share it. They only say how a page is read, what errors call it, and
what is known about its noise.
"""

import abc
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings, PlannedPage, denoise_page, plan_together
from nlnet.denoising.plan import Plan, Request
from nlnet.denoising.series_pages import denoise_in_windows
from nlnet.denoising.sigma_map import is_map
from nlnet.errors import InputError, about
from nlnet.masks import Planes
from nlnet.progress import Report, one_of

Sigma: TypeAlias = float | npt.ArrayLike | None
"""One standard deviation for all pages, one for each, maps of it, or None to estimate it."""


def split_sigma(sigma: Any, pages: tuple[int, ...], size: tuple[int, int]) -> tuple[Any, Any]:
    """Tell maps of sigma from one sigma for all pages, or one for each.

    Returns
    -------
    sigma, maps
        What is no map, or None; and what is one, of shape (H, W) or the pages and (H, W), or None.

    Raises
    ------
    InputError
        If it is an array of another shape.

    Examples
    --------
    >>> split_sigma([0.1, 0.2], (2,), (5, 4))
    ([0.1, 0.2], None)
    """
    if not is_map(sigma):
        return sigma, None
    shape = tuple(sigma.shape) if hasattr(sigma, "shape") else np.shape(sigma)
    if shape == pages:
        return sigma, None
    maps = (size, (*pages, *size))
    if shape in maps:
        return None, sigma
    each = f", or one for each page, of shape {pages}" if pages else ""
    listed = " or ".join(dict.fromkeys(map(str, maps)))
    raise InputError(
        f"sigma has shape {shape}, but must be one number{each}, or a map, of shape {listed}."
    )


def sigma_of_pages(sigma: Sigma, pages: tuple[int, ...]) -> Array:
    """Return one sigma for each page, None where it has to be estimated.

    Examples
    --------
    >>> sigma_of_pages(0.1, (2,)).tolist()
    [0.1, 0.1]
    """
    return np.full(pages, np.asarray(sigma), object)


def series_of_pages(pages: tuple[int, ...], along: int) -> list[list[int]]:
    """Return the numbers of the pages of every series along an axis.

    Examples
    --------
    >>> series_of_pages((2, 2), 0)
    [[0, 2], [1, 3]]
    """
    numbers = np.moveaxis(np.arange(math.prod(pages)).reshape(pages), along, -1)
    series: list[list[int]] = numbers.reshape(math.prod(numbers.shape[:-1]), pages[along]).tolist()
    return series


def find_axis(along: object, pages: tuple[int, ...], names: Sequence[str] = ()) -> int:
    """Return the number of the axis along which pages are neighbors.

    Parameters
    ----------
    along : str or int
        Its name or number, as users give it.
    pages : tuple of int
        Lengths of the axes in front of the pages.
    names : sequence of str
        Names of these axes, where they are known; others may follow.

    Raises
    ------
    InputError
        If there is no such axis.

    Examples
    --------
    >>> find_axis("t", (3, 10), ("Z", "T", "Y", "X")), find_axis(0, (3, 10))
    (1, 0)
    """
    known = [str(name).lower() for name in names[: len(pages)]]
    if isinstance(along, str) and along.lower() in known:
        return known.index(along.lower())
    if isinstance(along, int | np.integer) and 0 <= along < len(pages):
        return int(along)
    if along == "pages" and len(pages) == 1:
        return 0
    called = f" ({', '.join(known)})" if known else ""
    raise InputError(
        f"along is {along!r}, but must be an axis in front of the pages, which are of shape "
        f"{pages}{called}: 0 is the first one."
    )


def groups_of_pages(
    pages: tuple[int, ...], noise_axis: int | None, *, per_page: bool
) -> npt.NDArray[np.intp]:
    """Return which pages have their noise in common: pages with the same number.

    Parameters
    ----------
    pages : tuple of int
        Lengths of the axes in front of the pages.
    noise_axis : int or None
        The one whose pages differ.
    per_page : bool
        Whether all do.

    Raises
    ------
    InputError
        If there is no such axis.

    Examples
    --------
    >>> groups_of_pages((3, 2), 1, per_page=False).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    if noise_axis is not None and noise_axis not in range(len(pages)):
        raise InputError(
            f"noise_axis is {noise_axis!r}, but must be None, or one of the {len(pages)} axes in "
            "front of the images."
        )
    if per_page:
        return np.arange(int(np.prod(pages)), dtype=np.intp).reshape(pages)
    return np.zeros(pages, np.intp) if noise_axis is None else np.indices(pages)[noise_axis]


Page = TypeVar("Page")

Denoised: TypeAlias = tuple[int, Page, Array | None, PageFindings | None]
"""The number of a page, the page as it was, what it has become, and what was found.

Of a page that is missing in a series, there are only the first two.
"""


class PageLoop(abc.ABC, Generic[Page]):
    """Pages that are denoised one after the other.

    Parameters
    ----------
    size : (height, width)
        Size of every page.
    groups : array of int
        For every page, the number of the group of pages that have their noise in common.
    request, dtype
        As for `nlnet.denoising.page.PlannedPage.of`.
    network : Network
        What removes the noise.
    """

    def __init__(
        self,
        size: tuple[int, int],
        groups: Array,
        request: Request,
        network: Network,
        dtype: np.dtype[Any] | None,
    ) -> None:
        self.groups, self.request = groups.ravel(), request
        self._size, self._dtype, self._network = size, dtype, network
        self._plans: dict[int, Plan] = {}

    @abc.abstractmethod
    def read(self, number: int) -> tuple[Page, Planes | None]:
        """Return a page, and what has been checked of it; None if it is missing in a series."""

    @abc.abstractmethod
    def name_of(self, number: int) -> str:
        """Return what errors call a page."""

    @abc.abstractmethod
    def sigma_of(self, number: int, planes: Planes | None = None) -> Any:
        """Return the sigma of a page in its units; without its planes, no map of it."""

    def run(
        self, series: Sequence[Sequence[int]] | None, report: Report
    ) -> Iterator[Denoised[Page]]:
        """Denoise every page by itself, or along each of some series."""
        count = len(self.groups) if series is None else len(series)
        for place in range(count):
            part = one_of(report, place, count)
            if series is not None:
                yield from self.along(series[place], part)
                continue
            self.common(place)  # before the page itself is in memory
            page, found = self._planned(place)
            assert found is not None
            with about(self.name_of(place)):
                done = denoise_page(found, self._network, part, error=self.request.error)
            yield place, page, *done

    def along(
        self, numbers: Sequence[int], report: Report, wanted: Collection[int] | None = None
    ) -> Iterator[Denoised[Page]]:
        """Denoise pages that are neighbors; of these, yield only those that are wanted."""
        kept: dict[int, Page] = {}

        def planned(place: int) -> PlannedPage | None:
            kept[place], found = self._planned(numbers[place])
            return found

        chosen = [at for at, number in enumerate(numbers) if wanted is None or number in wanted]
        count = len(numbers)
        done = denoise_in_windows(self._size, count, planned, self._network, report, chosen)
        for place, found, image in done:
            told = None if image is None or found is None else found.findings()
            yield numbers[place], kept[place], image, told
            kept = {at: each for at, each in kept.items() if at > place}

    def _planned(self, number: int) -> tuple[Page, PlannedPage | None]:
        """Return a page, and what is to be done about it; None if it is missing in a series."""
        page, planes = self.read(number)
        if planes is None:
            return page, None
        common = self.common(number)
        with about(self.name_of(number)):
            asked = self.sigma_of(number, planes), self.request, common, self._dtype
            return page, PlannedPage.of(planes, *asked)

    def common(self, number: int) -> Plan | None:
        """Return what is decided for all pages that have their noise in common with a page."""
        group = int(self.groups[number])
        members = np.flatnonzero(self.groups == group).tolist()
        if group not in self._plans and len(members) > 1:
            self._plans[group] = self.plan_group(members)
        return self._plans.get(group)

    def plan_group(self, members: Sequence[int]) -> Plan:
        """Decide how to denoise pages that have their noise in common."""

        def planes_of(place: int) -> Array | None:
            planes = self.read(members[place])[1]
            return None if planes is None else planes.planes

        return plan_together(len(members), planes_of, self.sigma_of(members[0]), self.request)
