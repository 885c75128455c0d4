"""What training asks of the engine: finding groups, and running stages both ways.

Every function takes arrays exactly as the engine wants them, contiguous and of the network's dtype;
other arrays are refused, with an error that says what is wrong.
"""

from typing import NamedTuple

import numpy as np

from nlnet.arrays import Box, FloatArray, Groups
from nlnet.engine.jobs import Job, threads_for
from nlnet.engine.library import load
from nlnet.engine.memory import address, checked_address
from nlnet.engine.network import EngineNetwork
from nlnet.errors import InputError

NO_BOX: Box = (1.0, 0.0)


def match(network: EngineNetwork, images: FloatArray, threads: int | None) -> Groups:
    """Return the groups, (B, H, W, K, 2), of a batch of (B, H, W) images."""
    batch, height, width = images.shape
    groups = np.empty((*images.shape, network.sizes.group, 2), np.int8)
    task = load().match_task(
        batch,
        height,
        width,
        checked_address("The batch", images, images.shape, network.dtype),
        address(groups),
        threads_for(images.size, threads),
    )
    Job("match", network.handle, task, (network, images, groups)).run(task.threads)
    return groups


class Run:
    """A run of (B, C, H, W) working planes through all stages of a network, given the groups.

    It keeps what the backward pass needs.

    Parameters
    ----------
    network : EngineNetwork
        The stages.
    estimate, noisy : (B, C, H, W) arrays
        What enters the first stage, and the noisy images.
    groups : (B, H, W, K, 2) int8 array
        Offsets of the groups' members; all of them lie inside the image.
    box : (low, high) or None
        Intensities that the estimate is kept in.
    project_last : bool
        Project the last stage's output, even if the config does not say so of every stage.
    threads : int or None
        Number of threads.

    Attributes
    ----------
    updates : (stages, B, C, H, W) array
        u of every stage.
    estimates : array of the same shape
        P_C(u) of every stage; the last is the result.
    """

    def __init__(
        self,
        network: EngineNetwork,
        estimate: FloatArray,
        noisy: FloatArray,
        groups: Groups,
        *,
        box: Box | None,
        project_last: bool,
        threads: int | None,
    ) -> None:
        sizes, dtype = network.sizes, network.dtype
        if noisy.ndim != 4 or noisy.shape[1] != sizes.channels:
            raise InputError(
                f"The noisy batch has shape {noisy.shape}, but must be (B, {sizes.channels}, H, W)."
            )
        _check_groups(groups, sizes.window // 2)
        batch, _, height, width = shape = noisy.shape
        self.network, self.noisy = network, noisy
        self.threads = threads_for(noisy.size, threads)
        self.updates, self.estimates = (np.empty((sizes.stages, *shape), dtype) for _ in range(2))
        self.task = load().forward_task(
            batch,
            height,
            width,
            0,
            sizes.stages,
            checked_address("The estimate", estimate, shape, dtype),
            checked_address("The noisy batch", noisy, shape, dtype),
            checked_address(
                "The array of groups", groups, (batch, height, width, sizes.group, 2), np.int8
            ),
            address(self.updates),
            address(self.estimates),
            *(box or NO_BOX),
            project_last,
            self.threads,
        )
        self._kept = estimate, groups
        Job("forward", network.handle, self.task, (self,)).run(self.threads)


class Gradients(NamedTuple):
    """Gradients of a loss: of the stages' values in float64, stage by stage, and of the images."""

    filters: FloatArray
    group_weights: FloatArray
    coefficients: FloatArray
    step_sizes: FloatArray
    estimate: FloatArray
    noisy: FloatArray


def backward(run: Run, cotangent: FloatArray) -> Gradients:
    """Return all gradients of a loss, given its gradient with respect to a run's result."""
    shape, (channels, stages, patch, group, _, rbf_count) = run.noisy.shape, run.network.sizes
    filters = patch**2 - 1
    shapes = ((filters, patch**2), (group,), (channels, filters, rbf_count), ())
    of_stages = [np.empty((stages, *each)) for each in shapes]
    estimate, noisy = (np.empty(shape, run.network.dtype) for _ in range(2))
    task = load().backward_task(
        run.task,
        checked_address("The cotangent", cotangent, shape, run.network.dtype),
        *map(address, (estimate, noisy, *of_stages)),
    )
    gradients = Gradients._make((*of_stages, estimate, noisy))
    Job("backward", run.network.handle, task, (run, cotangent, gradients)).run(run.threads)
    return gradients


def _check_groups(groups: Groups, radius: int) -> None:
    """Raise InputError if a member of a group is outside of its image or window."""
    if groups.ndim != 5:
        raise InputError(f"The groups have shape {groups.shape}, but must be (B, H, W, K, 2).")
    # Of each row and each column of pixels the farthest members on both sides.
    nearest, farthest = groups.min(axis=0), groups.max(axis=0)  # (H, W, K, 2)
    for axis, name in enumerate(("above or below", "beside")):
        places = np.arange(nearest.shape[axis])
        first = nearest.min(axis=1 - axis)[..., axis].min(axis=1)
        last = farthest.max(axis=1 - axis)[..., axis].max(axis=1)
        behind, ahead = np.minimum(places, radius), np.minimum(places[::-1], radius)
        if (first < -behind).any() or (last > ahead).any():
            raise InputError(f"The groups have members {name} the image or their windows.")
