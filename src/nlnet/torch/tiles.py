"""The plain network tile by tile, which keeps its memory bounded where no gradients are wanted.

A pixel's result depends on a neighbourhood only. So a tile is computed with a margin around it, and
gives the same result as the whole image, up to the order of sums.
"""

import functools
import itertools
import math
from collections.abc import Callable

from torch import Tensor

from nlnet.network.config import NetworkConfig
from nlnet.torch import plain
from nlnet.torch.refinement import RefinementNet

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
    estimate: Tensor, noisy: Tensor, groups: Tensor, stages: plain.Stages, memory: int
) -> Tensor:
    """Do what `plain.run_stages` does."""
    config = stages.config
    bytes_per_pixel = _STAGE_BYTES * config.filter_count * config.channels * len(noisy)
    margin = 2 * config.margin  # from a pixel to its patches, and to the other patches of a group
    side = tile_side(memory, bytes_per_pixel, margin)
    places = groups.movedim((1, 2), (3, 4))  # (B, K, 2, H, W)
    for number, stage in enumerate(stages.tensors, start=1):
        last = stages.project_last and number == len(stages.tensors)
        run = functools.partial(_run_tile, stages._replace(tensors=[stage], project_last=last))
        estimate = by_tiles(run, estimate, noisy, places, side=side, margin=margin)
    return estimate


def _run_tile(stages: plain.Stages, estimate: Tensor, noisy: Tensor, places: Tensor) -> Tensor:
    return plain.run_stages(estimate, noisy, places.movedim((3, 4), (1, 2)), stages)


def find_groups(images: Tensor, config: NetworkConfig, memory: int) -> Tensor:
    """Do what `plain.find_groups` does; the result is the same to the bit."""

    def run(part: Tensor) -> Tensor:
        return plain.find_groups(part, config).movedim((1, 2), (3, 4))  # (B, K, 2, h, w)

    side = tile_side(memory, _MATCHING_BYTES * len(images), config.margin)
    return by_tiles(run, images, side=side, margin=config.margin).movedim((3, 4), (1, 2))


def refine(
    refinement: RefinementNet,
    estimate: Tensor,
    noisy: Tensor,
    sigmas: Tensor | None,
    memory: int,
) -> Tensor:
    """Do what the refinement does."""
    sizes = refinement.config
    margin = math.ceil(sizes.reach / sizes.unit) * sizes.unit
    side = tile_side(memory, _REFINEMENT_BYTES * sizes.widths[0] * len(noisy), margin, sizes.unit)
    run = functools.partial(refinement, sigmas=sigmas)
    return by_tiles(run, estimate, noisy, side=side, margin=margin)


def tile_side(memory: int, bytes_per_pixel: int, margin: int, unit: int = 1) -> int:
    """Return the side of the tiles, a multiple of `unit`, whose work with its margin fits.

    Examples
    --------
    >>> tile_side(1 << 30, 2_700, 34)
    562
    """
    side = math.isqrt(memory // bytes_per_pixel) - 2 * margin
    return max(_LEAST_SIDE, side - side % unit)


def by_tiles(compute: Callable[..., Tensor], *planes: Tensor, side: int, margin: int) -> Tensor:
    """Return (..., H, W) planes that are put together from tiles.

    Parameters
    ----------
    compute : callable
        Given a part of each of the planes, returns its result for it, (..., h, w), which is right
        where it is at least `margin` away from edges that are not the image's.
    planes : (..., H, W) tensors
        What is worked on.
    side, margin : int
        Side of the tiles, and what is computed around them.
    """
    height, width = planes[0].shape[-2:]
    result: Tensor | None = None
    for top, left in itertools.product(range(0, height, side), range(0, width, side)):
        above, before = min(top, margin), min(left, margin)
        rows = slice(top - above, top + side + margin)
        columns = slice(left - before, left + side + margin)
        part = compute(*(each[..., rows, columns] for each in planes))
        part = part[..., above : above + side, before : before + side]
        if result is None:
            result = part.new_empty(*part.shape[:-2], height, width)
        result[..., top : top + side, left : left + side] = part
    assert result is not None
    return result
