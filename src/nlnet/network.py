"""The network: match once on the noisy input, then run the stages. Gray and color are one path."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from nlnet import color
from nlnet.arrays import FloatArray, Groups
from nlnet.config import NetworkConfig
from nlnet.matching import find_groups
from nlnet.parallel import Workers
from nlnet.parameters import StageParameters
from nlnet.projection import Box, project, project_backward
from nlnet.stage import Stage, StageGradient

BOX: Box = (0.0, 255.0)
"""The intensity box of an 8-bit image, the scale the network works on."""

MATCHING_SHARE = 0.5
"""Part of the whole time that matching takes, for progress."""


def denoise_planes(
    noisy: FloatArray,
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    *,
    box: Box | None = BOX,
    groups: Groups | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> FloatArray:
    """Denoise one image.

    Parameters
    ----------
    noisy : (C, H, W) array
        Gray or RGB planes on the 0-255 scale, float32 or float64.
    config : NetworkConfig
        The network's shape.
    stages : sequence of StageParameters
        Its learned values.
    box : (low, high) or None
        Intensities that the estimate is kept in; None for no constraint.
    groups : (H, W, K, 2) array, optional
        Groups found before; by default they are found on `noisy`.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.
    progress : callable, optional
        Called with the share of the work done; an exception it raises stops the work.

    Returns
    -------
    (C, H, W) array
        The estimate, of the same dtype.
    """
    report = progress or (lambda share: None)
    planes = to_working_planes(noisy[np.newaxis])
    with Workers(threads) as workers:
        report(0.0)
        if groups is None:
            groups = find_groups(
                planes[0, 0], config, workers, lambda share: report(MATCHING_SHARE * share)
            )
        run = StageRun(
            [Stage(stage.astype(noisy.dtype), config) for stage in stages],
            box,
            project_every_stage=config.project_every_stage,
        )
        rest = 1 - MATCHING_SHARE
        estimate = run.forward(
            planes,
            planes,
            groups[np.newaxis],
            workers,
            lambda share: report(MATCHING_SHARE + rest * share),
        )
    denoised: FloatArray = from_working_planes(estimate)[0]
    return denoised


def to_working_planes(images: FloatArray) -> FloatArray:
    """From gray or RGB images, (B, C, H, W), to the planes the stages work on."""
    if images.shape[1] == 1:
        return np.ascontiguousarray(images)
    return color.transform(np.ascontiguousarray(images), color.OPPONENT)


def from_working_planes(planes: FloatArray) -> FloatArray:
    """From the planes the stages work on back to gray or RGB images."""
    return planes if planes.shape[1] == 1 else color.transform(planes, color.RGB)


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
        self._boxes = [
            box if project_every_stage or stage is stages[-1] else None for stage in stages
        ]

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
            estimate = update if box is None else project(update, box)
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
        for stage, box, step in zip(
            reversed(self._stages), reversed(self._boxes), reversed(tape), strict=True
        ):
            if box is not None:
                cotangent = project_backward(cotangent, step.update, box)
            gradient = stage.backward(cotangent, step.estimate, noisy, groups, workers)
            gradients.append(gradient)
            noisy_gradient += gradient.noisy
            cotangent = gradient.estimate
        return gradients[::-1], cotangent, noisy_gradient


def _part(done: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    """Progress of one stage as a share of all."""
    return lambda share: done((number + share) / count)
