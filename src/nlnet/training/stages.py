"""Training of the stages: greedily, one after the other, and then all of them jointly."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nlnet.training.data import Batch
from nlnet.training.loss import negative_psnr
from nlnet.training.optimizers import LBFGS, Optimizer, adam
from nlnet.training.phase import Phase, Setup


class StagesPhase(Phase):
    """Training of consecutive stages, on the images that they make."""

    _stages: range
    """Numbers of the stages that are trained."""

    @property
    def ends_network(self) -> bool:  # type: ignore[override]
        """Whether the network is complete after this phase."""
        config = self._recipe.network
        return config.refinement is None and self._stages.stop == config.stages

    def score(self, batch: Batch) -> Tensor:
        """Return the negative PSNR of whole images after the last of the stages."""
        return self._negative_psnr(batch.to(self._team.device), 0)

    def _losses(self, batch: Batch) -> Tensor:
        return self._negative_psnr(batch, self._stages.start)

    def _negative_psnr(self, batch: Batch, first: int) -> Tensor:
        planes = self._network.run(
            batch.estimate, batch.noisy, batch.groups, first, self._stages.stop, sigma=batch.sigma
        )
        return negative_psnr(self._network.from_working_planes(planes), batch.clean)

    def _make_optimizer(self) -> Optimizer:
        if self.settings.optimizer == "lbfgs":
            return LBFGS(self._moving)
        # Filters and mixtures; group weights and step sizes.
        arrays = [tensor for tensor in self._moving if tensor.ndim > 2]
        return adam(arrays, [t for t in self._moving if t.ndim <= 2], self.settings)

    def _prepare(self) -> None:
        """Draw the crops that are kept: all of them, or for L-BFGS those of this process."""
        data, full = self._recipe.data, self.settings.optimizer == "lbfgs"
        size = min(self.settings.batch, data.crops)
        self.steps, self.crops_per_step = (1, data.crops) if full else (data.crops // size, size)
        self.side, self._size = data.crop, size
        # Minibatches are shuffled over all crops, so there each process holds all of them.
        items = self._team.shard(range(data.crops)) if full else range(data.crops)
        self._kept = None
        if items:
            self._kept = self._run_earlier_stages(self._crops.keep(items))

    def _batches(self, epoch: int, step: int) -> Sequence[Batch]:
        """Return all crops for L-BFGS, or else a minibatch of the epoch's order."""
        if self._kept is None:
            return ()
        if self.settings.optimizer == "lbfgs":
            return self._kept.split(self._size)
        seed = (self._recipe.seed, self._stages.stop - 1, epoch)
        order = np.random.default_rng(seed).permutation(len(self._kept)).tolist()
        mine = self._team.shard(order[step * self._size : (step + 1) * self._size])
        return [self._kept.pick(mine)] if mine else ()

    def _run_earlier_stages(self, crops: Batch) -> Batch:
        """Compute, once, what enters the first stage that is trained."""
        first = self._stages.start
        if not first:
            return crops
        estimates = []
        with torch.no_grad():
            for part in crops.split(self._size):
                here = part.to(self._team.device)
                planes = (here.noisy, here.noisy, here.groups)
                run = self._network.run(*planes, 0, first, project_last=False)
                estimates.append(run.cpu())
        return dataclasses.replace(crops, estimate=torch.cat(estimates))


class GreedyPhase(StagesPhase):
    """Only the newest stage moves; what enters it is computed once."""

    def __init__(self, stage: int, setup: Setup) -> None:
        self._stages = range(stage, stage + 1)
        moving = setup.network.stages[stage]
        super().__init__(f"greedy {stage + 1}", setup.recipe.greedy, moving, setup)


class JointPhase(StagesPhase):
    """All stages move."""

    def __init__(self, setup: Setup) -> None:
        self._stages = range(setup.recipe.network.stages)
        super().__init__("joint", setup.recipe.joint, setup.network.stages, setup)

    def _prepare(self) -> None:
        data = self._recipe.data
        self._fresh = data.fresh and self.settings.optimizer != "lbfgs"
        if not self._fresh:
            super()._prepare()
            return
        self.side, self.crops_per_step = data.crop, min(self.settings.batch, data.crops)
        self.steps = data.crops // self.crops_per_step

    def _batches(self, epoch: int, step: int) -> Sequence[Batch]:
        """Draw new crops, if the recipe wants them, and match their patches."""
        if not self._fresh:
            return super()._batches(epoch, step)
        first = step * self.crops_per_step
        mine = self._team.shard(range(first, first + self.crops_per_step))
        # Epoch 0 of the crops is the fixed set.
        return [self._crops.draw(epoch + 1, step, mine)] if mine else ()
