"""A phase of training: what all of them have in common.

The network is trained greedily first, one stage after the other, then all stages jointly
(`nlnet.training.stages`); a refinement follows (`nlnet.training.refinement`).
"""

import abc
import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nlnet.errors import ModelError
from nlnet.torch import NLNet
from nlnet.training.data import Batch, CropSource
from nlnet.training.optimizers import Optimizer
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
        yield
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
            # Not None, which several processes could not tell from zeros.
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
