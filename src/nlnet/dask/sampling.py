"""Gathering, from the chunks of an image, the sample that a noise estimate needs.

Of a large image `nlnet.estimate_noise` reads a bounded sample: tiles on a grid, patches on another,
and the extremes of all values. Here that sample is taken from the chunks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from nlnet.arrays import Array
from nlnet.dask.masks import fill_tiles, find_hidden, replace_hidden_patches
from nlnet.dask.samples import SampledPlanes, Summary
from nlnet.inputs import check_finite
from nlnet.masks import Mask, check_share, fill
from nlnet.noise.blocks import sample_tiles
from nlnet.noise.white import patch_size_and_step


def sample_planes(
    planes: da.Array,
    hidden: da.Array | None,
    *,
    tiles: bool,
    patches: bool,
    limit: float = math.inf,
) -> Delayed:
    """Return a task that gathers (C, H, W) planes: the whole of a small image, or a sample.

    Parameters
    ----------
    planes : dask array
        The image. Every chunk is looked at once.
    hidden : dask array or None
        Which pixels are left out, (H, W). Those are filled, and so is NaN.
    tiles, patches : bool
        Whether the kind of the noise will be asked for, and the strength of white noise.
    limit : float
        Values above it are counted.

    Raises
    ------
    InputError
        If there must be patches, but the image is too small; and when it is computed, if values
        are infinite or too large, or more than half of the pixels are left out.
    """
    planes = planes.rechunk({0: -1})
    size, step = patch_size_and_step(planes.shape) if patches else (1, 1)
    wanted = cast(list[da.Array], sample_tiles(cast(Array, planes)))
    if wanted[0] is planes:
        given = None if hidden is None else _in_one_piece(hidden)
        return cast(Delayed, delayed(_checked)(_in_one_piece(planes), given))
    blocks, masks = _tasks(planes), _like(planes, hidden)
    gathered = delayed(_gather)(
        planes.shape,
        planes.dtype,
        [delayed(Summary.of)(*pair, limit) for pair in zip(blocks, masks, strict=True)],
        [_in_one_piece(tile) for tile in wanted] if tiles else [],
        _tiles_of(hidden) if tiles and hidden is not None else [],
        _in_one_piece(_patches(planes, size, step)) if patches else None,
        _in_one_piece(_patches(hidden[np.newaxis], size, step))
        if patches and hidden is not None
        else None,
        size,
        step,
        limit,
    )
    return cast(Delayed, gathered)


def _like(planes: da.Array, hidden: da.Array | None) -> list[Delayed | None]:
    """Return the parts of a mask that belong to the chunks of the planes."""
    if hidden is None:
        return [None] * planes.npartitions
    return [*_tasks(hidden.rechunk(planes.chunks[1:]))]


def _tiles_of(hidden: da.Array) -> list[Delayed]:
    tiles = cast(list[da.Array], sample_tiles(cast(Array, hidden[np.newaxis])))
    return [_in_one_piece(tile[0]) for tile in tiles]


def _patches(planes: da.Array, size: int, step: int) -> da.Array:
    """Return the patches of the grid side by side, (C, rows * size, columns * size)."""
    rows, columns = (
        (np.arange(0, length - size + 1, step)[:, np.newaxis] + np.arange(size)).ravel()
        for length in planes.shape[1:]
    )
    return cast(da.Array, planes[:, rows][:, :, columns])


def _in_one_piece(array: da.Array) -> Delayed:
    return _tasks(array.rechunk(-1))[0]


def _tasks(array: da.Array) -> list[Delayed]:
    # Not optimized, which is done to the graph as a whole: parts that were fused on their own, here
    # and for another page, would not fit together.
    return cast(list[Delayed], array.to_delayed(optimize_graph=False).ravel().tolist())


def _checked(planes: Array, given: Mask | None) -> Array:
    """Return planes of finite values, all pixels that are left out filled."""
    hidden = find_hidden(planes, given)
    if hidden is not None:
        check_share(int(np.count_nonzero(hidden)), hidden.size)
        planes = fill(planes, hidden)
    check_finite(planes)
    return planes


def _gather(
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    summaries: Sequence[Summary],
    tiles: Sequence[Array],
    hidden_tiles: Sequence[Mask],
    sheet: Array | None,
    hidden_sheet: Array | None,
    size: int,
    step: int,
    limit: float,
) -> SampledPlanes:
    summary = Summary.merge(summaries)
    check_share(summary.hidden, shape[1] * shape[2])
    patches = None
    if sheet is not None:
        hidden = None if hidden_sheet is None else _cut(hidden_sheet, size)[0]
        patches = replace_hidden_patches(_cut(sheet, size), hidden)
    if tiles:
        tiles = fill_tiles(tiles, hidden_tiles or [None] * len(tiles))
    corners = _tile_corners(shape) if tiles else []
    return SampledPlanes(
        shape,
        dtype,
        summary,
        dict(zip(corners, tiles, strict=True)),
        patches,
        step,
        limit,
    )


def _cut(sheet: Array, size: int) -> Array:
    """Return the patches of a sheet on which they lie side by side."""
    channels, rows, columns = sheet.shape
    return sheet.reshape(channels, rows // size, size, columns // size, size).swapaxes(2, 3)


def _tile_corners(shape: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Return the top left corners of the tiles, which those of their coordinates begin with."""
    _, height, width = shape
    rows = np.broadcast_to(np.arange(height)[:, np.newaxis], shape)
    columns = np.broadcast_to(np.arange(width), shape)
    return [
        (int(row[0, 0, 0]), int(column[0, 0, 0]))
        for row, column in zip(sample_tiles(rows), sample_tiles(columns), strict=True)
    ]


def lazy_object(value: Any) -> da.Array:
    """Return a task's result, of any kind, as a dask array without axes."""
    return cast(
        da.Array, da.from_delayed(delayed(_as_array)(value), shape=(), dtype=np.dtype(object))
    )


def _as_array(value: object) -> Array:
    array = np.empty((), object)
    array[()] = value
    return array
