"""A phase of training: what moves in it, where its batches come from, and its steps.

The network is trained greedily first, one stage after the other, then all stages jointly; a
refinement follows (`nlnet.training.refinement`).
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nlnet.errors import ModelError
from nlnet.torch import NLNet
from nlnet.training.data import Batch, CropSource
from nlnet.training.loss import negative_psnr
from nlnet.training.optimizers import LBFGS, Adam, Optimizer
from nlnet.training.settings import PhaseSettings, TrainingSettings
from nlnet.training.sources import BatchSource, Fresh, FullBatch, Shuffled, split
from nlnet.training.team import Team


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
    recipe : TrainingSettings
        The whole recipe.
    network : NLNet
        The network.
    crops : CropSource
        Where crops come from.
    team : Team
        The processes that train together.
    """

    ends_network = True
    """Whether the network is complete after this phase."""

    def __init__(
        self,
        title: str,
        settings: PhaseSettings,
        moving: nn.Module,
        recipe: TrainingSettings,
        network: NLNet,
        crops: CropSource,
        team: Team,
    ) -> None:
        self.title, self.settings = title, settings
        self._recipe, self._network, self._crops, self._team = recipe, network, crops, team
        network.requires_grad_(False)
        moving.requires_grad_(True)
        self._moving = list(moving.parameters())
        self.optimizer = self._make_optimizer()
        self._average: dict[str, Tensor] | None = None
        self._place = "at the start"
        # A phase without epochs needs no crops.
        self._source = self._make_source() if settings.epochs else BatchSource()
        self.steps = self._source.steps

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
    def _make_source(self) -> BatchSource:
        """Return where the training batches come from."""

    @property
    def pixels_per_step(self) -> int:
        """Pixels that a step of the team sees."""
        return self._source.crops_per_step * self._source.side**2

    def epoch(self, number: int, skip: int) -> Iterator[float]:
        """Train for an epoch from step `skip` on, yielding the loss before each step.

        Raises
        ------
        ModelError
            If the loss or a parameter is not finite any more.
        """
        total = self.settings.epochs * self.steps
        for step, batches in enumerate(self._source.epoch(number, skip), start=skip):
            done = number * self.steps + step
            self._place = f"epoch {number + 1}, step {step + 1}"
            self.optimizer.set_share(done / total)
            loss = self.optimizer.step(functools.partial(self._loss, batches))
            if not all(bool(parameter.isfinite().all()) for parameter in self._moving):
                # Now, before a checkpoint can be made of them.
                raise self._broken("The parameters are not finite any more")
            self._follow_average(done)
            yield loss

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the running average, if there is one, into the network until the block ends."""
        present = {name: value.clone() for name, value in self._network.state_dict().items()}
        self.keep_average()
        yield
        self._network.load_state_dict(present)

    def keep_average(self) -> None:
        """Put the running average, if there is one, into the network."""
        if self._average is not None:
            self._network.load_state_dict(self._average)

    def close(self) -> None:
        """Draw no more batches."""
        self._source.close()

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
            # Not None, which several processes could not tell from zeros.
            parameter.grad = torch.zeros_like(parameter)
        # In float64: a line search compares losses that differ in the last digits.
        total = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            losses = self._losses(batch.to(self._team.device))
            loss = losses.sum() / self._source.crops_per_step
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
        return Adam(arrays, [t for t in self._moving if t.ndim <= 2], self.settings)

    def _make_source(self) -> BatchSource:
        """Return all crops at once for L-BFGS, and otherwise minibatches of crops that are kept."""
        data, full = self._recipe.data, self.settings.optimizer == "lbfgs"
        size = min(self.settings.batch, data.crops)
        # Minibatches are shuffled over all crops, so there each process holds all of them.
        items = self._team.shard(range(data.crops)) if full else range(data.crops)
        if not items:
            return FullBatch([], data.crops, data.crop)
        kept = self._run_earlier_stages(self._crops.keep(items, self._team.threads), size)
        if full:
            return FullBatch(split(kept, size), data.crops, data.crop)
        return Shuffled(kept, size, (self._recipe.seed, self._stages.stop - 1), self._team)

    def _run_earlier_stages(self, crops: Batch, size: int) -> Batch:
        """Compute, once, what enters the first stage that is trained."""
        first = self._stages.start
        if not first:
            return crops
        estimates = []
        with torch.no_grad():
            for part in split(crops, size):
                here = part.to(self._team.device)
                planes = (here.noisy, here.noisy, here.groups)
                run = self._network.run(*planes, 0, first, project_last=False)
                estimates.append(run.cpu())
        return dataclasses.replace(crops, estimate=torch.cat(estimates))


class GreedyPhase(StagesPhase):
    """Only the newest stage moves; what enters it is computed once."""

    def __init__(
        self, stage: int, recipe: TrainingSettings, network: NLNet, crops: CropSource, team: Team
    ) -> None:
        self._stages = range(stage, stage + 1)
        part = (f"greedy {stage + 1}", recipe.greedy, network.stages[stage])
        super().__init__(*part, recipe, network, crops, team)


class JointPhase(StagesPhase):
    """All stages move."""

    def __init__(
        self, recipe: TrainingSettings, network: NLNet, crops: CropSource, team: Team
    ) -> None:
        self._stages = range(recipe.network.stages)
        super().__init__("joint", recipe.joint, network.stages, recipe, network, crops, team)

    def _make_source(self) -> BatchSource:
        data = self._recipe.data
        if not data.fresh or self.settings.optimizer == "lbfgs":
            return super()._make_source()
        return Fresh(self._crops, data, min(self.settings.batch, data.crops), self._team)
