"""Phases of training: what all of them have in common, and those that train the stages.

The network is trained greedily first, one stage after the other, then all stages jointly; a
refinement follows (`nlnet.training.refinement`).
"""

import abc
import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nlnet.errors import ModelError
from nlnet.torch import NLNet
from nlnet.training.data import Batch, CropSource
from nlnet.training.loss import negative_psnr
from nlnet.training.optimizers import LBFGS, Optimizer, adam
from nlnet.training.settings import PhaseSettings, TrainingSettings
from nlnet.training.team import Team


class Setup(NamedTuple):
    """What all phases of a run work with."""

    recipe: TrainingSettings
    network: NLNet
    crops: CropSource
    team: Team


class Phase(abc.ABC):
    """What all phases have in common: steps, a running average, and a state to resume from.

    Parameters
    ----------
    title : str
        Its name in logs.
    settings : PhaseSettings
        Its own part of the recipe.
    moving : Module
        The part of the network that is trained; all else is frozen.
    setup : Setup
        The whole recipe, the network, its crops, and the processes that train together.
    """

    ends_network = True
    """Whether the network is complete after this phase."""

    steps = 0
    """Of an epoch."""

    crops_per_step = side = 0
    """How many crops a step of the whole team sees, and their side in pixels."""

    def __init__(
        self, title: str, settings: PhaseSettings, moving: nn.Module, setup: Setup
    ) -> None:
        self.title, self.settings = title, settings
        self._recipe, self._network, self._crops, self._team = setup
        self._network.requires_grad_(False)
        moving.requires_grad_(True)
        self._moving = list(moving.parameters())
        self.optimizer = self._make_optimizer()
        self._average: dict[str, Tensor] | None = None
        self._place = "at the start"
        self._ahead = ThreadPoolExecutor(1)
        if settings.epochs:
            self._prepare()

    @abc.abstractmethod
    def score(self, batch: Batch) -> Tensor:
        """Return the negative PSNR of whole images, through all that is trained so far."""

    @abc.abstractmethod
    def _losses(self, batch: Batch) -> Tensor:
        """Return the loss of every image of a training batch on the team's device."""

    @abc.abstractmethod
    def _make_optimizer(self) -> Optimizer:
        """Return the optimizer of what moves."""

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Make the crops ready, and say how many steps and crops there are."""

    @abc.abstractmethod
    def _batches(self, epoch: int, step: int) -> Sequence[Batch]:
        """Return this process's part of the crops of a step, in batches that fit into memory.

        There are none, if a step has fewer crops than there are processes.
        """

    def epoch(self, number: int, skip: int) -> Iterator[float]:
        """Train for an epoch from step `skip` on, yielding the loss before each step.

        Raises
        ------
        ModelError
            If the loss or a parameter is not finite any more.
        """
        total = self.settings.epochs * self.steps
        for step, batches in self._drawn(number, skip):
            done = number * self.steps + step
            self._place = f"epoch {number + 1}, step {step + 1}"
            self.optimizer.set_share(done / total)
            loss = self.optimizer.step(functools.partial(self._loss, batches))
            if not all(bool(parameter.isfinite().all()) for parameter in self._moving):
                # Now, before a checkpoint can be made of them.
                raise self._broken("The parameters are not finite any more")
            self._follow_average(done)
            yield loss

    def _drawn(self, epoch: int, skip: int) -> Iterator[tuple[int, Sequence[Batch]]]:
        """Yield steps and their batches; the next are drawn, and matched, while these are used."""
        coming = self._ahead.submit(self._batches, epoch, skip)
        for step in range(skip, self.steps):
            batches = coming.result()
            if step + 1 < self.steps:
                coming = self._ahead.submit(self._batches, epoch, step + 1)
            yield step, batches

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the running average, if there is one, into the network until the block ends."""
        present = {name: value.clone() for name, value in self._network.state_dict().items()}
        self.keep_average()
        try:
            yield
        finally:
            self._network.load_state_dict(present)

    def keep_average(self) -> None:
        """Put the running average, if there is one, into the network."""
        if self._average is not None:
            self._network.load_state_dict(self._average)

    def close(self) -> None:
        """Stop drawing ahead, so that nobody waits for it."""
        self._ahead.shutdown(cancel_futures=True)

    def state(self) -> dict[str, Any]:
        """Return what, beside the network, the phase needs to go on."""
        return {"optimizer": self.optimizer.state_dict(), "average": self._average}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self.optimizer.load_state_dict(state["optimizer"])
        if state["average"] is not None:
            device = self._team.device
            self._average = {name: value.to(device) for name, value in state["average"].items()}

    def _loss(self, batches: Sequence[Batch]) -> Tensor:
        """Return the mean loss over the team's crops of this step, and leave its gradients."""
        for parameter in self._moving:
            # Zeros, not None: a process without crops sends as many gradients as the others.
            parameter.grad = torch.zeros_like(parameter)
        # In float64: a line search compares losses that differ in the last digits.
        total = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            losses = self._losses(batch.to(self._team.device))
            loss = losses.sum() / self.crops_per_step
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach().cpu()
        total = self._team.all_reduce(total, self._moving)
        if not math.isfinite(total):
            raise self._broken(f"The loss is {float(total)}")
        return total

    def _broken(self, what: str) -> ModelError:
        return ModelError(
            f"{what} in phase {self.title!r}, {self._place}; the last good checkpoint is kept, and "
            "a lower rate may help."
        )

    def _follow_average(self, steps: int) -> None:
        if not self.settings.average:
            return
        values = self._network.state_dict()
        if self._average is None:
            self._average = {name: value.clone() for name, value in values.items()}
        # In the first steps, average over fewer of them.
        decay = min(self.settings.average, (1 + steps) / (10 + steps))
        for name, value in values.items():
            self._average[name].lerp_(value, 1 - decay)


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
