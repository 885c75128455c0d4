"""How fast the machine multiplies matrices, and how much arithmetic the network is."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.threads import limit_threads
from nlnet.network.config import NetworkConfig

SIDE = 2048
ROUNDS = 5


def sgemm_rate(threads: int) -> float:
    """Return the operations a second of a large float32 product, the best of several."""
    left, right = np.random.default_rng(0).standard_normal((2, SIDE, SIDE), np.float32)
    out = np.empty_like(left)
    best = float("inf")
    with limit_threads(threads):
        for _ in range(ROUNDS):
            start = time.perf_counter()
            np.matmul(left, right, out=out)
            best = min(best, time.perf_counter() - start)
    return 2 * SIDE**3 / best


def operations_per_pixel(config: NetworkConfig) -> int:
    """Count the additions and multiplications that the method takes, each quantity only once.

    Matching: for half of the window's offsets, a difference and its square, p - 1 additions for a
    row sum and p - 1 for the patch. A stage, for each channel: the sum of a group and its adjoint,
    the transform and its adjoint, and for psi a place in the table and a cubic.
    """
    p, members, filters = config.patch_size, config.group_size, config.filter_count
    matching = (config.window**2 - 1) // 2 * (2 + 2 * (p - 1))
    stage = 4 * members * p**2 + 4 * filters * p**2 + (3 + 6) * filters
    return matching + config.stages * config.channels * stage
