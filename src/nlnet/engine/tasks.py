"""What the engine does: denoise an image, find groups, run stages forward and backward.

Every function takes arrays exactly as the engine wants them, contiguous and of the network's dtype,
or says what is wrong with them.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.config import NetworkConfig
from nlnet.engine.jobs import Failures, Job, Progress, memory_needed, threads_for
from nlnet.engine.library import (
    ROWS_CALLBACK,
    BackwardTask,
    DenoiseTask,
    ForwardTask,
    MatchTask,
)
from nlnet.engine.memory import Workspace, checked_address
from nlnet.engine.prepared import PreparedNetwork, prepare_matching
from nlnet.errors import InputError

Box = tuple[float, float]
ReadRows = Callable[[int, int], FloatArray]
WriteRows = Callable[[int, FloatArray], None]

_NO_BOX: Box = (1.0, 0.0)


def denoise(
    network: PreparedNetwork,
    read: ReadRows,
    write: WriteRows,
    shape: tuple[int, int, int],
    *,
    box: Box | None,
    threads: int | None,
    tile_rows: int,
    progress: Progress | None = None,
) -> None:
    """Denoise an image that is read and written some rows at a time.

    The parameters are those of :func:`nlnet.network.denoise_rows`, and the height of tiles: fewer
    rows take less memory.
    """
    failures = Failures()
    task = _denoise_task(shape, box, threads, tile_rows)
    task.noisy.rows = reader = _reader(read, shape, network.dtype, failures)
    task.denoised.rows = writer = _callback(write, shape, network.dtype, failures)
    job = Job(network, task, (reader, writer), failures=failures)
    job.run(task.threads, progress)


def denoising_memory(
    network: PreparedNetwork, shape: tuple[int, int, int], threads: int | None, tile_rows: int
) -> int:
    """Return the bytes that :func:`denoise` takes, besides what is read and written."""
    task = _denoise_task(shape, None, threads, tile_rows)
    task.noisy.rows = task.denoised.rows = never_called = ROWS_CALLBACK(lambda *_: 1)
    needed = memory_needed(network, task)
    del never_called
    return needed


def match(
    images: Array, config: NetworkConfig, threads: int | None, workspace: Workspace | None = None
) -> Groups:
    """Return the groups, (B, H, W, K, 2), of a batch of (B, H, W) float32 images."""
    batch, height, width = images.shape
    groups = np.empty((*images.shape, config.group_size, 2), np.int8)
    task = MatchTask(
        batch,
        height,
        width,
        checked_address("The batch", images, images.shape, np.float32),
        checked_address("The groups", groups, groups.shape, np.int8, written=True),
        threads_for(images.size, threads),
    )
    job = Job(prepare_matching(config), task, (images, groups), workspace=workspace)
    job.run(task.threads)
    return groups


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """A run of a batch through stages, with what the backward pass needs of it.

    All planes are working planes (gray, or opponent colors), (B, C, H, W).
    """

    network: PreparedNetwork
    estimate: FloatArray
    noisy: FloatArray
    groups: Groups
    box: Box | None
    project_last: bool
    threads: int
    updates: FloatArray
    """u of every stage, (stages, B, C, H, W)."""
    estimates: FloatArray
    """P_C(u) of every stage, of the same shape; the last is the result."""

    def task(self) -> ForwardTask:
        """Return the task of the forward pass."""
        batch, _, height, width = shape = self.noisy.shape
        dtype, stages = self.network.dtype, self.network.config.stages
        groups = (batch, height, width, self.network.config.group_size, 2)
        low, high = self.box or _NO_BOX
        return ForwardTask(
            batch,
            height,
            width,
            0,
            stages,
            checked_address("The estimate", self.estimate, shape, dtype),
            checked_address("The noisy batch", self.noisy, shape, dtype),
            checked_address("The groups", self.groups, groups, np.int8),
            checked_address("updates", self.updates, (stages, *shape), dtype, written=True),
            checked_address("estimates", self.estimates, (stages, *shape), dtype, written=True),
            low,
            high,
            self.project_last,
            self.threads,
        )


def forward(
    network: PreparedNetwork,
    estimate: FloatArray,
    noisy: FloatArray,
    groups: Groups,
    *,
    box: Box | None,
    project_last: bool,
    threads: int | None,
    workspace: Workspace | None = None,
) -> Run:
    """Run (B, C, H, W) working planes through all stages of a network, given the groups.

    Parameters
    ----------
    network : PreparedNetwork
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
    workspace : Workspace, optional
        Where memory for the job comes from.
    """
    if noisy.ndim != 4 or noisy.shape[1] != network.config.channels:
        raise InputError(
            f"The noisy batch has shape {noisy.shape}, but must be "
            f"(B, {network.config.channels}, H, W)."
        )
    _check_groups(groups, network.config)
    recorded = (network.config.stages, *noisy.shape)
    run = Run(
        network,
        estimate,
        noisy,
        groups,
        box,
        project_last,
        threads_for(noisy.size, threads),
        np.empty(recorded, network.dtype),
        np.empty(recorded, network.dtype),
    )
    Job(network, run.task(), (run,), workspace=workspace).run(run.threads)
    return run


@dataclasses.dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of a loss: of the stages' values in float64, stage by stage, and of the images."""

    filters: FloatArray
    group_weights: FloatArray
    coefficients: FloatArray
    step_sizes: FloatArray
    estimate: FloatArray
    noisy: FloatArray


