"""What users say about the noise of many pages, checked before any page is read."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.sigma_map import is_map
from nlnet.errors import InputError

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
