"""Block matching: finding, for every pixel, the patches most similar to its own.

The engine does it (``engine/src/matching.cpp``); `nlnet.torch.plain.find_groups` states it in torch
operations.
"""

import dataclasses

import numpy as np

from nlnet.arrays import FloatArray, Groups
from nlnet.engine import tasks
from nlnet.errors import InputError
from nlnet.network.block import prepare_blank
from nlnet.network.config import NetworkConfig


def find_groups(images: FloatArray, config: NetworkConfig, threads: int | None = None) -> Groups:
    """Return, for every pixel, the offsets of the K patches most like the one around it.

    Distances are computed in float32, whatever the images' dtype: training in float64 then sees
    the very groups that denoising does.

    Parameters
    ----------
    images : (B, H, W) array
        Grayscale images, or the luminances of color images.
    config : NetworkConfig
        Patch size, group size and search window.
    threads : int, optional
        Number of threads, by default all CPUs the process may use. The groups are the same to the
        bit for any number of them.

    Returns
    -------
    (B, H, W, K, 2) int8 array
        (dy, dx) of each member: the pixel itself, then by ascending squared distance, equal ones
        by ascending length of the offset, then row by row.

    Raises
    ------
    InputError
        If the images are too small for a whole group.
    """
    _, height, width = images.shape
    check_size(height, width, config)
    network = prepare_blank(dataclasses.replace(config, channels=1, stages=1, refinement=None))
    return tasks.match(network, np.ascontiguousarray(images, np.float32), threads)


def check_size(height: int, width: int, config: NetworkConfig) -> None:
    """Raise InputError unless every pixel of such an image can have a whole group."""
    if min(height, width) < config.patch_size:
        raise InputError(
            f"The image is {width}x{height} pixels, but both sides must be at least the patch "
            f"size, {config.patch_size}."
        )
    # A corner sees the least: a quarter of the window.
    seen = config.window // 2 + 1
    if min(height, seen) * min(width, seen) < config.group_size:
        raise InputError(
            f"The image is {width}x{height} pixels, too few to find {config.group_size} patches "
            f"in a window of {config.window}x{config.window} at its corners."
        )
