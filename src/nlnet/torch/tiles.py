"""The plain network tile by tile, which keeps its memory bounded where no gradients are wanted.

A pixel's result depends on a neighbourhood only. So a tile is computed with a margin around it, and
gives the same result as the whole image, up to the order of sums.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from nlnet.arrays import Box
from nlnet.network.config import NetworkConfig
from nlnet.torch import plain
from nlnet.torch.refinement import FixedRefinement, RefinementNet

DEFAULT_MEMORY = 1 << 30
"""Bytes that the work on a tile may take, unless the caller says otherwise."""

_LEAST_SIDE = 32
_STAGE_BYTES = 60
"""What a stage takes per pixel, channel and filter."""
_MATCHING_BYTES = 1400
"""What matching takes per pixel."""
_REFINEMENT_BYTES = 12
"""What a refinement takes per pixel and channel of its first level."""


def run_stages(
    estimate: Tensor,
    noisy: Tensor,
    groups: Tensor,
    stages: Sequence[plain.StageTensors],
    config: NetworkConfig,
    box: Box | None,
    *,
    project_last: bool,
    memory: int,
) -> Tensor:
    """Do what `plain.run_stages` does."""
    bytes_per_pixel = _STAGE_BYTES * config.filter_count * config.channels * len(noisy)
    margin = 2 * config.margin  # from a pixel to its patches, and to the other patches of a group
    side = tile_side(memory, bytes_per_pixel, margin)
    for number, stage in enumerate(stages, start=1):
        last = project_last and number == len(stages)
        part = functools.partial(_run_part, estimate, noisy, groups, stage, config, box, last)
        estimate = by_tiles(part, *noisy.shape[-2:], side=side, margin=margin)
    return estimate


def _run_part(
    estimate: Tensor,
    noisy: Tensor,
    groups: Tensor,
    stage: plain.StageTensors,
    config: NetworkConfig,
    box: Box | None,
    project_last: bool,
    rows: slice,
    columns: slice,
) -> Tensor:
    return plain.run_stages(
        estimate[..., rows, columns],
        noisy[..., rows, columns],
        groups[:, rows, columns],
        [stage],
        config,
        box,
        project_last=project_last,
    )


def find_groups(images: Tensor, config: NetworkConfig, memory: int) -> Tensor:
    """Do what `plain.find_groups` does; the result is the same to the bit."""

    def run(rows: slice, columns: slice) -> Tensor:
        groups = plain.find_groups(images[:, rows, columns], config)
        return groups.movedim((1, 2), (3, 4))  # (B, K, 2, h, w)

    side = tile_side(memory, _MATCHING_BYTES * len(images), config.margin)
    found = by_tiles(run, *images.shape[-2:], side=side, margin=config.margin)
    return found.movedim((3, 4), (1, 2))


def refine(
    refinement: RefinementNet | FixedRefinement,
    estimate: Tensor,
    noisy: Tensor,
    sigmas: Tensor | None,
    memory: int,
) -> Tensor:
    """Do what the refinement does."""

    def run(rows: slice, columns: slice) -> Tensor:
        planes = (estimate[..., rows, columns], noisy[..., rows, columns])
        refined: Tensor = refinement(*planes, sigmas)
        return refined

    sizes = refinement.config
    margin = math.ceil(sizes.reach / sizes.unit) * sizes.unit
    bytes_per_pixel = _REFINEMENT_BYTES * sizes.widths[0] * len(noisy)
    side = tile_side(memory, bytes_per_pixel, margin, sizes.unit)
    return by_tiles(run, *noisy.shape[-2:], side=side, margin=margin)


def tile_side(memory: int, bytes_per_pixel: int, margin: int, unit: int = 1) -> int:
    """Return the side of the tiles, a multiple of `unit`, whose work with its margin fits.

    Examples
    --------
    >>> tile_side(1 << 30, 2_700, 34)
    562
    """
    side = math.isqrt(memory // bytes_per_pixel) - 2 * margin
    return max(_LEAST_SIDE, side - side % unit)


def by_tiles(
    compute: Callable[[slice, slice], Tensor],
    height: int,
    width: int,
    *,
    side: int,
    margin: int,
) -> Tensor:
    """Return (..., H, W) planes that are put together from tiles.

    Parameters
    ----------
    compute : callable
        Given rows and columns of the image, returns its result for that part, (..., h, w). It is
        right where it is at least `margin` away from edges that are not the image's.
    height, width : int
        Size of the image.
    side, margin : int
        Side of the tiles, and what is computed around them.
    """
    result: Tensor | None = None
    for rows in _spans(height, side):
        for columns in _spans(width, side):
            around = (_widened(rows, height, margin), _widened(columns, width, margin))
            part = compute(*around)
            if result is None:
                result = part.new_empty(*part.shape[:-2], height, width)
            inner = [
                slice(own.start - outer.start, own.stop - outer.start)
                for own, outer in zip((rows, columns), around, strict=True)
            ]
            result[..., rows, columns] = part[..., inner[0], inner[1]]
    assert result is not None
    return result


def _spans(length: int, side: int) -> Iterator[slice]:
    for first in range(0, length, side):
        yield slice(first, min(first + side, length))


def _widened(span: slice, length: int, margin: int) -> slice:
    return slice(max(0, span.start - margin), min(length, span.stop + margin))
