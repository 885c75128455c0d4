"""Two optimisers behind one interface: a phase is `steps_per_epoch` steps an epoch of either."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch
from torch import Tensor

from nlnet.training.settings import PhaseSettings

LBFGS_HISTORY = 50
LBFGS_ITERATIONS = 5
"""Iterations in one call; each call evaluates the loss once more than the iterations need."""


class Optimizer(Protocol):
    """What training asks of an optimiser."""

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take one step, and return the loss before it; `closure` gives loss and gradients."""

    def set_share(self, share: float) -> None:
        """Tell which share of the phase is done; rates decay with it."""

    @property
    def rate(self) -> float:
        """The present rate, for the log."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""


class Adam:
    """Adam with a rate that decays along a cosine."""

    def __init__(self, named: Iterable[tuple[str, Tensor]], settings: PhaseSettings) -> None:
        self._settings = settings
        groups: dict[float, list[Tensor]] = {settings.rate: [], settings.scalar_rate: []}
        for name, parameter in named:
            scalar = name.endswith(("group_weights", "step_size"))
            groups[settings.scalar_rate if scalar else settings.rate].append(parameter)
        self._bases = list(groups)
        self._inner = torch.optim.Adam(
            [{"params": parameters, "lr": rate} for rate, parameters in groups.items()]
        )

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take one step on the closure's gradients."""
        loss = closure()
        self._inner.step()
        return float(loss)

    def set_share(self, share: float) -> None:
        """Set the rates for this share of the phase."""
        final = self._settings.final_rate
        factor = final + (1 - final) * 0.5 * (1 + math.cos(math.pi * share))
        for base, group in zip(self._bases, self._inner.param_groups, strict=True):
            group["lr"] = base * factor

    @property
    def rate(self) -> float:
        """Rate of the mixtures and filters."""
        return float(self._inner.param_groups[0]["lr"])

    def state_dict(self) -> dict[str, Any]:
        """Return the moments and rates."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the moments and rates."""
        self._inner.load_state_dict(state)


class LBFGS:
    """L-BFGS with a strong Wolfe line search, as published; its steps have no rate."""

    def __init__(self, named: Iterable[tuple[str, Tensor]]) -> None:
        self._inner = torch.optim.LBFGS(
            [parameter for _, parameter in named],
            max_iter=LBFGS_ITERATIONS,
            max_eval=4 * LBFGS_ITERATIONS,
            tolerance_grad=0,
            tolerance_change=0,
            history_size=LBFGS_HISTORY,
            line_search_fn="strong_wolfe",
        )

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take `LBFGS_ITERATIONS` iterations."""
        loss: Tensor = self._inner.step(closure)  # type: ignore[no-untyped-call]
        return float(loss)

    def set_share(self, share: float) -> None:
        """Do nothing: the line search finds the step lengths."""

    @property
    def rate(self) -> float:
        """Always 1."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return the history of steps and gradients."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the history of steps and gradients."""
        self._inner.load_state_dict(state)


def make_optimizer(named: Iterable[tuple[str, Tensor]], settings: PhaseSettings) -> Optimizer:
    """Return the optimiser that a phase's settings ask for."""
    return Adam(named, settings) if settings.optimizer == "adam" else LBFGS(named)
