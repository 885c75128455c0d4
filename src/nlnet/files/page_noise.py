"""The noise of a file's pages: a sigma for each, or one estimate for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nlnet.arrays import Array
from nlnet.errors import InputError, about
from nlnet.files.one_page import page_planes
from nlnet.images import ImageFile
from nlnet.masks import Mask
from nlnet.noise.common import find_common_noise
from nlnet.noise.record import Noise

FileSigma: TypeAlias = float | tuple[float, ...] | None
"""Standard deviation of the noise if white is 255: one for all pages, one for each, or None."""


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


def check_per_stack(*, given: bool) -> None:
    """Raise InputError if the noise is given, so that there is nothing left to estimate."""
    if given:
        raise InputError(
            "The noise is given, by sigma or as a record, so it cannot be estimated per stack."
        )


def find_stack_noise(
    pages: Sequence[ImageFile],
    kind: str | None,
    data_range: float | None,
    *,
    name: str,
    mask_of: Callable[[int], Mask | None] = lambda _: None,
) -> Noise:
    """Estimate the noise of all pages together.

    Parameters
    ----------
    pages : sequence of ImageFile
        The stack.
    kind, data_range
        As for `nlnet.denoise`.
    name : str
        What errors call the file.
    mask_of : callable
        Called with the number of a page; returns what is left out of it.

    Raises
    ------
    InputError
        If a page cannot be used.
    """

    def planes_of(number: int) -> Array:
        with about(name_of_page(name, number, len(pages))):
            return page_planes(pages[number], mask_of(number))[0]

    white = data_range or pages[0].data_range
    return find_common_noise(len(pages), planes_of, white, kind, subject=repr(name))
