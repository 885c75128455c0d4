"""Pixels of dask arrays that are left out, masked or NaN, chunk by chunk.

A chunk is filled together with its halo, as `nlnet.masks` fills a whole image. So what is in a
hidden pixel has no influence on any other pixel, also across the borders of chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from nlnet.arrays import Array, FloatArray
from nlnet.denoising.coarse_to_fine import halve
from nlnet.errors import InputError
from nlnet.inputs import check_finite
from nlnet.masks import Mask, check_mask_dtype, fill


def take_mask(
    array: da.Array, mask: Any, *, stacked: int, image_axes: tuple[int, int]
) -> tuple[da.Array, da.Array | None, da.Array | None]:
    """Separate an array from what hides parts of it.

    Parameters
    ----------
    array : dask array
        The pages, maybe of masked arrays.
    mask : array of bool or None
        True for pixels to leave out: (H, W), or with the axes of the pages before, or of the
        array's shape.
    stacked : int
        How many axes at the front count pages.
    image_axes : (int, int)
        The axes of rows and columns, counted from the end.

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
    channels = _channel_axis(array.ndim, stacked, image_axes)
    if isinstance(meta_from_array(array), np.ma.MaskedArray):
        own = da.ma.getmaskarray(array)
        array = da.ma.getdata(array)
        parts.append(own if channels is None else own.any(axis=channels))
    if mask is not None:
        parts.append(_given_mask(array, mask, stacked, image_axes))
    if not parts:
        return array, None, own
    hidden = parts[0] if len(parts) == 1 else parts[0] | parts[1]
    kept = [axis for axis in range(array.ndim) if axis != channels]
    return array, hidden.rechunk(tuple(array.chunks[axis] for axis in kept)), own


def _channel_axis(ndim: int, stacked: int, image_axes: tuple[int, int]) -> int | None:
    """Return the only axis that counts neither pages, rows nor columns, if there is one."""
    others = set(range(stacked, ndim)) - {axis % ndim for axis in image_axes}
    return others.pop() if others else None


def _given_mask(array: da.Array, mask: Any, stacked: int, image_axes: tuple[int, int]) -> da.Array:
    lazy = mask if isinstance(mask, da.Array) else da.from_array(np.asarray(mask), name=False)
    check_mask_dtype(lazy.dtype)
    lazy = lazy != 0
    size = tuple(array.shape[axis] for axis in image_axes)
    pages = array.shape[:stacked]
    if lazy.shape == array.shape and array.ndim > stacked + 2:
        return cast(da.Array, lazy.any(axis=_channel_axis(array.ndim, stacked, image_axes)))
    if lazy.shape not in (size, (*pages, *size)):
        wanted = " or ".join(dict.fromkeys(map(str, (size, (*pages, *size), array.shape))))
        raise InputError(f"The mask has shape {lazy.shape}, but must be {wanted}.")
    return cast(da.Array, da.broadcast_to(lazy, (*pages, *size)))


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
        raise _nothing_to_see()
    others = iter(filled)
    result = []
    for number, mask in enumerate(masks):
        whole = mask is None or mask.mean() <= 0.5
        result.append(next(others) if whole else filled[number % len(filled)])
    return result


def _nothing_to_see() -> InputError:
    return InputError(
        "Too much of what is looked at to find the image's noise is masked or NaN; say what the "
        "noise is instead (sigma or noise)."
    )
