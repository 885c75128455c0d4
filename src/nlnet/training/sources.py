"""Where the batches of a phase come from: kept crops, in minibatches or all at once, or new ones.

A source has `steps` steps per epoch. For each step it gives this process its part of the crops, in
batches that fit into memory; that may be none, if a step has fewer crops than there are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from nlnet.training.data import Batch, CropSource, join
from nlnet.training.team import Team


class BatchSource(Protocol):
    """What a phase asks of its source."""

    steps: int
    crops_per_step: int

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the batches of each step of an epoch, the first `skip` steps left out."""


class FullBatch:
    """All crops in every step, in parts; the team has `count`, this process holds its own."""

    steps = 1

    def __init__(self, mine: Batch | None, count: int, part: int) -> None:
        self.crops_per_step = count
        self._parts = [] if mine is None else split(mine, part)

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield all crops once."""
        if not skip:
            yield self._parts


class Shuffled:
    """Minibatches of crops that are kept, shuffled for every epoch."""

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
            mine = self._team.shard(items)
            yield [self._crops.pick(mine)] if mine else []


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
        if skip == self.steps:
            return
        with ThreadPoolExecutor(1) as ahead:

            def draw(step: int) -> Sequence[Batch]:
                items = range(step * self.crops_per_step, (step + 1) * self.crops_per_step)
                mine = self._team.shard(items)
                # Epoch 0 of the crops is the fixed set.
                return [self._crops.draw(number + 1, step, mine, self._threads)] if mine else []

            coming = ahead.submit(draw, skip)
            for step in range(skip, self.steps):
                batches = coming.result()
                if step + 1 < self.steps:
                    coming = ahead.submit(draw, step + 1)
                yield batches


class Cuts:
    """Minibatches of pieces, in any orientation, of crops that serve several epochs.

    What the stages make of a crop takes time, and would be worth little at the edges of a piece; so
    it is made of larger crops, of a new set of them while the last one is used.

    Parameters
    ----------
    draw : callable
        Given the number of a set, counted from 1, and that of a crop, returns it with its estimate.
    crops, sets : int
        How many crops a set has, and how many sets there are.
    steps, epochs : int
        Steps of an epoch, and epochs that a set serves.
    size, side : int
        Pieces of a minibatch, and their side.
    seed : tuple of int
        What the pieces follow from.
    team : Team
        The processes that train together; each of them holds all crops.
    """

    def __init__(
        self,
        draw: Callable[[int, int], Batch],
        *,
        crops: int,
        sets: int,
        steps: int,
        epochs: int,
        size: int,
        side: int,
        seed: tuple[int, ...],
        team: Team,
    ) -> None:
        self.steps = steps
        self.crops_per_step = size
        self._draw = draw
        self._crops = crops
        self._last_set = sets
        self._epochs = epochs
        self._side = side
        self._seed = seed
        self._team = team
        self._ahead = ThreadPoolExecutor(1)
        self._sets: dict[int, list[Future[Batch]]] = {}

    def epoch(self, number: int, skip: int) -> Iterator[Sequence[Batch]]:
        """Yield the epoch's minibatches."""
        crops = self._set(1 + number // self._epochs)
        for step in range(skip, self.steps):
            rng = np.random.default_rng((*self._seed, number, step))
            pieces = [self._piece(crops, rng) for _ in range(self.crops_per_step)]
            mine = self._team.shard(pieces)
            yield [join(mine)] if mine else []

    def close(self) -> None:
        """Draw no more: whoever stops need not wait for a whole set."""
        self._ahead.shutdown(cancel_futures=True)

    def _set(self, number: int) -> Sequence[Batch]:
        """Return a set of crops, and have the next one drawn."""
        for wanted in range(number, min(number + 1, self._last_set) + 1):
            if wanted not in self._sets:
                self._sets[wanted] = [
                    self._ahead.submit(self._draw, wanted, item) for item in range(self._crops)
                ]
        self._sets = {n: crops for n, crops in self._sets.items() if n >= number}
        return [crop.result() for crop in self._sets[number]]

    def _piece(self, crops: Sequence[Batch], rng: np.random.Generator) -> Batch:
        crop = crops[int(rng.integers(len(crops)))]
        height, width = crop.clean.shape[-2:]
        top, left = (int(rng.integers(length - self._side + 1)) for length in (height, width))
        turns, flip = int(rng.integers(4)), bool(rng.integers(2))

        def cut(planes: Tensor) -> Tensor:
            piece = planes[:, :, top : top + self._side, left : left + self._side]
            piece = torch.rot90(piece, turns, dims=(2, 3))
            return piece.flip(3) if flip else piece

        planes = (cut(crop.estimate), cut(crop.noisy))
        return Batch(*planes, crop.groups, cut(crop.clean), crop.sigmas, crop.errors)


def split(crops: Batch, size: int) -> list[Batch]:
    """Cut a batch into parts of at most `size` images."""
    return [
        crops.pick(range(start, min(start + size, len(crops))))
        for start in range(0, len(crops), size)
    ]
