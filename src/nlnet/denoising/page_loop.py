"""The loop over pages: each is read, planned, denoised, and handed on with what was found.

Arrays of many images and files of many pages share it. They only say how a page is read, what
errors call it, and what is known about its noise.
"""

import abc
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings, PlannedPage, denoise_page, plan_together
from nlnet.denoising.plan import Plan, Request
from nlnet.denoising.series_pages import denoise_in_windows
from nlnet.errors import about
from nlnet.masks import Planes
from nlnet.progress import Report, one_of

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
