"""What lies beside the pixels of dask arrays: what is left out, and maps of sigma.

Both are chunked as the pages are, and looked at only when they are computed.
A chunk is filled together with its halo, as `nlnet.masks` fills a whole image. So what is in a
hidden pixel has no influence on any other pixel, also across the borders of chunks.
"""

from collections.abc import Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from nlnet.arrays import Array, FloatArray
from nlnet.dask.chunks import Layout, as_lazy
from nlnet.denoising.pages import split_sigma
from nlnet.denoising.sigma_map import SigmaMap, check_map_dtype
from nlnet.engine.planes import halve
from nlnet.errors import InputError
from nlnet.inputs import check_finite
from nlnet.masks import Mask, check_mask_dtype, fill


def take_mask(
    array: da.Array, mask: Any, layout: Layout
) -> tuple[da.Array, da.Array | None, da.Array | None]:
    """Separate an array from what hides parts of it.

    Parameters
    ----------
    array : dask array
        The pages, maybe of masked arrays.
    mask : array of bool or None
        True for pixels to leave out: (H, W), or with the axes of the pages before, or of the
        array's shape.
    layout : Layout
        The axes of the array.

    Returns
    -------
    array, hidden, own
        The values; which pixels are hidden, of the shape of the pages and (H, W), or None if there
        is no mask; and the mask that the array had itself, or None.

    Raises
    ------
    InputError
        If the mask does not fit.
    """
    own = None
    parts = []
    if isinstance(meta_from_array(array), np.ma.MaskedArray):
        own = da.ma.getmaskarray(array)
        array = da.ma.getdata(array)
        parts.append(_of_pixels(own, layout))
    if mask is not None:
        given = as_lazy(mask)
        check_mask_dtype(given.dtype)
        if given.shape == array.shape:
            given = _of_pixels(given != 0, layout)
        fitting = (layout.shape[1:], layout.pixel_shape)
        if given.shape not in fitting:
            wanted = " or ".join(dict.fromkeys(map(str, (*fitting, array.shape))))
            raise InputError(f"The mask has shape {given.shape}, but must be {wanted}.")
        parts.append(given != 0)
    if not parts:
        return array, None, own
    hidden = parts[0] if len(parts) == 1 else parts[0] | parts[1]
    return array, layout.spread(hidden, array), own


def _of_pixels(mask: da.Array, layout: Layout) -> da.Array:
    """Return a mask of values as one of pixels, which are hidden if one of their channels is."""
    axis = layout.channel_axis
    return mask if axis is None else cast(da.Array, mask.any(axis=axis))


def find_hidden(planes: Array, given: Mask | None) -> Mask | None:
    """Return which pixels of (C, H, W) planes are hidden or NaN, (H, W); None if none are."""
    hidden = given
    if planes.dtype.kind == "f":
        nan: Mask = np.asarray(np.isnan(planes).any(axis=0))
        hidden = nan if given is None else nan | given
    return hidden if hidden is not None and hidden.any() else None


def halve_present(planes: Array, hidden: Mask | None) -> FloatArray:
    """Return (C, H, W) planes at half the size: means of the pixels there, NaN if there are none.

    Examples
    --------
    >>> planes = np.array([[[1, 3, 0, 0], [5, 99, 0, 0]]])
    >>> hidden = np.array([[False, False, True, True], [False, True, True, True]])
    >>> halve_present(planes, hidden).tolist()
    [[[3.0, nan]]]
    """
    if hidden is None:
        check_finite(planes)
        return halve(planes)
    shown = np.where(hidden, np.zeros((), planes.dtype), planes)
    check_finite(shown)
    present = halve(~hidden[np.newaxis])
    with np.errstate(invalid="ignore"):
        means: FloatArray = halve(shown) / present
    return means


def fill_tiles(tiles: Sequence[Array], hidden: Sequence[Mask | None]) -> list[Array]:
    """Fill (C, H, W) tiles; tiles with more than half of their pixels hidden become others.

    Raises
    ------
    InputError
        If that is so of all of them.
    """
    masks = [find_hidden(*pair) for pair in zip(tiles, hidden, strict=True)]
    filled = [
        tile if mask is None else fill(tile, mask)
        for tile, mask in zip(tiles, masks, strict=True)
        if mask is None or mask.mean() <= 0.5
    ]
    if not filled:
        raise InputError(
            "Too much of what is looked at to find the image's noise is masked or NaN; say what "
            "the noise is instead (sigma or noise)."
        )
    return [filled[number % len(filled)] for number in range(len(tiles))]


def take_map(array: da.Array, sigma: Any, layout: Layout) -> tuple[Any, da.Array | None]:
    """Separate a map of sigma from one sigma for all, or one for each page.

    Returns
    -------
    sigma, maps
        What is no map, or None; and the map, of the shape of the pages and (H, W), or None.

    Raises
    ------
    InputError
        If its shape fits neither the pages nor their pixels, or it is not of numbers.
    """
    _, *size = layout.shape
    sigma, given = split_sigma(sigma, layout.pages, (size[0], size[1]))
    if given is None:
        return sigma, None
    lazy = as_lazy(given)
    check_map_dtype(lazy.dtype)
    return None, layout.spread(lazy, array)


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
