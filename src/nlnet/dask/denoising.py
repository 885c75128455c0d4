"""The public entry for dask arrays: the exact halo around every chunk, and nothing computed yet.

What a chunk's pixels become depends on the image around them up to the network's reach, and on
nothing else: groups are found by (distance, rank of the offset), wherever a pixel lies; the
projection clips each pixel to a box that is the same everywhere; only at the borders of the image,
where there is no halo, windows are cut and patches mirrored. So chunks with a halo of the network's
reach have the groups of the whole image to the bit, and its output but for rounding.
"""

from __future__ import annotations

import os
from typing import cast

import dask.array as da
import numpy as np
from dask.graph_manipulation import clone

import nlnet.denoising
from nlnet.arrays import Array
from nlnet.dask.chunks import image_axes, merge_small, stand_in
from nlnet.dask.estimation import check_stacked, estimate_sigma
from nlnet.denoising import NO_NOISE, check_estimate, choose_model
from nlnet.devices import CPU
from nlnet.inputs import check_count, check_data_range, check_dtype, check_sigma
from nlnet.matching import check_size
from nlnet.model import Model, family_of, load_model, shipped_models


def denoise(
    array: da.Array,
    sigma: float | None = None,
    *,
    model: str | os.PathLike[str] | Model = "auto",
    data_range: float | None = None,
    channel_axis: int | None = None,
    stacked: int = 0,
    clip: bool = True,
    threads: int = 1,
    max_memory: int | None = None,
    device: str = CPU,
) -> da.Array:
    """Remove white Gaussian noise from a dask array, chunk by chunk, when it is computed.

    The result is that of `nlnet.denoise` on the whole array, inside the chunks and at their seams:
    the same groups to the bit, and values within 1e-3 of 255.

    Parameters
    ----------
    array : dask array
        (H, W) for grayscale or (H, W, 3) for RGB; uint8, uint16, float32 or float64. A chunk is
        worked on with a halo of the network's reach: 170 pixels on each side for 5x5 patches, 180
        for 7x7. Small chunks are therefore expensive (2000 pixels wide: 1.4 times the work), and
        chunks smaller than the halo are joined first.
    sigma : float, optional
        Standard deviation of the noise in the array's own units. By default it is estimated from
        the whole image, lazily, by `nlnet.dask.estimate_sigma`; the array's chunks are then
        computed twice, rather than held in memory until the estimate is there. An image whose
        noise is found to be below 0.5 of 255 comes back as it is.
    model : str, path or Model, optional
        As for `nlnet.denoise`. A model file is read here, not where the chunks are computed.
    data_range : float, optional
        The value of white; by default 255 for uint8, 65535 for uint16 and 1.0 for floating arrays.
    channel_axis : int, optional
        The axis of an image that holds its channels; the last by default.
    stacked : int, optional
        How many axes at the front count pages, of which each is an image of its own: 1 for a stack
        (N, H, W), 3 for (T, C, Z, H, W). Unless sigma is given, it is estimated for every page.
        `channel_axis` counts the axes of a page.
    clip : bool, optional
        As for `nlnet.denoise`.
    threads : int, optional
        Threads of the work on one chunk. One, because dask works on as many chunks at a time as
        there are cores.
    max_memory : int, optional
        Bytes that the work on one chunk may use besides the chunk with its halo and the result.
    device : str, optional
        As for `nlnet.denoise`; it must be there where the chunks are computed.

    Returns
    -------
    dask array
        Of the same shape, dtype and chunks; nothing of it is computed yet.

    Raises
    ------
    InputError, ModelError, FileError
        As `nlnet.denoise`; if only the values are to blame, when the result is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import nlnet.dask
    >>> noise = np.random.default_rng(0).normal(0, 25, size=(200, 300))
    >>> noisy = da.from_array(np.clip(128 + noise, 0, 255).astype(np.uint8), chunks=200)
    >>> denoised = nlnet.dask.denoise(noisy, sigma=25)
    >>> denoised
    dask.array<..., shape=(200, 300), dtype=uint8, chunksize=(200, 200), chunktype=numpy.ndarray>
    >>> bool(denoised.compute().std() < noisy.compute().std() / 4)
    True
    """
    check_stacked(stacked)
    page = stand_in(array, stacked)
    default_range = check_dtype(page)
    image_axes(page, channel_axis)
    white = default_range if data_range is None else check_data_range(data_range)
    leading = array.shape[:stacked]
    if sigma is not None:
        sigmas = da.full(leading, check_sigma(sigma, white), chunks=array.chunks[:stacked])
    else:
        # Cloned, so that no chunk waits in memory until all have been looked at.
        found = estimate_sigma(clone(array), channel_axis=channel_axis, stacked=stacked)
        sigmas = found.rechunk(array.chunks[:stacked]).map_blocks(
            leave_clean_pages, white=white, dtype=np.float64
        )
    return denoise_pages(
        array,
        sigmas,
        model=model,
        white=white,
        channel_axis=channel_axis,
        clip=clip,
        threads=threads,
        max_memory=max_memory,
        device=device,
    )


