"""Denoising pages chunk by chunk: a halo around every chunk, and scales for camera noise.

White noise, and noise that only depends on the brightness, is removed at the full size. Correlated
noise is removed from coarse to fine, as in `denoising.camera`: a lazy array of half the
size is denoised in the same way, by chunks with a halo of their own, and what that changed is
enlarged and added to each chunk of the full size, halo included. So no chunk needs more of its
neighbors than the network reaches at its scale.

Which kind of noise a page has may be known only when it is computed. Tasks of a scale that a page
does not need then pass zeros on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import dask.array as da
import numpy as np
from dask.array.overlap import overlap, trim_internal

from nlnet.arrays import Array, FloatArray
from nlnet.dask.chunks import computed_apart, merge_small, whole_chunks
from nlnet.dask.masks import find_hidden, halve_present
from nlnet.dask.sigma_maps import map_of_block
from nlnet.dask.work import Work
from nlnet.denoising.plan import Plan
from nlnet.denoising.removal import denoise_planes
from nlnet.inputs import check_finite, from_planes, to_planes
from nlnet.masks import Mask, fill
from nlnet.progress import ignore


def denoise_chunks(
    array: da.Array,
    plans: da.Array,
    work: Work,
    scales: int,
    scale: int = 0,
    hidden: da.Array | None = None,
    maps: da.Array | None = None,
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
    hidden : dask array, optional
        Which pixels are left out, of the shape of the pages and (H, W); so is NaN. At smaller
        scales they are all NaN.
    maps : dask array, optional
        Maps of sigma, of the same shape; then there is one scale.

    Returns
    -------
    dask array
        Of the same shape, dtype and chunks: the pages without noise; at smaller scales, what that
        has changed.
    """
    smaller = scale + 1 < scales
    # Chunks are halved on their own, and what is enlarged is not exact in the outermost pixels.
    unit = max(2, work.unit) if smaller else work.unit
    halo = unit * -(-(work.reach + (2 if smaller else 0)) // unit)
    chunks = list(array.chunks)
    for axis in work.image_axes:
        chunks[axis] = merge_small(whole_chunks(chunks[axis], unit), halo)
    if work.channel_axis is not None:
        chunks[work.channel_axis] = (work.shape[0],)
    roomy = array.rechunk(tuple(chunks))
    pixels = tuple(chunks[axis] for axis in work.mask_axes(array.ndim))
    hidden, maps = (each if each is None else each.rechunk(pixels) for each in (hidden, maps))
    change = _coarse_change(roomy, hidden, plans, work, scales, scale) if smaller else None

    # A single chunk has no neighbors, and may be smaller than the halo.
    depth = dict.fromkeys(range(array.ndim), 0)
    for axis in work.image_axes:
        depth[axis % array.ndim] = halo if len(chunks[axis]) > 1 else 0
    wide = _with_halo(roomy, depth)
    halos = dict(enumerate(depth[axis] for axis in work.mask_axes(array.ndim)))
    hidden, maps = (each if each is None else _with_halo(each, halos) for each in (hidden, maps))
    if change is not None:
        change = _with_halo(change, {axis: rows // 2 for axis, rows in depth.items()})
    places = [
        _with_halo(da.arange(sum(chunks[axis]), chunks=(chunks[axis],)), {0: depth[axis]})
        for axis in (axis % array.ndim for axis in work.image_axes)
    ]
    inputs = _Inputs(wide, hidden, maps, change, *places)
    denoised = _map_pages(_denoise_block, inputs, plans, wide.chunks, array.dtype, work, scale)
    trimmed = trim_internal(denoised, depth, boundary="none")
    return cast(da.Array, trimmed.rechunk(array.chunks))


def _coarse_change(
    roomy: da.Array,
    hidden: da.Array | None,
    plans: da.Array,
    work: Work,
    scales: int,
    scale: int,
) -> da.Array:
    """Return what denoising changes at half the size; its chunks are half of those of `roomy`."""
    chunks = list(roomy.chunks)
    for axis in work.image_axes:
        chunks[axis] = tuple(length // 2 for length in chunks[axis])
    # Computed apart, so that no chunk waits in memory until the smaller scales are done.
    left_out = None if hidden is None else computed_apart(hidden)
    apart = _Inputs(computed_apart(roomy), left_out)
    half = _map_pages(
        _halve_block, apart, plans, tuple(chunks), np.dtype(np.float32), work, scale + 1
    )
    return denoise_chunks(half, plans, work, scales, scale + 1)


def _with_halo(array: da.Array, depth: dict[int, int]) -> da.Array:
    return cast(da.Array, overlap(array, depth=depth, boundary="none", allow_rechunk=False))


class _Inputs(NamedTuple):
    """Arrays whose blocks are worked on together; all but the first may be missing."""

    array: da.Array
    hidden: da.Array | None = None
    maps: da.Array | None = None
    """These two have no channels."""
    change: da.Array | None = None
    """Of half the size."""
    rows: da.Array | None = None
    columns: da.Array | None = None
    """Where each row and column of a block is in the image."""


def _map_pages(
    function: Callable[..., Array],
    inputs: _Inputs,
    plans: da.Array,
    chunks: tuple[tuple[int, ...], ...],
    dtype: np.dtype[Any],
    work: Work,
    scale: int,
) -> da.Array:
    """Call ``function(*blocks, plans, work=, scale=)`` for the blocks of all inputs."""
    axes = tuple(range(inputs.array.ndim))
    pixels = work.mask_axes(len(axes))
    down, across = (((axis % len(axes)),) for axis in work.image_axes)
    pairs: list[Any] = []
    for array, own in zip(inputs, (axes, pixels, pixels, axes, down, across), strict=True):
        pairs += [array, None if array is None else own]  # blockwise passes None on as it is
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


def _halve_block(
    block: Array,
    hidden: Mask | None,
    maps: None,
    change: None,
    rows_in_image: None,
    columns_in_image: None,
    plans: Array,
    *,
    work: Work,
    scale: int,
) -> FloatArray:
    """Return the pages of one chunk at half the size; zeros where that is not needed."""
    rows, columns = (block.ndim + axis for axis in work.image_axes)
    shape = list(block.shape)
    shape[rows], shape[columns] = shape[rows] // 2, shape[columns] // 2
    half = np.zeros(shape, np.float32)
    for page, plan in _plans(plans):
        if scale < work.scales(plan):
            planes = to_planes(block[page], work.channel_axis)
            left_out = find_hidden(planes, None if hidden is None else hidden[page])
            half[page] = from_planes(halve_present(planes, left_out), work.channel_axis)
    return half


def _denoise_block(
    block: Array,
    hidden: Mask | None,
    maps: Array | None,
    change: FloatArray | None,
    rows: Array,
    columns: Array,
    plans: Array,
    *,
    work: Work,
    scale: int,
) -> Array:
    """Denoise every page of one chunk with its halo; at smaller scales, return the change.

    At the full size, and if there are smaller ones at all, `change` is what they have changed.
    """
    denoised = np.zeros_like(block) if scale else block.copy()
    for page, plan in _plans(plans):
        original = to_planes(block[page], work.channel_axis)
        left_out = find_hidden(original, None if hidden is None else hidden[page])
        if left_out is not None and left_out.all():
            continue
        planes = original if left_out is None else fill(original, left_out)
        check_finite(planes)
        scales = work.scales(plan)
        if plan.idle or (scale > 0 and scale >= scales):
            continue
        place = work.place(scale, rows, columns) if scales else None
        coarse = None
        if scale + 1 < scales:
            assert change is not None
            coarse = to_planes(change[page], work.channel_axis)
        sigma_map = None
        if maps is not None and plan.sigmas is not None:
            magnitude = max(map(abs, plan.values))
            sigma_map = map_of_block(maps[page], left_out, plan.sigmas, magnitude)
        restored, _ = denoise_planes(
            planes,
            plan,
            work.shares_at(scale),
            work.network(),
            ignore,
            change=coarse,
            place=place,
            sigma_map=sigma_map,
        )
        if scale:
            restored -= planes
        elif left_out is not None:
            restored[:, left_out] = original[:, left_out]
        denoised[page] = from_planes(restored, work.channel_axis)
    return denoised


def _plans(plans: Array) -> Iterator[tuple[tuple[int, ...], Plan]]:
    """Yield the index of every page of a chunk, and its plan."""
    for page in np.ndindex(plans.shape):
        yield page, plans.item(page)
