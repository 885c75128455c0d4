"""What users say about the noise of many pages, checked before any page is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.inputs import DATA_RANGES, check_data_range, check_dtype
from nlnet.noise.deciding import check_request
from nlnet.noise.record import Noise

Sigma: TypeAlias = float | npt.ArrayLike | None
"""One standard deviation for all pages, one for each, or None to estimate it."""


def sigma_of_pages(sigma: Sigma, pages: tuple[int, ...]) -> Array:
    """Return one sigma for each page, None where it has to be estimated.

    Raises
    ------
    InputError
        If there are several, but not one for each page.

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
        return sigmas
    if given.shape != pages:
        raise InputError(
            f"sigma has shape {given.shape}, but must be one number, or one for each page, of "
            f"shape {pages}."
        )
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
