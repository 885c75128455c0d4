"""The network: match once on the noisy input, then run the stages. Gray and color are one path."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from nlnet.arrays import FloatArray, Groups
from nlnet.network import color
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import check_size
from nlnet.network.parallel import Workers
from nlnet.network.parameters import StageParameters
from nlnet.network.projection import Box, project, project_backward
from nlnet.network.stage import Stage, StageGradient
from nlnet.network.sweep import ReadRows, Sweep, WriteRows
from nlnet.network.sweep_memory import choose_tile_rows

BOX: Box = (0.0, 255.0)
"""The intensity box of an 8-bit image, the scale the network works on."""


def denoise_planes(
    noisy: FloatArray,
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    *,
    box: Box | None = BOX,
    threads: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> FloatArray:
    """Denoise one image, (C, H, W) on the 0-255 scale, float32 or float64.

    Returns the estimate, of the same shape and dtype; the parameters are those of
    :func:`denoise_rows`.
    """
    denoised = np.empty_like(noisy)

    def write(first: int, rows: FloatArray) -> None:
        denoised[:, first : first + rows.shape[1]] = rows

    channels, height, width = noisy.shape
    denoise_rows(
        lambda first, last: noisy[:, first:last],
        write,
        (channels, height, width),
        config,
        [stage.astype(noisy.dtype) for stage in stages],
        box=box,
        threads=threads,
        max_memory=max_memory,
        progress=progress,
    )
    return denoised


def denoise_rows(
    read: ReadRows,
    write: WriteRows,
    shape: tuple[int, int, int],
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    *,
    box: Box | None = BOX,
    threads: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Denoise an image of any size that is read and written some rows at a time.

    Parameters
    ----------
    read : callable
        ``read(first, last)`` returns rows of the noisy image, gray or RGB planes (C, rows, W) on
        the 0-255 scale, of the parameters' dtype. Every row is asked for once, in order.
    write : callable
        ``write(first, rows)`` takes rows of the estimate, in order. It and `read` may be called in
        other threads than this one, but only one at a time.
    shape : (C, H, W)
        Shape of the whole image.
    config : NetworkConfig
        The network's shape.
    stages : sequence of StageParameters
        Its learned values.
    box : (low, high) or None
        Intensities that the estimate is kept in; None for no constraint.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.
    max_memory : int, optional
        Bytes that may be used besides what is read and written. Less memory takes more time.
    progress : callable, optional
        Called with the share of the work done; an exception it raises stops the work.
    """

    def write_planes(first: int, planes: FloatArray) -> None:
        rows = from_working_planes(planes)
        if box is not None:
            np.clip(rows, *box, out=rows)  # the way back from opponent planes rounds
        write(first, rows)

    check_size(*shape[1:], config)
    with Workers(threads) as workers:
        itemsize = stages[0].filters.dtype.itemsize
        sweep = Sweep(
            lambda first, last: to_working_planes(read(first, last)),
            write_planes,
            shape,
            config,
            stages,
            box=box,
            tile_rows=choose_tile_rows(shape, config, workers.threads, itemsize, max_memory),
        )
        sweep.run(workers, progress)


def to_working_planes(images: FloatArray) -> FloatArray:
    """From gray or RGB images, (..., C, H, W), to the planes the stages work on."""
    images = np.ascontiguousarray(images)
    return images if images.shape[-3] == 1 else color.transform(images, color.OPPONENT)


def from_working_planes(planes: FloatArray) -> FloatArray:
    """From the planes the stages work on back to gray or RGB images."""
    return planes if planes.shape[-3] == 1 else color.transform(planes, color.RGB)


@dataclasses.dataclass(frozen=True)
class _Step:
    """What the backward pass needs to know of a stage's forward pass."""

    estimate: FloatArray
    update: FloatArray


class StageRun:
    """A run through consecutive stages, that of a whole network or, in greedy training, of one.

    Parameters
    ----------
    stages : sequence of Stage
        The stages, in order.
    box : (low, high) or None
        Intensities that the estimate is kept in.
    project_every_stage : bool
        Project after every stage, or only after the last of this run.
    """

    def __init__(
        self, stages: Sequence[Stage], box: Box | None, *, project_every_stage: bool
    ) -> None:
        self._stages = stages
        self._boxes = [box if project_every_stage else None] * (len(stages) - 1) + [box]

    def forward(
        self,
        estimate: FloatArray,
        noisy: FloatArray,
        groups: Groups,
        workers: Workers,
        done: Callable[[float], None] | None = None,
        tape: list[_Step] | None = None,
    ) -> FloatArray:
        """Return the estimate after the last stage; all arrays are working planes (B, C, H, W).

        Where a `tape` is given, what :meth:`backward` needs is recorded on it.
        """
        for number, (stage, box) in enumerate(zip(self._stages, self._boxes, strict=True)):
            part = None if done is None else _part(done, number, len(self._stages))
            update = stage.forward(estimate, noisy, groups, workers, part)
            if tape is not None:
                tape.append(_Step(estimate, update))
            estimate = update if box is None else project(update, box)  # Eq. (22), Eq. (48)
        return estimate

    def backward(
        self,
        cotangent: FloatArray,
        noisy: FloatArray,
        groups: Groups,
        workers: Workers,
        tape: Sequence[_Step],
    ) -> tuple[list[StageGradient], FloatArray, FloatArray]:
        """Return every stage's gradients, and those of the run's input and of the noisy image."""
        gradients: list[StageGradient] = []
        noisy_gradient = np.zeros_like(noisy)
        # Eq. (47): the product of the stages' Jacobians, the last one first.
        for stage, box, step in zip(
            reversed(self._stages), reversed(self._boxes), reversed(tape), strict=True
        ):
            if box is not None:
                cotangent = project_backward(cotangent, step.update, box)  # Eq. (27)
            gradient = stage.backward(cotangent, step.estimate, noisy, groups, workers)
            gradients.append(gradient)
            noisy_gradient += gradient.noisy
            cotangent = gradient.estimate
        return gradients[::-1], cotangent, noisy_gradient


def _part(done: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    """Progress of one stage as a share of all."""
    return lambda share: done((number + share) / count)
