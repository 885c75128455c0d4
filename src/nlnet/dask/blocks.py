"""Denoising pages chunk by chunk: a halo around every chunk, and scales for camera noise.

White noise, and noise that only depends on the brightness, is removed at the full size. Correlated
noise is removed from coarse to fine, as the engine does it in memory: a lazy array of half the
size is denoised in the same way, by chunks with a halo of their own, and what that changed is
enlarged and added to each chunk of the full size, halo included. So no chunk needs more of its
neighbors than the network reaches at its scale.

Which kind of noise a page has may be known only when it is computed. Tasks of a scale that a page
does not need then pass zeros on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import dask.array as da
import numpy as np
from dask.array.overlap import overlap, trim_internal

from nlnet.arrays import Array, FloatArray
from nlnet.dask.chunks import LazyPages, halo_of, merge_small, whole_chunks
from nlnet.dask.masks import find_hidden, halve_present
from nlnet.dask.work import Work
from nlnet.denoising.page import denoise_planes
from nlnet.denoising.plan import Plan
from nlnet.inputs import from_planes, to_planes
from nlnet.masks import Mask
from nlnet.progress import ignore

Input: TypeAlias = tuple[da.Array | None, Sequence[int]]
"""An array, and which axes it has of the one that is worked on."""


def denoise_chunks(
    pages: LazyPages, plans: da.Array, work: Work, scales: int, scale: int = 0
) -> da.Array:
    """Denoise pages at one scale, after the smaller ones.

    Parameters
    ----------
    pages : LazyPages
        The pages, at this scale. At smaller scales, pixels that are left out are all NaN; with maps
        of sigma, there is one scale.
    plans : dask array
        A plan for each page, chunked as the first axes of the pages.
    work : Work
        How to do it.
    scales : int
        The number of scales that a page may need.
    scale : int
        0 for the full size, 1 for half of it, and so on.

    Returns
    -------
    dask array
        Of the same shape, dtype and chunks: the pages without noise; at smaller scales, what that
        has changed.
    """
    array, smaller = pages.values, scale + 1 < scales
    unit, halo = halo_of(work.config, smaller=smaller)
    chunks = list(array.chunks)
    for axis in work.layout.image_axes:
        chunks[axis] = merge_small(whole_chunks(chunks[axis], unit), halo)
    if work.layout.channel_axis is not None:
        chunks[work.layout.channel_axis] = (work.layout.shape[0],)
    axes, pixels = range(array.ndim), work.layout.pixel_axes
    rows, columns = (axis % array.ndim for axis in work.layout.image_axes)
    # A single chunk has no neighbors, and may be smaller than the halo.
    depth = {axis: halo if len(chunks[axis]) > 1 else 0 for axis in (rows, columns)}
    change = None
    if smaller:
        change = _coarse_change(pages, chunks, plans, work, scales, scale)
        change = _with_halo(change, axes, {axis: length // 2 for axis, length in depth.items()})
    inputs = [
        (pages.hidden, pixels),
        (pages.maps, pixels),
        (da.arange(array.shape[rows]), (rows,)),
        (da.arange(array.shape[columns]), (columns,)),
    ]
    others = [(change, axes), (plans, axes[: plans.ndim])]
    return map_with_halo(
        _denoise_block, array, inputs, others, chunks, depth, work=work, scale=scale
    )


def _coarse_change(
    pages: LazyPages,
    chunks: Sequence[tuple[int, ...]],
    plans: da.Array,
    work: Work,
    scales: int,
    scale: int,
) -> da.Array:
    """Return what denoising changes at half the size, of which the chunks are half of these."""
    halves = list(chunks)
    for axis in work.layout.image_axes:
        halves[axis] = tuple(length // 2 for length in chunks[axis])
    # Computed apart, so that no chunk waits in memory until the smaller scales are done.
    given, axes = pages.apart(), range(len(chunks))
    pairs = ((given.values, axes), (given.hidden, work.layout.pixel_axes))
    inputs = [(_rechunked(each, own, chunks), own) for each, own in pairs]
    inputs.append((plans, axes[: plans.ndim]))
    more = {"work": work, "scale": scale + 1}
    half = map_pages(_halve_block, inputs, tuple(halves), np.dtype(np.float32), **more)
    return denoise_chunks(LazyPages(half), plans, work, scales, scale + 1)


def map_with_halo(
    function: Callable[..., Array],
    array: da.Array,
    inputs: Sequence[Input],
    others: Sequence[Input],
    chunks: Sequence[tuple[int, ...]],
    depth: Mapping[int, int],
    **more: Any,
) -> da.Array:
    """Call ``function(*blocks, **more)`` for blocks with a halo, which is cut off the results.

    Parameters
    ----------
    function : callable
        Called with a block of `array` and those of all inputs.
    array : dask array
        What the result is like, also in its chunks.
    inputs, others : sequence of (array, axes)
        Arrays that have some of its axes; those of `others` are chunked and have a halo already.
    chunks : sequence
        The chunks to work on.
    depth : mapping
        The halo of each axis that has one.
    **more
        For the function.
    """
    whole: Input = (array, range(array.ndim))
    wide = [
        (each if each is None else _with_halo(_rechunked(each, own, chunks), own, depth), own)
        for each, own in (whole, *inputs)
    ]
    assert wide[0][0] is not None
    mapped = map_pages(function, [*wide, *others], wide[0][0].chunks, array.dtype, **more)
    cut = {axis: depth.get(axis, 0) for axis in range(array.ndim)}
    return cast(da.Array, trim_internal(mapped, cut, boundary="none").rechunk(array.chunks))


def _rechunked(array: Any, axes: Sequence[int], chunks: Sequence[tuple[int, ...]]) -> Any:
    return None if array is None else array.rechunk(tuple(chunks[axis] for axis in axes))


def _with_halo(array: da.Array, axes: Sequence[int], depth: Mapping[int, int]) -> da.Array:
    """Return an array whose chunks have some of their neighbors around, but none at its ends."""
    own = {number: depth.get(axis, 0) for number, axis in enumerate(axes)}
    return cast(da.Array, overlap(array, depth=own, boundary="none", allow_rechunk=False))


def map_pages(
    function: Callable[..., Array],
    inputs: Sequence[Input],
    chunks: tuple[tuple[int, ...], ...],
    dtype: np.dtype[Any],
    **more: Any,
) -> da.Array:
    """Call ``function(*blocks, **more)`` for the blocks of arrays, each given with its axes.

    The first one has all axes. What is None is passed on as it is.
    """
    axes = tuple(inputs[0][1])
    pairs = [part for array, own in inputs for part in (array, None if array is None else own)]
    mapped = da.blockwise(
        function,
        axes,
        *pairs,
        adjust_chunks=dict(enumerate(chunks)),
        align_arrays=False,
        meta=np.empty((0,) * len(axes), dtype),
        **more,
    )
    return cast(da.Array, mapped)


def _halve_block(
    block: Array, hidden: Mask | None, plans: Array, *, work: Work, scale: int
) -> FloatArray:
    """Return the pages of one chunk at half the size; zeros where that is not needed."""
    rows, columns = (block.ndim + axis for axis in work.layout.image_axes)
    shape = list(block.shape)
    shape[rows], shape[columns] = shape[rows] // 2, shape[columns] // 2
    half = np.zeros(shape, np.float32)
    for page, plan in _plans(plans):
        if scale < work.scales(plan):
            planes = to_planes(block[page], work.layout.channel_axis)
            left_out = find_hidden(planes, None if hidden is None else hidden[page])
            half[page] = from_planes(halve_present(planes, left_out), work.layout.channel_axis)
    return half


def _denoise_block(
    block: Array,
    hidden: Mask | None,
    maps: Array | None,
    rows: Array,
    columns: Array,
    change: FloatArray | None,
    plans: Array,
    *,
    work: Work,
    scale: int,
) -> Array:
    """Denoise every page of one chunk with its halo; at smaller scales, return the change.

    At the full size, and if there are smaller ones at all, `change` is what they have changed.
    """
    denoised = np.zeros_like(block) if scale else block.copy()
    for index, plan in _plans(plans):
        found = work.read_page(block, hidden, maps, index, plan)
        scales = work.scales(plan)
        if found is None or plan.idle or (scale > 0 and scale >= scales):
            continue
        page = found.page
        coarse = None
        if scale + 1 < scales:
            assert change is not None
            coarse = to_planes(change[index], work.layout.channel_axis)
            coarse = np.ascontiguousarray(coarse, np.float32)
        restored, _ = denoise_planes(
            page.planes,
            plan,
            work.network.unblended() if scale else work.network,  # blended at the full size only
            ignore,
            part=work.part(scale, rows, columns, coarse) if scales else None,
            sigma_map=found.sigma_map,
        )
        if scale:
            denoised[index] = from_planes(restored - page.planes, work.layout.channel_axis)
        else:
            denoised[index] = page.put_back(restored)
    return denoised


def _plans(plans: Array) -> Iterator[tuple[tuple[int, ...], Plan]]:
    """Yield the index of every page of a chunk, and its plan."""
    for page in np.ndindex(plans.shape):
        yield page, plans.item(page)
