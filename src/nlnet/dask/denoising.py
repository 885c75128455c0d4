"""The public function for dask arrays: lazy, with an exact halo around every chunk.

The result of a pixel depends only on the image within the network's reach around it: groups are
ordered by (distance, rank of the offset), independently of where the pixel is; the projection clips
to the same box everywhere; and windows are cut and patches mirrored only at the borders of the
image, where there is no halo. So chunks with a halo of the network's reach have the same groups as
the whole image, to the bit, and the same output up to rounding.
"""

from typing import Any, cast

import dask.array as da
import numpy as np

from nlnet.arrays import Array
from nlnet.dask.blocks import denoise_chunks, map_with_halo
from nlnet.dask.chunks import LazyPages, layout_of, merge_small
from nlnet.dask.masks import take_map, take_mask
from nlnet.dask.pages import PagesRequest, plan_pages
from nlnet.dask.work import Work, sent_model
from nlnet.denoising.devices import CPU
from nlnet.denoising.network import Network
from nlnet.denoising.pages import Sigma, series_of_pages
from nlnet.denoising.plan import Request
from nlnet.denoising.series import REACH
from nlnet.denoising.series_pages import denoise_series, window_sides
from nlnet.engine.removal import scales_of
from nlnet.inputs import Strength
from nlnet.masks import Mask
from nlnet.model.loading import AUTO, ModelLike
from nlnet.noise.camera import Camera
from nlnet.noise.record import SCALES, Noise
from nlnet.noise.stabilisation import engine_noise
from nlnet.progress import ignore


