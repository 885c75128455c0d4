"""Where the batches of a phase come from: crops kept, in minibatches or all at once, or new ones.

A source has `steps` steps an epoch. For each it gives this process's part of the step's crops, as
batches that fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from nlnet.parallel import Workers
from nlnet.training.data import Batch, CropSource
from nlnet.training.team import Team

FIXED_EPOCH = 0
"""The epoch whose crops are those that are kept; new ones are counted from 1."""


class Source(Protocol):
    """What a phase asks of its source."""

    steps: int
    crops_per_step: int

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the batches of each step of an epoch, the first `skip` steps left out."""


class FullBatch:
    """All crops in every step, in parts."""

    steps = 1

    def __init__(self, crops: Batch, part: int, team: Team) -> None:
        self.crops_per_step = len(crops)
        mine = team.share(range(len(crops)))
        self._parts = [crops.pick(mine[i : i + part]) for i in range(0, len(mine), part)]

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield all crops once."""
        if not skip:
            yield self._parts


class Shuffled:
    """Minibatches of crops that are kept, in an order drawn anew for every epoch."""

    def __init__(self, crops: Batch, size: int, seed: tuple[int, ...], team: Team) -> None:
        self.steps = len(crops) // size
        self.crops_per_step = size
        self._crops = crops
        self._seed = seed
        self._team = team

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the epoch's minibatches."""
        order = np.random.default_rng((*self._seed, number)).permutation(len(self._crops)).tolist()
        for step in range(skip, self.steps):
            items = order[step * self.crops_per_step : (step + 1) * self.crops_per_step]
            yield [self._crops.pick(self._team.share(items))]


class Fresh:
    """Minibatches of new crops; the next is drawn, and matched, while the last one is used."""

    def __init__(
        self, crops: CropSource, count: int, size: int, team: Team, threads: int | None
    ) -> None:
        self.steps = count // size
        self.crops_per_step = size
        self._crops = crops
        self._team = team
        self._threads = threads

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the epoch's minibatches."""
        with Workers(self._threads) as workers, ThreadPoolExecutor(1) as ahead:

            def draw(step: int) -> Batch:
                items = range(step * self.crops_per_step, (step + 1) * self.crops_per_step)
                return self._crops.draw(number + 1, self._team.share(items), workers)

            coming = ahead.submit(draw, skip) if skip < self.steps else None
            for step in range(skip, self.steps):
                assert coming is not None
                batch = coming.result()
                coming = ahead.submit(draw, step + 1) if step + 1 < self.steps else None
                yield [batch]
