"""The work on pages that lie in chunks: a halo around every chunk, and scales for camera noise.

White noise, and noise that only depends on the brightness, is removed at the full size. Correlated
noise is removed from coarse to fine, as in `denoising.coarse_to_fine`: a lazy array of half the
size is denoised in the same way, by chunks with a halo of their own, and what that changed is
enlarged and added to each chunk of the full size, halo included. So no chunk needs more of its
neighbors than the network reaches at its scale.

Which kind of noise a page has may be known only when it is computed. Tasks of a scale that a page
does not need then pass zeros on.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.array.overlap import overlap, trim_internal

from nlnet.arrays import Array, FloatArray
from nlnet.dask.chunks import computed_apart, even_chunks, merge_small
from nlnet.dask.pages import PagePlan
from nlnet.denoising.coarse_to_fine import halve, scales_for
from nlnet.denoising.removal import Network, remove_noise
from nlnet.denoising.strength import Shares
from nlnet.inputs import check_finite, from_planes, to_planes
from nlnet.model.loading import choose_model
from nlnet.model.model import Model
from nlnet.noise.deciding import pyramid_sigmas
from nlnet.noise.record import Noise
from nlnet.progress import ignore


@dataclasses.dataclass(frozen=True)
class Work:
    """How pages are denoised; what all their chunks have in common.

    Parameters
    ----------
    model : str, path or Model
        As for `nlnet.denoise`.
    reach : int
        How far the network looks.
    shape : (C, H, W)
        Shape of a page at the full size.
    image_axes : (int, int)
        The axes of rows and columns, counted from the end.
    channel_axis : int or None
        That of the channels, counted from the end.
    shares : (luma, chroma)
        How much of the noise is removed.
    threads, max_memory, device
        As for `nlnet.denoise`, for the work on one chunk.
    """

    model: str | os.PathLike[str] | Model
    reach: int
    shape: tuple[int, int, int]
    image_axes: tuple[int, int]
    channel_axis: int | None
    shares: Shares
    threads: int
    max_memory: int | None
    device: str

    @property
    def page_axes(self) -> int:
        """How many axes a page has."""
        return 2 if self.channel_axis is None else 3

    def network(self) -> Network:
        """Return what removes noise."""
        return Network(
            choose=lambda sigma: choose_model(self.model, self.shape[0], sigma),
            threads=self.threads,
            max_memory=self.max_memory,
            device=self.device,
        )

    def sigmas(self, plan: PagePlan) -> tuple[float, ...]:
        """Return what is to be removed at each scale, if the noise is correlated."""
        if plan.idle or not plan.noise.correlated:
            return ()
        return pyramid_sigmas(plan.noise)[: scales_for(self.shape, len(plan.noise.octaves))]


def denoise_chunks(
    array: da.Array, plans: da.Array, work: Work, scales: int, scale: int = 0
) -> da.Array:
    """Denoise pages at one scale, after the smaller ones.

    Parameters
    ----------
    array : dask array
        The pages, at this scale.
    plans : dask array
        A plan for each page, chunked as the first axes of `array`.
    work : Work
        How to do it.
    scales : int
        The number of scales that a page may need.
    scale : int
        0 for the full size, 1 for half of it, and so on.

    Returns
    -------
    dask array
        Of the same shape, dtype and chunks.
    """
    smaller = scale + 1 < scales
    # With two pixels more: what is enlarged is not exact in the outermost ones.
    halo = 2 * (-(-work.reach // 2) + 1) if smaller else work.reach
    chunks = list(array.chunks)
    for axis in work.image_axes:
        lengths = even_chunks(chunks[axis]) if smaller else chunks[axis]
        chunks[axis] = merge_small(lengths, halo)
    if work.channel_axis is not None:
        chunks[work.channel_axis] = (work.shape[0],)
    roomy = array.rechunk(tuple(chunks))
    change = _coarse_change(roomy, plans, work, scales, scale) if smaller else None

    # A single chunk has no neighbors, and may be smaller than the halo.
    depth = dict.fromkeys(range(array.ndim), 0)
    for axis in work.image_axes:
        depth[axis % array.ndim] = halo if len(chunks[axis]) > 1 else 0
    inputs = [_with_halo(roomy, depth)]
    if change is not None:
        inputs.append(_with_halo(change, {axis: rows // 2 for axis, rows in depth.items()}))
    with_halo = inputs[0].chunks
    denoised = _map_pages(
        _denoise_block, inputs, plans, with_halo, array.dtype, work=work, scale=scale
    )
    trimmed = trim_internal(denoised, depth, boundary="none")
    return cast(da.Array, trimmed.rechunk(array.chunks))


def _coarse_change(
    roomy: da.Array, plans: da.Array, work: Work, scales: int, scale: int
) -> da.Array:
    """Return what denoising changes at half the size; its chunks are half of those of `roomy`."""
    chunks = list(roomy.chunks)
    for axis in work.image_axes:
        chunks[axis] = tuple(length // 2 for length in chunks[axis])
    # Computed apart, so that no chunk waits in memory until the smaller scales are done.
    half = _map_pages(
        _halve_block,
        [computed_apart(roomy)],
        plans,
        tuple(chunks),
        np.dtype(np.float32),
        work=work,
        scale=scale + 1,
    )
    return cast(da.Array, denoise_chunks(half, plans, work, scales, scale + 1) - half)


def _with_halo(array: da.Array, depth: dict[int, int]) -> da.Array:
    return cast(da.Array, overlap(array, depth=depth, boundary="none", allow_rechunk=False))


def _map_pages(
    function: Callable[..., Array],
    inputs: Sequence[da.Array],
    plans: da.Array,
    chunks: tuple[tuple[int, ...], ...],
    dtype: np.dtype[Any],
    *,
    work: Work,
    scale: int,
) -> da.Array:
    """Call ``function(plans, *blocks, work=, scale=)`` for blocks of arrays of several sizes."""
    axes = tuple(range(inputs[0].ndim))
    pairs = [part for array in inputs for part in (array, axes)]
    mapped = da.blockwise(
        function,
        axes,
        *pairs,
        plans,
        axes[: plans.ndim],
        adjust_chunks=dict(enumerate(chunks)),
        align_arrays=False,
        meta=np.empty((0,) * len(axes), dtype),
        work=work,
        scale=scale,
    )
    return cast(da.Array, mapped)


def _halve_block(block: Array, plans: Array, *, work: Work, scale: int) -> FloatArray:
    """Return the pages of one chunk at half the size; zeros where that is not needed."""
    rows, columns = (block.ndim + axis for axis in work.image_axes)
    shape = list(block.shape)
    shape[rows], shape[columns] = shape[rows] // 2, shape[columns] // 2
    half = np.zeros(shape, np.float32)
    for page, plan in _plans(plans):
        if scale < len(work.sigmas(plan)):
            check_finite(block[page])
            half[page] = from_planes(
                halve(to_planes(block[page], work.channel_axis)), work.channel_axis
            )
    return half


def _denoise_block(*blocks: Array, work: Work, scale: int) -> Array:
    """Denoise every page of one chunk with its halo.

    The blocks are the chunk, what to add to it at half its size, if anything, and the plans.
    """
    block, *changes, plans = blocks
    denoised = np.empty_like(block)
    for page, plan in _plans(plans):
        check_finite(block[page])
        sigmas = work.sigmas(plan)
        if plan.idle or (scale > 0 and scale >= len(sigmas)):
            denoised[page] = block[page]
            continue
        noise = Noise.white(sigmas[scale]) if sigmas else plan.noise
        change = None
        if scale + 1 < len(sigmas):
            change = to_planes(changes[0][page], work.channel_axis)
        restored = remove_noise(
            to_planes(block[page], work.channel_axis),
            noise,
            plan.span,
            plan.box,
            (1.0, 1.0) if scale else work.shares,
            work.network(),
            ignore,
            change,
        )
        denoised[page] = from_planes(restored, work.channel_axis)
    return denoised


def _plans(plans: Array) -> Iterator[tuple[tuple[int, ...], PagePlan]]:
    """Yield where the pages of a chunk are, and what is to be done with them."""
    for page in np.ndindex(plans.shape):
        yield page, plans.item(page)
