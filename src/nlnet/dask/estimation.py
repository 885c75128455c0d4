"""How strong the noise of a dask array is: what `nlnet.estimate_sigma` finds, but lazily."""

from __future__ import annotations

from collections.abc import Sequence

import dask.array as da
import numpy as np
from dask.delayed import delayed

from nlnet.arrays import Array
from nlnet.dask.chunks import image_axes, stand_in
from nlnet.errors import InputError
from nlnet.inputs import check_dtype, check_finite
from nlnet.noise.white import Extremes, estimate_patches, find_extremes, patch_size_and_step


def estimate_sigma(
    array: da.Array, *, channel_axis: int | None = None, stacked: int = 0
) -> da.Array:
    """Estimate the standard deviation of the white Gaussian noise in images, lazily.

    Parameters
    ----------
    array : dask array
        As for `nlnet.dask.denoise`.
    channel_axis, stacked : int, optional
        As for `nlnet.dask.denoise`.

    Returns
    -------
    dask array
        The standard deviation in the array's own units, one for each page: of shape
        ``array.shape[:stacked]``, so 0-D for a single image. The numbers are those that
        `nlnet.estimate_sigma` finds, to the bit, however the array is chunked. Every chunk is
        looked at once, and at most 160,000 patches of a page are gathered in one place.

    Raises
    ------
    InputError
        If the array or an argument cannot be used; and when it is computed, if values are NaN,
        infinite or too large.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import nlnet.dask
    >>> noisy = 128 + np.random.default_rng(0).normal(0, 10, size=(128, 128))
    >>> sigma = nlnet.dask.estimate_sigma(da.from_array(noisy, chunks=50))
    >>> abs(float(sigma.compute()) - 10) < 0.5
    True
    """
    check_stacked(stacked)
    page = stand_in(array, stacked)
    check_dtype(page)
    _, channels = image_axes(page, channel_axis)
    leading = array.shape[:stacked]
    found = [_estimate_page(array[index], channels) for index in np.ndindex(leading)]
    return da.stack(found).reshape(leading) if stacked else found[0]


def check_stacked(stacked: object) -> None:
    """Raise InputError unless it is a number of axes."""
    if not isinstance(stacked, int) or isinstance(stacked, bool) or stacked < 0:
        raise InputError(f"stacked is {stacked!r}, but must be a whole number of at least 0.")


def _estimate_page(page: da.Array, channels: int | None) -> da.Array:
    planes = page[np.newaxis] if channels is None else da.moveaxis(page, channels, 0)
    size, step = patch_size_and_step(planes.shape)
    rows, columns = (
        (np.arange(0, length - size + 1, step)[:, np.newaxis] + np.arange(size)).ravel()
        for length in planes.shape[1:]
    )
    sampled = planes[:, rows][:, :, columns].rechunk(-1).to_delayed().item()
    extremes = [delayed(_checked_extremes)(block) for block in planes.to_delayed().ravel()]
    found: da.Array = da.from_delayed(
        delayed(_estimate)(sampled, extremes, size), shape=(), dtype=np.float64
    )
    return found


def _checked_extremes(block: Array) -> Extremes:
    check_finite(block)
    return find_extremes(block)


def _estimate(sampled: Array, parts: Sequence[Extremes], size: int) -> np.float64:
    channels, rows, columns = sampled.shape
    patches = sampled.reshape(channels, rows // size, size, columns // size, size)
    return np.float64(
        estimate_patches(patches.swapaxes(2, 3).reshape(-1, size, size), _merge(parts))
    )


def _merge(parts: Sequence[Extremes]) -> Extremes:
    """Return the extremes of the whole from those of its parts."""
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return Extremes(
        low,
        sum(part.low_count for part in parts if part.low == low),
        high,
        sum(part.high_count for part in parts if part.high == high),
        sum(part.count for part in parts),
    )