def denoise_pages(
    array: da.Array,
    sigmas: da.Array,
    *,
    model: str | os.PathLike[str] | Model,
    white: float,
    channel_axis: int | None,
    clip: bool,
    threads: int,
    max_memory: int | None,
    device: str,
) -> da.Array:
    """Denoise pages whose noise is known, or will be when they are computed.

    Parameters
    ----------
    array : dask array
        As for :func:`denoise`.
    sigmas : dask array
        Standard deviation of each page's noise, chunked as the first axes of `array`; a page where
        it is 0 comes back as it is.
    white : float
        The data range.
    model, channel_axis, clip, threads, max_memory, device
        As for :func:`denoise`.
    """
    check_count("threads", threads)
    check_count("max_memory", max_memory)
    page = stand_in(array, sigmas.ndim)
    (rows, columns), channels = image_axes(page, channel_axis)
    height, width = page.shape[rows], page.shape[columns]
    chosen, reach = find_network(model, 1 if channels is None else page.shape[channels])
    check_size(height, width, chosen.config)

    chunks = list(array.chunks)
    for axis in (rows, columns):
        chunks[axis] = merge_small(chunks[axis], reach)
    if channels is not None:
        chunks[channels] = (page.shape[channels],)
    roomy = array.rechunk(tuple(chunks))
    # A single chunk has no neighbours, and may be smaller than the halo.
    depth = dict.fromkeys(range(array.ndim), 0)
    for axis in (rows, columns):
        depth[axis % array.ndim] = reach if len(chunks[axis]) > 1 else 0
    denoised = da.map_overlap(
        _denoise_block,
        roomy,
        sigmas[(..., *[np.newaxis] * page.ndim)],
        depth=[depth, dict.fromkeys(range(array.ndim), 0)],
        boundary="none",
        allow_rechunk=False,
        meta=np.empty((0,) * array.ndim, array.dtype),
        model=chosen if _is_own(model) else model,
        white=white,
        channel_axis=channels,
        clip=clip,
        threads=threads,
        max_memory=max_memory,
        device=device,
    )
    return cast(da.Array, denoised.rechunk(array.chunks))


def find_network(model: str | os.PathLike[str] | Model, channels: int) -> tuple[Model, int]:
    """Return one of the models that may be chosen, and the reach of the one that reaches furthest.

    Which of a family it will be depends on sigma, which may not be known yet.
    """
    chosen = choose_model(model, channels, network_sigma=25.0)
    reaches = [chosen.config.reach]
    if not _is_own(model):
        family = family_of(chosen.name) if model == "auto" else model
        members = [name for name in shipped_models() if family_of(name) == family]
        reaches += [load_model(name).config.reach for name in members]
    return chosen, max(reaches)


def _is_own(model: str | os.PathLike[str] | Model) -> bool:
    """Tell a model of the user's, which goes along with the chunks, from the name of ours."""
    shipped = shipped_models()
    return not (model == "auto" or model in shipped or model in set(map(family_of, shipped)))


def leave_clean_pages(found: Array, white: float) -> Array:
    """Check estimates; those not worth the work become 0."""
    for sigma in found.ravel():
        check_estimate(float(sigma), white)
    return np.where(found * 255 / white < NO_NOISE, 0.0, found)


def _denoise_block(
    block: Array,
    sigmas: Array,
    *,
    model: str | os.PathLike[str] | Model,
    white: float,
    channel_axis: int | None,
    clip: bool,
    threads: int,
    max_memory: int | None,
    device: str,
) -> Array:
    """Denoise every page of one chunk with its halo."""
    stacked = block.ndim - (2 if channel_axis is None else 3)
    denoised = np.empty_like(block)
    for page in np.ndindex(block.shape[:stacked]):
        sigma = float(sigmas[page].item())
        if sigma == 0:
            denoised[page] = block[page]
            continue
        denoised[page] = nlnet.denoising.denoise(
            block[page],
            sigma,
            model=model,
            data_range=white,
            channel_axis=channel_axis,
            clip=clip,
            threads=threads,
            max_memory=max_memory,
            device=device,
        )
    return denoised
