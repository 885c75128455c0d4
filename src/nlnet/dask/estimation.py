"""Estimating the noise of dask arrays, lazily, with the results of `nlnet.estimate_noise`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from nlnet.arrays import Array
from nlnet.dask.chunks import layout_of
from nlnet.dask.masks import fill_tiles, find_hidden, take_mask
from nlnet.engine.estimates import Extremes, tile_places
from nlnet.inputs import check_data_range, check_finite, to_planes
from nlnet.masks import Mask, check_share
from nlnet.noise.estimation import find_noise, find_sigma
from nlnet.noise.record import check_kind
from nlnet.noise.sample import Sample, check_size


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
    find = functools.partial(find_noise, kind=kind)
    return _for_each_page(array, find, object, mask, channel_axis, stacked)


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
    return _for_each_page(array, find_sigma, np.float64, mask, channel_axis, stacked)


def _for_each_page(
    array: da.Array,
    find: Callable[[Sample], Any],
    dtype: npt.DTypeLike,
    mask: Any,
    channel_axis: int | None,
    stacked: int,
) -> da.Array:
    """Return what is found in the sample of each page."""
    layout = layout_of(array, stacked, channel_axis)
    values, hidden, _ = take_mask(array, mask, layout)
    found = []
    for index in np.ndindex(layout.pages):
        planes = to_planes(values[index], layout.channel_axis)
        left_out = None if hidden is None else hidden[index]
        sample = sample_planes(planes, left_out, estimates=True)
        found.append(lazy_scalar(delayed(find)(sample), dtype))
    return da.stack(found).reshape(layout.pages) if stacked else found[0]


def sample_planes(
    planes: da.Array,
    hidden: da.Array | None,
    *,
    estimates: bool,
    pages: int = 1,
    missing: bool = False,
) -> Delayed:
    """Return a task that makes the `Sample` of (C, H, W) planes.

    Parameters
    ----------
    planes : dask array
        The image. Every chunk is looked at once.
    hidden : dask array or None
        Which pixels are left out, (H, W). Those are filled, and so is NaN.
    estimates : bool
        Whether noise will be estimated, for which the image must not be too small.
    pages : int
        How many pages are sampled together.
    missing : bool
        Whether all pixels may be left out; there is no sample then, but None.

    Raises
    ------
    InputError
        If the image is too small; and when it is computed, if values are infinite or too large, or
        more than half of the pixels are left out.
    """
    planes = planes.rechunk({0: -1})
    if estimates:
        check_size(planes.shape)
    grid = tile_places(planes.shape, pages)
    places = [place for row in grid for place in row]
    blocks = _tasks(planes)
    masks = [None] * len(blocks) if hidden is None else _tasks(hidden.rechunk(planes.chunks[1:]))
    gathered = delayed(_gather)(
        planes.shape,
        planes.dtype,
        [delayed(_extremes)(*pair) for pair in zip(blocks, masks, strict=True)],
        [_tasks(planes[place].rechunk(-1))[0] for place in places],
        [None if hidden is None else _tasks(hidden[at[1:]].rechunk(-1))[0] for at in places],
        len(grid),
        missing,
    )
    return cast(Delayed, gathered)


def _tasks(array: da.Array) -> list[Delayed]:
    # Not optimized, which is done to the graph as a whole: parts that were fused on their own, here
    # and for another page, would not fit together.
    return cast(list[Delayed], array.to_delayed(optimize_graph=False).ravel().tolist())


def _extremes(planes: Array, given: Mask | None) -> tuple[Extremes, int]:
    """Return the extremes of a chunk, whose visible values must be finite, and what is hidden."""
    hidden = find_hidden(planes, given)
    values = planes if hidden is None else planes[:, ~hidden]
    check_finite(values)
    return Extremes.of(values), 0 if hidden is None else int(np.count_nonzero(hidden))


def _gather(
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    found: Sequence[tuple[Extremes, int]],
    tiles: Sequence[Array],
    hidden_tiles: Sequence[Mask | None],
    rows: int,
    missing: bool,
) -> Sample | None:
    count = sum(count for _, count in found)
    if missing and count == shape[1] * shape[2]:
        return None
    check_share(count, shape[1] * shape[2])
    extremes = Extremes.merge([each for each, _ in found])
    return Sample(shape, dtype, extremes, fill_tiles(tiles, hidden_tiles), rows=rows)


def lazy_scalar(value: Any, dtype: npt.DTypeLike = object) -> da.Array:
    """Return a delayed object or number as a 0-D array."""
    made = delayed(functools.partial(np.full, (), dtype=dtype))(value)
    return cast(da.Array, da.from_delayed(made, shape=(), dtype=np.dtype(dtype)))
