"""Gathering, from the chunks of an image, the sample that a noise estimate needs.

Of a large image `nlnet.noise.sample.Sample` holds tiles on a grid and the extremes of all values.
Here that is taken from the chunks, each of which is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from nlnet.arrays import Array
from nlnet.dask.masks import fill_tiles, find_hidden
from nlnet.inputs import check_finite
from nlnet.masks import Mask, check_share
from nlnet.noise.sample import Extremes, Sample, check_size, tile_places


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
    blocks, masks = _tasks(planes), _like(planes, hidden)
    gathered = delayed(_gather)(
        planes.shape,
        planes.dtype,
        [delayed(_extremes)(*pair) for pair in zip(blocks, masks, strict=True)],
        [_in_one_piece(planes[place]) for place in places],
        [None if hidden is None else _in_one_piece(hidden[place[1:]]) for place in places],
        len(grid),
        missing,
    )
    return cast(Delayed, gathered)


def _like(planes: da.Array, hidden: da.Array | None) -> list[Delayed | None]:
    """Return the parts of a mask that belong to the chunks of the planes."""
    if hidden is None:
        return [None] * planes.npartitions
    return [*_tasks(hidden.rechunk(planes.chunks[1:]))]


def _in_one_piece(array: da.Array) -> Delayed:
    return _tasks(array.rechunk(-1))[0]


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


def lazy_object(value: Any) -> da.Array:
    """Return a task's result, of any kind, as a dask array without axes."""
    return cast(
        da.Array, da.from_delayed(delayed(_as_array)(value), shape=(), dtype=np.dtype(object))
    )


def _as_array(value: object) -> Array:
    array = np.empty((), object)
    array[()] = value
    return array
