"""What users say about the noise of many pages, checked before any page is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.sigma_map import is_map
from nlnet.errors import InputError
from nlnet.inputs import DATA_RANGES, check_data_range, check_dtype
from nlnet.noise.deciding import check_request
from nlnet.noise.record import Noise

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
    sigmas = np.empty(pages, object)
    if not isinstance(sigma, Sequence) and not hasattr(sigma, "shape"):
        sigmas.fill(sigma)
        return sigmas
    given = np.asarray(sigma)
    if given.ndim == 0:
        sigmas.fill(given.item())
    else:
        sigmas[...] = given
    return sigmas


def check_pages(
    sigmas: Array, noise: str | Noise | None, dtype: np.dtype[Any], data_range: float | None
) -> None:
    """Raise InputError for mistakes that can be found without looking at a page."""
    check_dtype(np.empty(0, dtype))
    span = DATA_RANGES[dtype.newbyteorder("=")]
    if data_range is not None:
        span = check_data_range(data_range)
    for sigma in sigmas.ravel():
        check_request(sigma, noise, math.inf if span is None else span)
