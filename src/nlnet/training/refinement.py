"""Training of the refinement, with the stages as they are.

The stages take time, and their output is poor near the edges of an image. So they run once on crops
that are larger than what a step sees: pieces of them, turned and flipped. A set of crops serves
several epochs, while the next set is drawn.
"""

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from nlnet.training.data import Batch, join
from nlnet.training.loss import negative_psnr, negative_psnr_near, squared_errors
from nlnet.training.optimizers import Muon, Optimizer
from nlnet.training.phase import Phase, Setup

_LEAST_ERROR = 0.004
"""Lower bound of a crop's mean squared error, as a share of its noise variance: a crop of one color
has hardly any error left, and would outweigh all others."""


class RefinementPhase(Phase):
    """Only the refinement moves; the loss counts a piece as a part of its crop."""

    def __init__(self, setup: Setup) -> None:
        assert setup.network.refinement is not None
        self._refinement = setup.network.refinement
        super().__init__("refinement", setup.recipe.refinement, self._refinement, setup)

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

    def _prepare(self) -> None:
        settings, data = self._recipe.refinement, self._recipe.data
        self.crops_per_step, self.side = settings.batch, settings.cut
        self.steps = max(1, data.crops * data.crop**2 // (settings.batch * settings.cut**2))
        self._drawing = ThreadPoolExecutor(1)
        self._sets: dict[int, list[Future[Batch]]] = {}

    def close(self) -> None:
        """Stop drawing ahead, so that nobody waits for a whole set."""
        self._drawing.shutdown(cancel_futures=True)
        super().close()

    def _batches(self, epoch: int, step: int) -> Sequence[Batch]:
        """Cut a minibatch of pieces, in any orientation."""
        crops = self._set(1 + epoch // self._recipe.refinement.reuse)
        rng = np.random.default_rng((self._recipe.seed, self._recipe.last_phase, epoch, step))
        pieces = [self._piece(crops, rng) for _ in range(self.crops_per_step)]
        mine = self._team.shard(pieces)
        return [join(mine)] if mine else []

    def _set(self, number: int) -> Sequence[Batch]:
        """Return a set of crops, counted from 1, and have the next one drawn."""
        settings = self._recipe.refinement
        last = min(number + 1, math.ceil(settings.epochs / settings.reuse))
        for wanted in range(number, last + 1):
            if wanted not in self._sets:
                self._sets[wanted] = [
                    self._drawing.submit(self._draw_estimate, wanted, item)
                    for item in range(self._recipe.data.crops)
                ]
        self._sets = {n: crops for n, crops in self._sets.items() if n >= number}
        return [crop.result() for crop in self._sets[number]]

    def _draw_estimate(self, epoch: int, item: int) -> Batch:
        """Return a new crop, with noise of its own, and what the stages make of it."""
        often = self._recipe.refinement.often
        batch = self._crops.draw(epoch, item, [item], often)
        here = batch.to(self._team.device)
        with torch.no_grad():
            estimate = self._network.run(here.noisy, here.noisy, here.groups, sigma=here.sigma)
            errors = squared_errors(self._network.from_working_planes(estimate), here.clean)
        errors = errors.clamp(min=_LEAST_ERROR * here.sigma**2)
        # The groups have served their purpose, and take more memory than all else.
        none = batch.groups[:0].clone()
        return dataclasses.replace(batch, estimate=estimate.cpu(), groups=none, errors=errors.cpu())

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
