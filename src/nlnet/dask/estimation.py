"""Estimating the noise of dask arrays, lazily, with the results of `nlnet.estimate_noise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import delayed

from nlnet.dask.chunks import layout_of
from nlnet.dask.masks import take_mask
from nlnet.dask.sampling import lazy_object, sample_planes
from nlnet.inputs import check_data_range, to_planes
from nlnet.noise.estimation import find_noise, find_sigma
from nlnet.noise.record import check_kind
from nlnet.noise.sample import Sample


def estimate_noise(
    array: da.Array,
    *,
    kind: str | None = None,
    mask: Any = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stacked: int = 0,
) -> da.Array:
    """Find out what the noise of images is, lazily.

    Parameters
    ----------
    array : dask array
        As for `nlnet.dask.denoise`.
    kind, data_range
        As for `nlnet.estimate_noise`.
    mask, channel_axis, stacked
        As for `nlnet.dask.denoise`.

    Returns
    -------
    dask array
        Of dtype object: an `nlnet.Noise` for each page, of shape ``array.shape[:stacked]``, so 0-D
        for a single image. They are those of `nlnet.estimate_noise`, however the array is chunked.
        Every chunk is looked at once, and a bounded sample of a page is gathered in one place.

    Raises
    ------
    InputError
        If the array or an argument cannot be used; and when it is computed, if values are
        infinite or too large, or more than half of a page is left out.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import nlnet.dask
    >>> noisy = 128 + np.random.default_rng(0).normal(0, 10, size=(128, 128))
    >>> array = da.from_array(noisy, chunks=50)
    >>> noise = nlnet.dask.estimate_noise(array, data_range=255).compute().item()
    >>> noise.kind, abs(noise.sigma - 10) < 0.5
    ('white', True)
    """
    check_kind(kind)
    if data_range is not None:
        check_data_range(data_range)
    return _for_each_page(
        array,
        lambda planes, hidden: lazy_object(
            delayed(find_noise)(sample_planes(planes, hidden, estimates=True), kind)
        ),
        mask,
        channel_axis,
        stacked,
    )


def estimate_sigma(
    array: da.Array, *, mask: Any = None, channel_axis: int | None = None, stacked: int = 0
) -> da.Array:
    """Estimate the standard deviation of the white Gaussian noise in images, lazily.

    Parameters
    ----------
    array : dask array
        As for `nlnet.dask.denoise`.
    mask, channel_axis, stacked
        As for `nlnet.dask.denoise`.

    Returns
    -------
    dask array
        The standard deviation in the array's own units, one for each page: of shape
        ``array.shape[:stacked]``, so 0-D for a single image. The numbers are those that
        `nlnet.estimate_sigma` finds, to the bit, however the array is chunked. Every chunk is
        looked at once, and a bounded sample of a page is gathered in one place.

    Raises
    ------
    InputError
        As `estimate_noise`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, nlnet.dask
    >>> noisy = 128 + np.random.default_rng(0).normal(0, 10, size=(128, 128))
    >>> sigma = nlnet.dask.estimate_sigma(da.from_array(noisy, chunks=50))
    >>> abs(float(sigma.compute()) - 10) < 0.5
    True
    """
    return _for_each_page(array, _estimate_sigma, mask, channel_axis, stacked)


def _for_each_page(
    array: da.Array,
    estimate: Callable[[da.Array, da.Array | None], da.Array],
    mask: Any,
    channel_axis: int | None,
    stacked: int,
) -> da.Array:
    """Return what is estimated from the (C, H, W) planes of each page."""
    layout = layout_of(array, stacked, channel_axis)
    values, hidden, _ = take_mask(array, mask, layout)
    found = [
        estimate(
            to_planes(values[index], layout.channel_axis), None if hidden is None else hidden[index]
        )
        for index in np.ndindex(layout.pages)
    ]
    return da.stack(found).reshape(layout.pages) if stacked else found[0]


def _estimate_sigma(planes: da.Array, hidden: da.Array | None) -> da.Array:
    sample = sample_planes(planes, hidden, estimates=True)
    return cast(
        da.Array, da.from_delayed(delayed(_sigma)(sample), shape=(), dtype=np.dtype(np.float64))
    )


def _sigma(sample: Sample) -> np.float64:
    return np.float64(find_sigma(sample))
