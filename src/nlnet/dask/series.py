"""Pages that are neighbors along an axis, denoised in runs: each with the pages before and after.

A run is a chunk of pages with a halo of neighbors on both sides, and pages are whole. So a task
sees what denoising in memory sees, and the results have the same bits. Pages too large to be held a
few at a time are cut into the windows that denoising in memory cuts them into.
"""

from __future__ import annotations

from typing import cast

import dask.array as da
from dask.array.overlap import trim_internal

from nlnet.arrays import Array
from nlnet.dask.blocks import map_pages, with_halo
from nlnet.dask.chunks import merge_small
from nlnet.dask.work import Work
from nlnet.denoising.pages import series_of_pages
from nlnet.denoising.series import REACH
from nlnet.denoising.series_pages import denoise_series
from nlnet.denoising.series_windows import window_sides
from nlnet.masks import Mask
from nlnet.progress import ignore

RUN = 16
"""Pages of a run, if chunks are smaller: its neighbors are half as many again."""


def denoise_along(
    array: da.Array,
    plans: da.Array,
    work: Work,
    along: int,
    hidden: da.Array | None = None,
    maps: da.Array | None = None,
) -> da.Array:
    """Denoise pages that are neighbors along an axis; other parameters as for `denoise_chunks`."""
    chunks = list(array.chunks)
    chunks[along] = merge_small(chunks[along], RUN)
    halo = dict.fromkeys(range(array.ndim), 0)
    halo[along] = REACH if len(chunks[along]) > 1 else 0
    for axis, length in zip(work.image_axes, work.shape[1:], strict=True):
        chunks[axis], halo[axis % array.ndim] = window_sides(length)
    if work.channel_axis is not None:
        chunks[work.channel_axis] = (work.shape[0],)
    axes, pixels = tuple(range(array.ndim)), work.mask_axes(array.ndim)
    front = axes[: plans.ndim]
    numbers = da.arange(array.shape[along], chunks=(tuple(chunks[along]),))
    inputs = [
        (each if each is None else _wide(each, own, chunks, halo), own)
        for each, own in (
            (array, axes),
            (hidden, pixels),
            (maps, pixels),
            (numbers, (along,)),
            (plans, front),
        )
    ]
    wide = cast(da.Array, inputs[0][0])
    last = array.shape[along] - 1
    denoised = map_pages(
        _denoise_run, inputs, wide.chunks, array.dtype, work=work, along=along, last=last
    )
    return cast(da.Array, trim_internal(denoised, halo, boundary="none").rechunk(array.chunks))


def _wide(
    array: da.Array, axes: tuple[int, ...], chunks: list[tuple[int, ...]], halo: dict[int, int]
) -> da.Array:
    """Return an array that has some of the axes, chunked and with the halo that they have."""
    whole = array.rechunk(tuple(chunks[axis] for axis in axes))
    return with_halo(whole, {own: halo[axis] for own, axis in enumerate(axes)})


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
    for indices in series_of_pages(plans.shape, along):
        pages = denoise_series(
            len(indices),
            lambda at, indices=indices: work.read_page(  # type: ignore[misc]
                block, hidden, maps, indices[at], plans.item(indices[at])
            ),
            work.shares,
            work.network(),
            ignore,
            range(first, end),
        )
        for number, _, image in pages:
            if image is not None:
                denoised[indices[number]] = image
    return denoised
