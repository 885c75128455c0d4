"""Where nlnet's time goes: its kernels, timed one by one while they run in one thread."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

import nlnet.matching
from benchmarks.pictures import Picture
from benchmarks.threads import limit_threads
from nlnet.denoising import denoise
from nlnet.kernels import folding, grouping, rbf
from nlnet.model import Model

_KERNELS: dict[str, tuple[Any, str]] = {
    "matching": (nlnet.matching, "match_tile"),
    "windows": (grouping, "copy_window"),
    "corners": (grouping, "find_corners"),
    "group sums": (grouping, "sum_groups"),
    "psi": (rbf, "tabulated"),
    "spread": (grouping, "spread_groups"),
    "fold": (folding, "fold_rows"),
}
"""Which function, called from Python once a tile or more rarely, does the work of a phase."""

PHASES = (
    "matching",
    "windows",
    "corners",
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
    runs = [_time_once(model, picture) for _ in range(repeats)]
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
            timed = _timed(getattr(module, name), spent, lambda *_, phase=phase: phase)
            stack.enter_context(mock.patch.object(module, name, timed))
        timed = _timed(np.matmul, spent, _product_phase)
        stack.enter_context(mock.patch.object(np, "matmul", timed))
        yield


def _product_phase(left: Any, right: Any) -> str:
    """Tell a product with F^T, (P, P-1), the transform, from one with F, its adjoint."""
    return "transform" if right.shape[0] > right.shape[1] else "adjoint transform"


def _timed(
    function: Callable[..., Any], spent: dict[str, float], phase_of: Callable[..., str]
) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments, **options)
        spent[phase_of(*arguments)] += time.perf_counter() - start
        return result

    return call
