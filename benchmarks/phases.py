"""Where nlnet's time goes: its steps, timed one by one while they run in one thread.

A stage takes every row of a tile through all steps in one kernel. Here each step is a call of its
own, for a whole tile, so that it can be timed; what that costs is in the ``total``.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

import nlnet.network.matching
import nlnet.network.tiles
from benchmarks.pictures import Picture
from benchmarks.threads import limit_threads
from nlnet.arrays import Array
from nlnet.denoising.image import denoise
from nlnet.model.model import Model
from nlnet.network.kernels import folding, grouping, rbf
from nlnet.network.kernels.compile import kernel
from nlnet.network.kernels.simd.products import transform, transform_back

_KERNELS: dict[str, tuple[Any, str]] = {
    "matching": (nlnet.network.matching, "match_tile"),
    "fold": (folding, "fold_rows"),
}
"""Which function, called from Python once a tile or more rarely, does the work of a phase."""

PHASES = (
    "matching",
    "windows",
    "group sums",
    "transform",
    "psi",
    "adjoint transform",
    "spread",
    "fold",
    "rest",
)
"""All phases, in the order of the work; the rest is what no kernel does: blend, project, Python."""


def time_phases(model: Model, picture: Picture, repeats: int) -> dict[str, float]:
    """Return the median seconds of each phase of a call in one thread, and their ``total``."""
    runs = [_time_once(model, picture) for _ in range(repeats + 1)][1:]  # the first one compiles
    return {phase: statistics.median(run[phase] for run in runs) for phase in (*PHASES, "total")}


def _time_once(model: Model, picture: Picture) -> dict[str, float]:
    spent = dict.fromkeys(PHASES, 0.0)
    with _stopwatches(spent), limit_threads(1):
        start = time.perf_counter()
        denoise(picture.noisy, model.sigma, model=model, data_range=255, threads=1)
        total = time.perf_counter() - start
    spent["rest"] = total - sum(spent.values())
    return {**spent, "total": total}


@contextlib.contextmanager
def _stopwatches(spent: dict[str, float]) -> Iterator[None]:
    """Replace the kernels by ones that add their time to `spent`."""
    with contextlib.ExitStack() as stack:
        for phase, (module, name) in _KERNELS.items():
            timed = _timed(getattr(module, name), spent, phase)
            stack.enter_context(mock.patch.object(module, name, timed))
        steps = _StepByStep(spent)
        stack.enter_context(mock.patch.object(nlnet.network.tiles, "spread_features", steps))
        yield


def _timed(function: Callable[..., Any], spent: dict[str, float], phase: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments, **options)
        spent[phase] += time.perf_counter() - start
        return result

    return call


class _StepByStep:
    """What `kernels.tiles.spread_features` does, one timed step after the other."""

    def __init__(self, spent: dict[str, float]) -> None:
        steps: dict[str, Callable[..., Any]] = {
            "windows": grouping.copy_window,
            "group sums": grouping.sum_groups,
            "transform": _transform,
            "psi": rbf.evaluate,
            "adjoint transform": _transform_back,
            "spread": _spread,
        }
        self._steps = {name: _timed(step, spent, name) for name, step in steps.items()}

    def __call__(
        self,
        rows: Array,
        first: int,
        height: int,
        top: int,
        columns: tuple[int, int],
        side: int,
        reach: int,
        groups: Array,
        weights: Array,
        filters: Array,
        transposed: Array,
        mixtures: rbf.Mixtures,
        window: Array,
        row_patches: Array,
        row_features: Array,
        windows: Array,
        parts: Array,
        taps: tuple[int, ...],
    ) -> None:
        margin, size = reach + len(taps) // 2, len(taps) ** 2
        view = window[: len(groups) + 2 * margin, : side + 2 * margin]
        for column in range(*columns):
            left = column * side
            width = min(side, groups.shape[1] - left)
            count = len(groups) * width
            patches = np.empty(count * size + len(row_patches), window.dtype)
            flat_features = np.empty(count * (size - 1) + len(row_features), window.dtype)
            features = flat_features[: count * (size - 1)].reshape(count, size - 1)
            place = (reach, groups, left, (0, len(groups)), width, weights)
            self._steps["windows"](rows, first, height, top - margin, left - margin, view)
            self._steps["group sums"](window, *place, patches, taps)
            self._steps["transform"](patches, transposed, flat_features, count, taps)
            self._steps["psi"](features, mixtures)
            self._steps["adjoint transform"](flat_features, filters, patches, count, taps)
            self._steps["spread"](patches, *place, windows, parts[column], taps)


@kernel
def _transform(
    patches: Array, transposed: Array, features: Array, count: int, taps: tuple[int, ...]
) -> None:
    transform(patches, transposed, features, count, taps)


@kernel
def _transform_back(
    features: Array, filters: Array, patches: Array, count: int, taps: tuple[int, ...]
) -> None:
    transform_back(features, filters, patches, count, taps)


@kernel
def _spread(
    patches: Array,
    reach: int,
    groups: Array,
    left: int,
    rows: tuple[int, int],
    columns: int,
    weights: Array,
    windows: Array,
    part: Array,
    taps: tuple[int, ...],
) -> None:
    windows[:] = 0
    grouping.spread_groups(
        patches, reach, groups, left, rows, columns, weights, windows, part.shape[1], taps
    )
    grouping.add_windows(windows, part)
