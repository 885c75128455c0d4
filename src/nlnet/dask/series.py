"""Pages that are neighbors along an axis, denoised in runs: each with the pages before and after.

A run is a chunk of pages with a halo of neighbors on both sides, and pages are whole. So a task
sees what denoising in memory sees, and the results have the same bits. Pages too large to be held a
few at a time are cut into the windows that denoising in memory cuts them into.
"""

from __future__ import annotations

import dask.array as da

from nlnet.arrays import Array
from nlnet.dask.blocks import map_with_halo
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
    depth = {along: REACH if len(chunks[along]) > 1 else 0}
    for axis, length in zip(work.layout.image_axes, work.layout.shape[1:], strict=True):
        chunks[axis], depth[axis % array.ndim] = window_sides(length)
    if work.layout.channel_axis is not None:
        chunks[work.layout.channel_axis] = (work.layout.shape[0],)
    pixels = work.layout.pixel_axes
    numbers, last = da.arange(array.shape[along]), array.shape[along] - 1
    inputs = [(hidden, pixels), (maps, pixels), (numbers, (along,)), (plans, range(plans.ndim))]
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
    for indices in series_of_pages(plans.shape, along):
        pages = denoise_series(
            len(indices),
            lambda at, indices=indices: work.read_page(  # type: ignore[misc]
                block, hidden, maps, indices[at], plans.item(indices[at])
            ),
            work.shares,
            work.network,
            ignore,
            range(first, end),
        )
        for number, _, image in pages:
            if image is not None:
                denoised[indices[number]] = image
    return denoised