def backward(run: Run, cotangent: FloatArray, workspace: Workspace | None = None) -> Gradients:
    """Return all gradients of a loss, given its gradient with respect to a run's result."""
    config, shape = run.network.config, run.noisy.shape
    stages, filters = config.stages, config.filter_count
    gradients = Gradients(
        np.empty((stages, filters, config.patch_size**2)),
        np.empty((stages, config.group_size)),
        np.empty((stages, config.channels, filters, config.rbf_count)),
        np.empty(stages),
        np.empty(shape, run.network.dtype),
        np.empty(shape, run.network.dtype),
    )
    task = BackwardTask(run.task())
    task.cotangent = checked_address("The cotangent", cotangent, shape, run.network.dtype)
    task.estimate_gradient = gradients.estimate.ctypes.data
    task.noisy_gradient = gradients.noisy.ctypes.data
    for name in ("filters", "group_weights", "coefficients", "step_sizes"):
        setattr(task, name, getattr(gradients, name).ctypes.data)
    job = Job(run.network, task, (run, cotangent, gradients), workspace=workspace)
    job.run(run.threads)
    return gradients


def _check_groups(groups: Groups, config: NetworkConfig) -> None:
    """Raise InputError if a member of a group is outside of its image or window."""
    if groups.ndim != 5:
        raise InputError(f"The groups have shape {groups.shape}, but must be (B, H, W, K, 2).")
    reach = config.window // 2
    # Of each row and each column of pixels the farthest members on both sides.
    nearest, farthest = groups.min(axis=0), groups.max(axis=0)  # (H, W, K, 2)
    for axis, name in enumerate(("above or below", "beside")):
        places = np.arange(nearest.shape[axis])
        first = nearest.min(axis=1 - axis)[..., axis].min(axis=1)
        last = farthest.max(axis=1 - axis)[..., axis].max(axis=1)
        behind, ahead = np.minimum(places, reach), np.minimum(places[::-1], reach)
        if (first < -behind).any() or (last > ahead).any():
            raise InputError(f"The groups have members {name} the image or their windows.")


def _denoise_task(
    shape: tuple[int, int, int], box: Box | None, threads: int | None, tile_rows: int
) -> DenoiseTask:
    _, height, width = shape
    task = DenoiseTask(height, width)
    task.low, task.high = box or _NO_BOX
    task.threads = threads_for(height * width, threads)
    task.tile_rows = tile_rows
    return task


def _reader(
    read: ReadRows, shape: tuple[int, int, int], dtype: np.dtype[Any], failures: Failures
) -> Any:
    """Return the callback that fills the engine's memory with rows of the image."""

    def fill(first: int, planes: Array) -> None:
        rows = read(first, first + planes.shape[1])
        if rows.shape != planes.shape or rows.dtype != dtype:
            raise InputError(
                f"The rows that were read are {rows.dtype} of shape {rows.shape}, but must be "
                f"{dtype} of shape {planes.shape}."
            )
        planes[:] = rows

    return _callback(fill, shape, dtype, failures)


def _callback(
    take: Callable[[int, Array], None],
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    failures: Failures,
) -> Any:
    """Return what the engine calls with rows of its memory, (C, rows, W)."""
    channels, _, width = shape

    def call(_: object, first: int, count: int, where: int) -> int:
        try:
            size = channels * count * width * dtype.itemsize
            memory = memoryview((ctypes.c_char * size).from_address(where)).cast("B")
            take(first, np.frombuffer(memory, dtype).reshape(channels, count, width))
        except BaseException as error:
            failures.add(error)
            return 1
        return 0

    return ROWS_CALLBACK(call)
