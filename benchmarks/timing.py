"""Warm times of several methods, taken in turns so that the machine's moods hit all alike."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.methods import Method
from benchmarks.pictures import Picture
from benchmarks.threads import limit_threads

ROUND_SECONDS = 0.5
MOST_CALLS = 5
"""A method's part of a round: calls until that time has passed, at least one, at most so many."""


@dataclasses.dataclass(frozen=True)
class Timing:
    """Times of one method's calls, in their order."""

    calls: list[float]
    cores: float
    """CPU time over wall time: how many cores were really busy."""

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.calls)

    @property
    def spread(self) -> float:
        """Slowest over fastest call: how far the figures can be trusted."""
        return max(self.calls) / min(self.calls)


def time_methods(
    methods: Sequence[Method],
    picture: Picture,
    threads: int,
    repeats: int,
    advance: Callable[[], object],
) -> list[Timing]:
    """Time all methods on one image in turns, `repeats` rounds of them; they must be warm.

    Fast methods are called several times a round: a call of a tenth of a second that follows
    another method's finds neither its data in the caches nor the memory it had.
    """
    walls: list[list[float]] = [[] for _ in methods]
    busy = [0.0 for _ in methods]
    for _ in range(repeats):
        for number, method in enumerate(methods):
            prepared = method.prepare(picture.noisy)
            with limit_threads(threads, pinned=method.pinned):
                begin = time.perf_counter()
                for _ in range(MOST_CALLS):
                    cpu, wall = time.process_time(), time.perf_counter()
                    method.run(prepared, threads)
                    walls[number].append(time.perf_counter() - wall)
                    busy[number] += time.process_time() - cpu
                    if time.perf_counter() - begin > ROUND_SECONDS:
                        break
            advance()
    return [Timing(calls, cpu / sum(calls)) for calls, cpu in zip(walls, busy, strict=True)]
