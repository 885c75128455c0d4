"""Warm times of several methods, taken in turns so that the machine's moods hit all alike."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.methods import Method
from benchmarks.pictures import Picture
from benchmarks.threads import limit_threads


@dataclasses.dataclass(frozen=True)
class Timing:
    """Times of one method, in the order of the rounds."""

    rounds: list[float]
    cores: float
    """CPU time over wall time: how many cores were really busy."""

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Slowest over fastest round: how far the figures can be trusted."""
        return max(self.rounds) / min(self.rounds)


def time_methods(
    methods: Sequence[Method],
    picture: Picture,
    threads: int,
    repeats: int,
    advance: Callable[[], object],
) -> list[Timing]:
    """Time all methods on one image, `repeats` rounds of one call each; they must be warm."""
    walls: list[list[float]] = [[] for _ in methods]
    busy = [0.0 for _ in methods]
    for _ in range(repeats):
        for number, method in enumerate(methods):
            prepared = method.prepare(picture.noisy)
            with limit_threads(threads, pinned=method.pinned):
                cpu, wall = time.process_time(), time.perf_counter()
                method.run(prepared, threads)
                walls[number].append(time.perf_counter() - wall)
                busy[number] += time.process_time() - cpu
            advance()
    return [Timing(rounds, cpu / sum(rounds)) for rounds, cpu in zip(walls, busy, strict=True)]
