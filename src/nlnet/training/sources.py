"""Where the batches of a phase come from: kept crops, in minibatches or all at once, or new ones.

A source has `steps` steps per epoch. For each step it gives this process its part of the crops, in
batches that fit into memory; that may be none, if a step has fewer crops than there are processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nlnet.training.data import Batch, CropSource
from nlnet.training.settings import DataSettings
from nlnet.training.team import Team


class BatchSource:
    """What a phase asks of its source; this one has nothing."""

    steps = 0
    crops_per_step = 0
    side = 0
    """Of what a step sees, in pixels."""

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the batches of each step of an epoch, the first `skip` steps left out."""
        return iter(())

    def close(self) -> None:
        """Stop drawing ahead, so that nobody waits for it."""


class FullBatch(BatchSource):
    """All crops in every step, in parts; the team has `count`, this process holds its own."""

    steps = 1

    def __init__(self, parts: Sequence[Batch], count: int, side: int) -> None:
        self.crops_per_step, self.side = count, side
        self._parts = parts

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield all crops once."""
        return iter([] if skip else [self._parts])


class Shuffled(BatchSource):
    """Minibatches of crops that are kept, shuffled for every epoch."""

    def __init__(self, crops: Batch, size: int, seed: tuple[int, ...], team: Team) -> None:
        self.steps, self.crops_per_step = len(crops) // size, size
        self.side = crops.clean.shape[-1]
        self._crops, self._seed, self._team = crops, seed, team

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the epoch's minibatches."""
        order = np.random.default_rng((*self._seed, number)).permutation(len(self._crops)).tolist()
        for step in range(skip, self.steps):
            items = order[step * self.crops_per_step : (step + 1) * self.crops_per_step]
            mine = self._team.shard(items)
            yield [self._crops.pick(mine)] if mine else []


class Fresh(BatchSource):
    """Minibatches of new crops; the next is drawn, and matched, while the last one is used."""

    def __init__(self, crops: CropSource, data: DataSettings, size: int, team: Team) -> None:
        self.steps, self.crops_per_step, self.side = data.crops // size, size, data.crop
        self._crops, self._team = crops, team

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the epoch's minibatches."""

        def draw(step: int) -> Sequence[Batch]:
            items = range(step * self.crops_per_step, (step + 1) * self.crops_per_step)
            mine = self._team.shard(items)
            # Epoch 0 of the crops is the fixed set.
            threads = self._team.threads
            return [self._crops.draw(number + 1, step, mine, threads)] if mine else []

        with ThreadPoolExecutor(1) as ahead:
            coming = [ahead.submit(draw, step) for step in range(skip, self.steps)[:1]]
            for step in range(skip, self.steps):
                batches = coming.pop().result()
                if step + 1 < self.steps:
                    coming.append(ahead.submit(draw, step + 1))
                yield batches


def split(crops: Batch, size: int) -> list[Batch]:
    """Cut a batch into parts of at most `size` images."""
    return [
        crops.pick(range(start, min(start + size, len(crops))))
        for start in range(0, len(crops), size)
    ]