def denoise(
    array: da.Array,
    sigma: Sigma = None,
    *,
    noise: str | Noise | None = None,
    strength: Strength = 1.0,
    mask: Any = None,
    model: ModelLike = AUTO,
    quality: str | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    stacked: int = 0,
    per_page: bool = False,
    noise_axis: int | None = None,
    along: int | None = None,
    clip: bool | None = None,
    threads: int = 1,
    max_memory: int | None = None,
    device: str = CPU,
) -> da.Array:
    """Remove the noise of a dask array, chunk by chunk, when it is computed.

    The result is that of `nlnet.denoise` on the whole array, inside the chunks and at their seams:
    the same groups to the bit, and values within 1e-3 of 255. Only for camera noise, whose groups
    depend on what was rounded at smaller scales, few pixels differ by hundredths of a gray level.

    Parameters
    ----------
    array : dask array
        (H, W) for grayscale or (H, W, 3) for RGB; of the dtypes of `nlnet.denoise`. A chunk is
        worked on with a halo of the network's reach: 170 pixels on each side for 5x5 patches, 180
        for 7x7, 48 more with a refinement. Small chunks are therefore expensive (2000 pixels wide:
        1.4 times the work), and chunks smaller than the halo are joined first.
    sigma : float or array, optional
        Standard deviation of white noise in the array's own units; with ``noise="camera"``, of the
        correlated noise. One for all pages, or an array with one for each. Also a map of white
        noise that varies, a dask or numpy array: (H, W) for all pages, or with the axes of the
        pages before. It is looked at when the result is computed, for its extremes before that.
    noise : str or Noise, optional
        What the noise is, as for `nlnet.denoise`: ``"white"``, ``"poisson"``, ``"camera"`` or a
        record. By default it is found when the result is computed. The array's chunks are looked
        at before they are denoised, and so computed twice, rather than held in memory until all
        have been looked at; and a third time for the smaller scales of camera noise, if it might be
        that. If no noise is found, pages come back as they are.
    strength : float or pair of floats, optional
        As for `nlnet.denoise`.
    mask : array of bool, optional
        True for pixels to leave out, as for `nlnet.denoise`: a dask or numpy array, (H, W) for all
        pages, or with the axes of the pages before. Masked arrays bring their own, and NaN is
        always left out. Each chunk is filled together with its halo, so the result can differ from
        that of the whole array around holes that are larger than the halo. If there is a mask, or
        values are looked at for another reason, leaving out more than half of a page is an error.
    model : str, path or Model, optional
        As for `nlnet.denoise`. A model file is read here, not where the chunks are computed.
    quality : str, optional
        As for `nlnet.denoise`.
    data_range : float, optional
        As for `nlnet.denoise`, for every page.
    channel_axis : int, optional
        The axis of an image that holds its channels; the last by default.
    stacked : int, optional
        How many axes at the front count pages, each an image of its own: 1 for a stack
        (N, H, W), 3 for (T, C, Z, H, W). Unless the noise is given, it is estimated from up to 8
        pages together. `channel_axis` counts the axes of a page.
    per_page, noise_axis
        As for `nlnet.denoise_stack`.
    along : int, optional
        The axis of pages along which they are neighbors, as for `nlnet.denoise_stack`. Pages are
        then computed as a whole, in runs of 16 or more with their neighbors on both sides.
    clip : bool, optional
        As for `nlnet.denoise`. By default the extremes of every page decide.
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
        Of the same shape, dtype and chunks, of masked arrays if they were; nothing of it is
        computed yet.

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
    layout = layout_of(array, stacked, channel_axis)
    values, hidden, own = take_mask(array, mask, layout)
    sigma, maps = take_map(array, sigma, layout)
    asked = PagesRequest(
        Request(noise, data_range, clip),
        sigma,
        mapped=maps is not None,
        per_page=per_page,
        noise_axis=noise_axis,
        along=along,
        warns=True,
    )
    pages = LazyPages(values, hidden, maps)
    plans = plan_pages(pages, asked, layout)
    machine = threads, max_memory, device
    network = Network.of(sent_model(model), layout.shape[0], quality, *machine, strength)
    work = Work.of(layout, network)
    denoised = denoise_pages(pages, plans, work, asked.scales, along)
    return denoised if own is None else cast(da.Array, da.ma.masked_array(denoised, mask=own))


def denoise_pages(
    pages: LazyPages, plans: da.Array, work: Work, scales: int, along: int | None
) -> da.Array:
    """Denoise pages for which there are plans, or will be when they are computed.

    Parameters
    ----------
    pages : LazyPages
        The pages.
    plans : dask array
        A `Plan` for each page, chunked as the first axes of the pages.
    work : Work
        How to do it.
    scales : int
        At how many scales noise may have to be removed: 1 unless it may be camera noise.
    along : int or None
        The axis along which pages are neighbors.
    """
    if along is not None:
        return _denoise_along(pages, plans, work, along)
    # As many as noise at all scales would need.
    possible = scales_of(engine_noise(Camera.even(1.0, (1.0,) * SCALES)), work.layout.shape)
    return denoise_chunks(pages, plans, work, min(scales, possible))


RUN = 16
"""Pages of a run, if chunks are smaller: its neighbors are half as many again."""


def _denoise_along(pages: LazyPages, plans: da.Array, work: Work, along: int) -> da.Array:
    """Denoise pages that are neighbors along an axis."""
    array = pages.values
    chunks = list(array.chunks)
    chunks[along] = merge_small(chunks[along], RUN)
    depth = {along: REACH if len(chunks[along]) > 1 else 0}
    for axis, length in zip(work.layout.image_axes, work.layout.shape[1:], strict=True):
        chunks[axis], depth[axis % array.ndim] = window_sides(length)
    if work.layout.channel_axis is not None:
        chunks[work.layout.channel_axis] = (work.layout.shape[0],)
    beside = [(each, work.layout.pixel_axes) for each in (pages.hidden, pages.maps)]
    numbers, last = da.arange(array.shape[along]), array.shape[along] - 1
    inputs = [*beside, (numbers, (along,)), (plans, range(plans.ndim))]
    return map_with_halo(
        _denoise_run, array, inputs, (), chunks, depth, work=work, along=along, last=last
    )


def _denoise_run(
    block: Array,
    hidden: Mask | None,
    maps: Array | None,
    numbers: Array,
    plans: Array,
    *,
    work: Work,
    along: int,
    last: int,
) -> Array:
    """Denoise the pages of a run, given which pages of the series a block holds."""
    first = 0 if numbers[0] == 0 else REACH
    end = len(numbers) - (0 if numbers[-1] == last else REACH)
    denoised = block.copy()
    places = list(np.ndindex(plans.shape))
    for series in series_of_pages(plans.shape, along):
        indices = [places[number] for number in series]
        pages = denoise_series(
            len(indices),
            lambda at, indices=indices: work.read_page(  # type: ignore[misc]
                block, hidden, maps, indices[at], plans.item(indices[at])
            ),
            work.network,
            ignore,
            range(first, end),
        )
        for number, _, image in pages:
            if image is not None:
                denoised[indices[number]] = image
    return denoised
