"""One phase of training: which stages run, which parameters move, and one step of it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nlnet.errors import ModelError
from nlnet.torch import NLNet
from nlnet.torch.refinement import RefinementNet
from nlnet.training.data import Batch, CropSource
from nlnet.training.loss import negative_psnr, negative_psnr_near, squared_errors
from nlnet.training.optimizers import make_optimizer
from nlnet.training.settings import PhaseSettings, RefinementSettings, TrainingSettings
from nlnet.training.sources import BatchSource, Cuts, Fresh, FullBatch, Shuffled, split
from nlnet.training.team import Team


class Phase:
    """A phase on the way to a trained network: greedy for one stage, joint for all, refinement.

    Parameters
    ----------
    number : int
        The stage that is trained, the number of stages for joint training, or one more for what
        follows the stages.
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
        self._joint = number == stages
        self.title, self.settings, part = _outline(number, settings)
        self._first = 0 if self._joint else min(number, stages)
        self._last = min(number + 1, stages)
        self.ends_network = number == settings.last_phase or (
            self._last == stages and settings.network.refinement is None
        )
        self._network = network
        self._team = team
        self._moving = []
        for name, parameter in network.named_parameters():
            moves = name.startswith(part)
            parameter.requires_grad_(moves)
            if moves:
                self._moving.append((name, parameter))
        self.optimizer = make_optimizer(self._moving, self.settings)
        self._average: dict[str, Tensor] | None = None
        self._place = "at the start"
        # A phase without epochs needs no crops.
        self._source = self._make_source(number, settings, crops) if self.settings.epochs else None
        self.steps = 0 if self._source is None else self._source.steps

    def epoch(self, number: int, skip: int) -> Iterator[float]:
        """Train for an epoch from step `skip` on, yielding the loss before each step.

        Raises
        ------
        ModelError
            If the loss or a parameter is not finite any more.
        """
        assert self._source is not None
        total = self.settings.epochs * self.steps
        for step, batches in enumerate(self._source.epoch(number, skip), start=skip):
            done = number * self.steps + step
            self._place = f"epoch {number + 1}, step {step + 1}"
            self.optimizer.set_share(done / total)
            if isinstance(self.settings, RefinementSettings):
                self._refinement.opened = done >= self.settings.blind * total
            loss = self.optimizer.step(functools.partial(self._loss, batches))
            if not all(bool(parameter.isfinite().all()) for _, parameter in self._moving):
                # Now, before a checkpoint can be made of them.
                raise self._broken("The parameters are not finite any more")
            self._follow_average(done)
            yield loss

    def negative_psnr(self, batch: Batch, *, whole: bool) -> Tensor:
        """Negative PSNR of every image of a batch, after the phase's last stage.

        `whole` runs all stages up to it; otherwise only those that the phase trains, and images
        that are pieces count as parts of their crops.
        """
        here = batch.to(self._team.device)
        first = 0 if whole else self._first
        planes = here.estimate
        if first < self._last:
            planes = self._network.run(
                planes, here.noisy, here.groups, first, self._last, sigma=here.sigma
            )
        if isinstance(self.settings, RefinementSettings):
            self._refinement.coarse = self.settings.bfloat16 and not whole
            planes = self._network.refine(planes, here.noisy, here.sigmas)
        images = self._network.from_working_planes(planes)
        if isinstance(self.settings, RefinementSettings) and not whole:
            return negative_psnr_near(images, here.clean, here.errors)
        return negative_psnr(images, here.clean)

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
        """Leave nothing under way."""
        if isinstance(self._source, Cuts):
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
        """Mean negative PSNR over the team's crops of this step, with its gradients."""
        assert self._source is not None
        parameters = [parameter for _, parameter in self._moving]
        for parameter in parameters:
            # Not None, which several processes could not tell from zeros.
            parameter.grad = torch.zeros_like(parameter)
        # In float64: a line search compares losses that differ in the last digits.
        total = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            loss = self.negative_psnr(batch, whole=False).sum() / self._source.crops_per_step
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach().cpu()
        total = self._team.all_reduce(total, parameters)
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

    def _make_source(
        self, number: int, settings: TrainingSettings, crops: CropSource
    ) -> BatchSource:
        count, size = settings.data.crops, min(self.settings.batch, settings.data.crops)
        full, threads = self.settings.optimizer == "lbfgs", self._team.threads
        if isinstance(self.settings, RefinementSettings):
            pixels = count * settings.data.crop**2
            return Cuts(
                functools.partial(self._draw_estimate, crops),
                crops=count,
                sets=math.ceil(self.settings.epochs / self.settings.reuse),
                steps=max(1, pixels // (self.settings.batch * self.settings.cut**2)),
                epochs=self.settings.reuse,
                size=self.settings.batch,
                side=self.settings.cut,
                seed=(settings.seed, number),
                team=self._team,
            )
        if self._joint and settings.data.fresh and not full:
            return Fresh(crops, count, size, self._team, threads)
        # Minibatches are shuffled over all crops, so there each process holds all of them.
        items = self._team.shard(range(count)) if full else range(count)
        kept = None
        if items:
            kept = self._run_earlier_stages(crops.keep(items, threads), size)
        if full:
            return FullBatch(kept, count, size)
        assert kept is not None
        return Shuffled(kept, size, (settings.seed, number), self._team)

    def _draw_estimate(self, crops: CropSource, epoch: int, item: int) -> Batch:
        """Return a new crop, with noise of its own, and what the stages make of it."""
        batch = crops.draw_one(epoch, item, self._team.threads)
        here = batch.to(self._team.device)
        with torch.no_grad():
            estimate = self._network.run(here.noisy, here.noisy, here.groups, sigma=here.sigma)
            errors = squared_errors(self._network.from_working_planes(estimate), here.clean)
        # The groups have served their purpose, and take more memory than all else.
        none = batch.groups[:0].clone()
        return dataclasses.replace(batch, estimate=estimate.cpu(), groups=none, errors=errors.cpu())

    @property
    def _refinement(self) -> RefinementNet:
        refinement = self._network.refinement
        assert isinstance(refinement, RefinementNet)
        return refinement

    def _run_earlier_stages(self, crops: Batch, size: int) -> Batch:
        """Compute, once, what enters the stage that this phase trains."""
        if not self._first:
            return crops
        estimates = []
        with torch.no_grad():
            for part in split(crops, size):
                here = part.to(self._team.device)
                estimates.append(
                    self._network.run(
                        here.noisy, here.noisy, here.groups, 0, self._first, project_last=False
                    ).cpu()
                )
        return dataclasses.replace(crops, estimate=torch.cat(estimates))


def _outline(number: int, settings: TrainingSettings) -> tuple[str, PhaseSettings, str]:
    """Return the title and settings of a phase, and how the names begin of what moves in it."""
    if number > settings.network.stages:
        return "refinement", settings.refinement, "refinement."
    if number == settings.network.stages:
        return "joint", settings.joint, "stages."
    return f"greedy {number + 1}", settings.greedy, f"stages.{number}."
