"""What the engine does: denoise an image, find groups, run stages both ways, look at tiles.

Every function takes arrays exactly as the engine wants them, contiguous and of the network's dtype;
other arrays are refused, with an error that says what is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, Box, FloatArray, Groups, ReadRows, WriteRows
from nlnet.engine import library
from nlnet.engine.jobs import Job, memory_needed, threads_for
from nlnet.engine.memory import address, array_at, checked_address
from nlnet.engine.network import EngineEye, EngineNetwork
from nlnet.engine.structures import ROWS_CALLBACK
from nlnet.errors import InputError
from nlnet.progress import Progress

Array32 = npt.NDArray[np.float32]

NO_BOX: Box = (1.0, 0.0)
_LARGEST_TILE = 1024  # pixels of a side


def denoise(
    network: EngineNetwork,
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

    The parameters are those of :func:`nlnet.network.recursion.denoise_rows`, and the height of
    tiles: fewer rows take less memory; 0 stands for :func:`default_tile_rows`.
    """
    failures: list[BaseException] = []
    turn = threading.Lock()

    def fill(first: int, planes: Array) -> None:
        rows = read(first, first + planes.shape[1])
        if rows.shape != planes.shape or rows.dtype != planes.dtype:
            raise InputError(
                f"The rows that were read are {rows.dtype} of shape {rows.shape}, but must be "
                f"{planes.dtype} of shape {planes.shape}."
            )
        planes[:] = rows

    def callback(take: Callable[[int, Array], None]) -> Any:
        return rows_callback(take, shape, network.dtype, turn, failures)

    task = _denoise_task(shape, box, threads, tile_rows)
    task.noisy.rows = reader = callback(fill)
    task.denoised.rows = writer = callback(write)
    job = Job(network, task, (reader, writer), failures=failures)
    job.run(task.threads, progress)


def default_tile_rows() -> int:
    """Return the height of the tallest tiles that stay in the cache."""
    return int(library.load().nlnet_tile_rows())


def denoising_memory(
    network: EngineNetwork, shape: tuple[int, int, int], threads: int | None, tile_rows: int
) -> int:
    """Return the bytes that :func:`denoise` takes, besides what is read and written."""
    task = _denoise_task(shape, None, threads, tile_rows)
    return memory_needed(network, task)


def match(network: EngineNetwork, images: FloatArray, threads: int | None) -> Groups:
    """Return the groups, (B, H, W, K, 2), of a batch of (B, H, W) images."""
    batch, height, width = images.shape
    groups = np.empty((*images.shape, network.sizes.group, 2), np.int8)
    task = library.MatchTask(
        batch,
        height,
        width,
        checked_address("The batch", images, images.shape, network.dtype),
        address(groups),
        threads_for(images.size, threads),
    )
    Job(network, task, (images, groups)).run(task.threads)
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
        self.task = library.ForwardTask(
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
        Job(network, self.task, (self,)).run(self.threads)


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
    task = library.BackwardTask(
        run.task,
        checked_address("The cotangent", cotangent, shape, run.network.dtype),
        *map(address, (estimate, noisy, *of_stages)),
    )
    gradients = Gradients._make((*of_stages, estimate, noisy))
    Job(run.network, task, (run, cotangent, gradients)).run(run.threads)
    return gradients


def look(eye: EngineEye, tiles: Array32, threads: int | None = None) -> Array32:
    """Return the maps, (N, outputs, H / unit, W / unit), that an eye gives of tiles.

    Parameters
    ----------
    eye : EngineEye
        What looks.
    tiles : (N, C, H, W) float32 array
        Gray (C = 1) or RGB (C = 3) on the 0-255 scale; sides are multiples of the eye's unit, up
        to 1024.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.

    Raises
    ------
    InputError
        If the tiles are not so.
    """
    if tiles.ndim != 4 or tiles.shape[1] not in (1, 3):
        raise InputError(f"The tiles have shape {tiles.shape}, but must be (N, 1 or 3, H, W).")
    count, channels, height, width = tiles.shape
    if any(side % eye.unit or not 0 < side <= _LARGEST_TILE for side in (height, width)):
        raise InputError(
            f"The tiles are {width}x{height} pixels, but their sides must be multiples of "
            f"{eye.unit} up to {_LARGEST_TILE}."
        )
    maps = np.empty((count, eye.outputs, height // eye.unit, width // eye.unit), np.float32)
    if count == 0:
        return maps
    task = library.LookTask(
        count,
        height,
        width,
        channels,
        threads_for(count * height * width, threads),
        checked_address("The array of tiles", tiles, tiles.shape, np.float32),
        address(maps),
    )
    Job(eye, task, (tiles, maps)).run(min(task.threads, count))
    return maps


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


def _denoise_task(
    shape: tuple[int, int, int], box: Box | None, threads: int | None, tile_rows: int
) -> library.DenoiseTask:
    _, height, width = shape
    task = library.DenoiseTask(height, width)
    task.low, task.high = box or NO_BOX
    task.threads = threads_for(height * width, threads)
    task.tile_rows = tile_rows
    return task


def rows_callback(
    take: Callable[[int, Array], None],
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    turn: threading.Lock,
    failures: list[BaseException],
) -> Any:
    """Return what the engine calls with rows of its memory, (C, rows, W)."""
    channels, _, width = shape

    def call(_: object, first: int, count: int, where: int) -> int:
        try:
            with turn:
                take(first, array_at(where, (channels, count, width), dtype))
        except BaseException as error:
            failures.append(error)
            return 1
        return 0

    return ROWS_CALLBACK(call)
