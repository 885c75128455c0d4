"""How strong white noise is, found from the image alone: ``engine/src/estimates/white.cpp``."""

from __future__ import annotations

from nlnet.engine import estimates
from nlnet.errors import InputError
from nlnet.noise.sample import Sample

LEAST_SIDE = 8
"""Pixels that an image must have along a side for its noise to be estimated."""


def estimate_white(sample: Sample) -> float:
    """Estimate the standard deviation of white Gaussian noise, as `nlnet.estimate_sigma` does.

    Parameters
    ----------
    sample : Sample
        What is looked at of the image.

    Raises
    ------
    InputError
        If the image is too small.
    """
    check_size(sample.shape)
    if sample.unit == 0:
        return 0.0
    planes = [plane for tile in sample.scaled_tiles for plane in tile]
    return sample.unit * estimates.estimate_white(planes, sample.scaled_limits)


def check_size(shape: tuple[int, ...]) -> None:
    """Raise InputError if an image of shape (C, H, W) is too small."""
    if min(shape[1:]) < LEAST_SIDE:
        raise InputError(
            f"The image is {shape[2]}x{shape[1]} pixels, but estimating its noise takes at least "
            f"{LEAST_SIDE}x{LEAST_SIDE}; give sigma instead."
        )
