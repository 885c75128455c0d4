"""Maps of sigma for dask arrays: chunked as the pages are, and looked at only when computed."""

from __future__ import annotations

from typing import Any, cast

import dask.array as da
import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.pages import split_sigma
from nlnet.denoising.sigma_map import SigmaMap
from nlnet.errors import InputError
from nlnet.masks import Mask, fill


def take_map(
    array: da.Array, sigma: Any, *, stacked: int, image_axes: tuple[int, int]
) -> tuple[Any, da.Array | None]:
    """Separate a map of sigma from one sigma for all, or one for each page.

    Returns
    -------
    sigma, maps
        What is no map, or None; and the map, of the shape of the pages and (H, W), or None.

    Raises
    ------
    InputError
        If its shape fits neither the pages nor their pixels.
    """
    pages = array.shape[:stacked]
    size = (array.shape[image_axes[0]], array.shape[image_axes[1]])
    sigma, given = split_sigma(sigma, pages, size)
    if given is None:
        return sigma, None
    lazy = given if isinstance(given, da.Array) else da.from_array(np.asarray(given), name=False)
    whole = da.broadcast_to(lazy, (*pages, *size))
    rows, columns = (array.chunks[axis] for axis in image_axes)
    return None, cast(da.Array, whole.rechunk((*array.chunks[:stacked], rows, columns)))


def extremes(page: da.Array, hidden: da.Array | None) -> da.Array:
    """Return the least and the largest sigma of a page, pixels that are left out aside."""
    seen = page if hidden is None else da.where(hidden, np.nan, page)
    return cast(da.Array, da.stack([da.nanmin(seen), da.nanmax(seen)]))


def map_of_block(
    values: Array, hidden: Mask | None, ends: tuple[float, float], magnitude: float
) -> SigmaMap:
    """Return the map of a block, given the extremes of the page's map and its largest value.

    Raises
    ------
    InputError
        If it is NaN where a pixel is not left out.
    """
    if hidden is not None:
        values = fill(values[np.newaxis], hidden)[0]
    if np.isnan(values).any():
        raise InputError("The sigma map is NaN at pixels that are not left out.")
    return SigmaMap.between(values, *ends, magnitude)
