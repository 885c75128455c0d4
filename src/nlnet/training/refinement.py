"""Training of the refinement, with the stages as they are.

What the stages make of a crop is computed once. A step sees pieces of crops, turned and flipped; a
set of crops serves several epochs while the next set is drawn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from nlnet.torch import NLNet
from nlnet.torch.refinement import RefinementNet
from nlnet.training.data import Batch, CropSource, join
from nlnet.training.loss import negative_psnr, negative_psnr_near, squared_errors
from nlnet.training.optimizers import Muon, Optimizer
from nlnet.training.phase import Phase
from nlnet.training.settings import TrainingSettings
from nlnet.training.sources import BatchSource
from nlnet.training.team import Team

_LEAST_ERROR = 0.004
"""Lower bound of a crop's mean squared error, as a share of its noise variance: a crop of one color
has hardly any error left, and would outweigh all others."""


class RefinementPhase(Phase):
    """Only the refinement moves; the loss counts a piece as a part of its crop."""

    def __init__(
        self, recipe: TrainingSettings, network: NLNet, crops: CropSource, team: Team
    ) -> None:
        assert isinstance(network.refinement, RefinementNet)
        self._refinement = network.refinement
        part = ("refinement", recipe.refinement, network.refinement)
        super().__init__(*part, recipe, network, crops, team)

    def score(self, batch: Batch) -> Tensor:
        """Return the negative PSNR of whole images, after stages and refinement."""
        here = batch.to(self._team.device)
        estimate = self._network.run(here.estimate, here.noisy, here.groups, sigma=here.sigma)
        return negative_psnr(self._refine(here, estimate), here.clean)

    def _losses(self, batch: Batch) -> Tensor:
        self._refinement.in_bfloat16 = self._recipe.refinement.bfloat16
        try:
            refined = self._refine(batch, batch.estimate)
        finally:
            self._refinement.in_bfloat16 = False
        return negative_psnr_near(refined, batch.clean, batch.errors)

    def _refine(self, batch: Batch, estimate: Tensor) -> Tensor:
        planes = self._network.refine(estimate, batch.noisy, batch.sigmas)
        return self._network.from_working_planes(planes)

    def _make_optimizer(self) -> Optimizer:
        return Muon(*self._refinement.matrices_and_others(), self.settings)

    def _make_source(self) -> BatchSource:
        return Cuts(self._draw_estimate, self._recipe, self._team)

    def _draw_estimate(self, epoch: int, item: int) -> Batch:
        """Return a new crop, with noise of its own, and what the stages make of it."""
        often = self._recipe.refinement.often
        batch = self._crops.draw(epoch, item, [item], self._team.threads, often)
        here = batch.to(self._team.device)
        with torch.no_grad():
            estimate = self._network.run(here.noisy, here.noisy, here.groups, sigma=here.sigma)
            errors = squared_errors(self._network.from_working_planes(estimate), here.clean)
        errors = errors.clamp(min=_LEAST_ERROR * here.sigma**2)
        # The groups have served their purpose, and take more memory than all else.
        none = batch.groups[:0].clone()
        return dataclasses.replace(batch, estimate=estimate.cpu(), groups=none, errors=errors.cpu())


class Cuts(BatchSource):
    """Minibatches of pieces, in any orientation, of crops that serve several epochs.

    The stages take time, and their output is poor near the edges of an image. So they run once on
    crops that are larger than the pieces; the next set of crops is made while one is used.

    Parameters
    ----------
    draw : callable
        Given the number of a set, counted from 1, and that of a crop, returns it with its estimate.
    recipe : TrainingSettings
        How many crops a set has and how many epochs it serves; the pieces, and their seed.
    team : Team
        The processes that train together; each of them holds all crops.
    """

    def __init__(
        self, draw: Callable[[int, int], Batch], recipe: TrainingSettings, team: Team
    ) -> None:
        settings, data = recipe.refinement, recipe.data
        self.crops_per_step, self.side = settings.batch, settings.cut
        self.steps = max(1, data.crops * data.crop**2 // (settings.batch * settings.cut**2))
        self._draw, self._crops, self._team = draw, data.crops, team
        self._epochs = settings.reuse
        self._last_set = math.ceil(settings.epochs / settings.reuse)
        self._seed = (recipe.seed, recipe.last_phase)
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
        """Stop drawing ahead, so that nobody waits for a whole set."""
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
        top, left = (int(rng.integers(length - self.side + 1)) for length in (height, width))
        turns, flip = int(rng.integers(4)), bool(rng.integers(2))

        def cut(planes: Tensor) -> Tensor:
            piece = planes[:, :, top : top + self.side, left : left + self.side]
            piece = torch.rot90(piece, turns, dims=(2, 3))
            return piece.flip(3) if flip else piece

        planes = (cut(crop.estimate), cut(crop.noisy))
        return Batch(*planes, crop.groups, cut(crop.clean), crop.sigmas, crop.errors)
