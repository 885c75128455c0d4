"""One phase of training: which stages run, which parameters move, and one step of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nlnet.parallel import Workers
from nlnet.torch import NLNet
from nlnet.training.data import Batch, CropSource
from nlnet.training.optimizers import make_optimizer
from nlnet.training.settings import PhaseSettings, TrainingSettings
from nlnet.training.sources import FIXED_EPOCH, Fresh, FullBatch, Shuffled, Source
from nlnet.training.team import Team


class Phase:
    """A phase on the way to a trained network: greedy for one stage, or joint for all.

    Parameters
    ----------
    number : int
        The stage that is trained, or the number of stages for joint training.
    settings : TrainingSettings
        The recipe.
    network : NLNet
        The network; its parameters that do not take part are frozen.
    crops : CropSource
        Where crops are drawn.
    team : Team
        The processes that train together.
    """

    def __init__(
        self,
        number: int,
        settings: TrainingSettings,
        network: NLNet,
        crops: CropSource,
        team: Team,
    ) -> None:
        stages = settings.network.stages
        self.joint = number == stages
        self.title = "joint" if self.joint else f"greedy {number + 1}"
        self.settings: PhaseSettings = settings.joint if self.joint else settings.greedy
        self._first = 0 if self.joint else number
        self._last = min(number + 1, stages)
        self._network = network
        self._team = team
        self._moving = []
        for name, parameter in network.named_parameters():
            moves = self.joint or name.startswith(f"stages.{number}.")
            parameter.requires_grad_(moves)
            if moves:
                self._moving.append((name, parameter))
        self.optimizer = make_optimizer(self._moving, self.settings)
        self.average: dict[str, Tensor] | None = None
        self._source = self._make_source(number, settings, crops)
        self.steps = self._source.steps

    def epoch(self, number: int, skip: int) -> Iterator[float]:
        """Train for an epoch from step `skip` on, yielding the loss before each step."""
        total = self.settings.epochs * self.steps
        for step, batches in enumerate(self._source.epoch(number, skip), start=skip):
            done = number * self.steps + step
            self.optimizer.set_share(done / total)
            loss = self.optimizer.step(functools.partial(self._loss, batches))
            self._follow_average(done)
            yield loss

    def negative_psnr(self, batch: Batch, *, whole: bool) -> Tensor:
        """Negative PSNR of every image of a batch, after the phase's last stage.

        `whole` runs all stages up to it; otherwise only those that the phase trains.
        """
        here = batch.to(self._device)
        first = 0 if whole else self._first
        planes = self._network.run(here.estimate, here.noisy, here.groups, first, self._last)
        images = self._network.from_working_planes(planes)
        # Eq. (16)
        return 10 * torch.log10((images - here.clean).square().mean(dim=(1, 2, 3)) / 255**2)

    def state(self) -> dict[str, Any]:
        """Return what, beside the network, the phase needs to go on."""
        return {"optimizer": self.optimizer.state_dict(), "average": self.average}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.average = state["average"]

    @property
    def _device(self) -> torch.device:
        return next(self._network.parameters()).device

    def _loss(self, batches: Sequence[Batch]) -> Tensor:
        """Mean negative PSNR over the team's crops of this step, with its gradients."""
        parameters = [parameter for _, parameter in self._moving]
        for parameter in parameters:
            parameter.grad = None
        total = torch.zeros((), dtype=parameters[0].dtype, device=self._device)
        for batch in batches:
            loss = self.negative_psnr(batch, whole=False).sum() / self._source.crops_per_step
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return self._team.sum_gradients(total, parameters)

    def _follow_average(self, steps: int) -> None:
        if not self.settings.average:
            return
        values = self._network.state_dict()
        if self.average is None:
            self.average = {name: value.clone() for name, value in values.items()}
        # Early on, average over what there is.
        decay = min(self.settings.average, (1 + steps) / (10 + steps))
        for name, value in values.items():
            self.average[name].lerp_(value, 1 - decay)

    def _make_source(self, number: int, settings: TrainingSettings, crops: CropSource) -> Source:
        count, size = settings.data.crops, min(self.settings.batch, settings.data.crops)
        full = self.settings.optimizer == "lbfgs"
        if self.joint and settings.data.fresh and not full:
            return Fresh(crops, count, size, self._team, self._network.threads)
        with Workers(self._network.threads) as workers:
            kept = crops.draw(FIXED_EPOCH, range(count), workers)
        if self._first:
            kept = self._run_earlier_stages(kept, size)
        if full:
            return FullBatch(kept, size, self._team)
        return Shuffled(kept, size, (settings.seed, number), self._team)

    def _run_earlier_stages(self, crops: Batch, size: int) -> Batch:
        """Compute, once, what enters the stage that this phase trains."""
        estimates = []
        with torch.no_grad():
            for start in range(0, len(crops), size):
                part = crops.pick(range(start, min(start + size, len(crops)))).to(self._device)
                estimates.append(
                    self._network.run(
                        part.noisy, part.noisy, part.groups, 0, self._first, project_last=False
                    ).cpu()
                )
        return Batch(torch.cat(estimates), crops.noisy, crops.groups, crops.clean)
