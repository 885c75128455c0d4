"""Three optimizers behind one interface."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from nlnet.training.settings import PhaseSettings

LBFGS_HISTORY = 50
LINE_SEARCH_EVALUATIONS = 25


class Optimizer:
    """What training asks of an optimizer: here one of torch's, with rates that decay.

    Parameters
    ----------
    inner : torch.optim.Optimizer
        What takes the steps.
    rates : sequence of float
        The rate of each of its groups of parameters, where the phase begins.
    final : float
        Share of the rates that is left at its end; on the way they follow a cosine.
    """

    def __init__(
        self, inner: torch.optim.Optimizer, rates: Sequence[float] = (), final: float = 1.0
    ) -> None:
        self._inner, self._rates, self._final = inner, rates, final
        self.set_share(0.0)

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take one step, and return the loss before it; `closure` gives loss and gradients."""
        loss = closure()
        self._inner.step()
        return float(loss)

    def set_share(self, share: float) -> None:
        """Set the rates for this share of the phase."""
        factor = self._factor(share)
        for rate, group in zip(self._rates, self._inner.param_groups, strict=False):
            group["lr"] = rate * factor

    def _factor(self, share: float) -> float:
        return self._final + (1 - self._final) * 0.5 * (1 + math.cos(math.pi * share))

    @property
    def rate(self) -> float:
        """The present rate, for the log: that of the first group."""
        return float(self._inner.param_groups[0]["lr"])

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self._inner.load_state_dict(state)


def adam(arrays: Sequence[Tensor], scalars: Sequence[Tensor], settings: PhaseSettings) -> Optimizer:
    """Return Adam with two rates: one for arrays, one for single values."""
    inner = torch.optim.Adam([{"params": arrays}, {"params": scalars}])
    return Optimizer(inner, (settings.rate, settings.scalar_rate), settings.final_rate)


class Muon(Optimizer):
    """Momentum whose steps are orthogonalized, for the weights of convolutions; Adam for the rest.

    A convolution's weights are a matrix, outputs x inputs. The step is not along its momentum, but
    along the nearest matrix whose singular values are all 1: rare directions of the gradient are
    learned as fast as frequent ones (K. Jordan et al., 2024).
    """

    _MOMENTUM = 0.95
    _DECAY = 0.1
    """Weight decay, as a share of the rate. All steps have the same length, so without it the noise
    in them would add up."""
    _WARM_UP = 0.004
    """Share of the phase in which the rates rise."""

    def __init__(
        self, matrices: Iterable[Tensor], others: Iterable[Tensor], settings: PhaseSettings
    ) -> None:
        self._matrices = list(matrices)
        self._momenta = [torch.zeros_like(parameter) for parameter in self._matrices]
        self._ratio = settings.rate / settings.scalar_rate
        inner = torch.optim.Adam(list(others), betas=(0.9, 0.95))
        super().__init__(inner, (settings.scalar_rate,), settings.final_rate)

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take one step on the closure's gradients."""
        loss = super().step(closure)
        with torch.no_grad():
            for parameter, momentum in zip(self._matrices, self._momenta, strict=True):
                assert parameter.grad is not None
                momentum.mul_(self._MOMENTUM).add_(parameter.grad)
                ahead = parameter.grad + self._MOMENTUM * momentum
                direction = orthogonalized(ahead.flatten(1))
                rows, columns = direction.shape
                length = self.rate * math.sqrt(max(1.0, rows / columns))
                parameter.mul_(1 - self._DECAY * self.rate)
                parameter.sub_(length * direction.reshape(parameter.shape))
        return loss

    def _factor(self, share: float) -> float:
        return super()._factor(share) * min(1.0, 0.01 + share / self._WARM_UP)

    @property
    def rate(self) -> float:
        """Rate of the convolutions' weights, which keeps its ratio to that of all else."""
        return self._ratio * super().rate

    def state_dict(self) -> dict[str, Any]:
        """Return the moments and rates."""
        return {"momenta": self._momenta, "others": super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the moments and rates."""
        for momentum, saved in zip(self._momenta, state["momenta"], strict=True):
            momentum.copy_(saved)
        super().load_state_dict(state["others"])


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return a matrix with the same singular vectors, and singular values of about 1.

    Five steps of a Newton-Schulz iteration, whose polynomial grows small singular values fast and
    leaves all of them between 0.7 and 1.2.

    Examples
    --------
    >>> values = torch.linalg.svdvals(orthogonalized(torch.diag(torch.tensor([9.0, 1.0, 0.1]))))
    >>> bool((0.6 < values).all() and (values < 1.3).all())
    True
    """
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    result: Tensor = wide / (wide.norm() + 1e-7)
    for _ in range(5):
        square = result @ result.T
        result = 3.4445 * result + (2.0315 * square @ square - 4.775 * square) @ result
    return result.T if wide is not matrix else result


class LBFGS(Optimizer):
    """L-BFGS with a strong Wolfe line search, as published; a step is one iteration.

    torch keeps the history from call to call, so many calls of one iteration are the same as one
    call of many. But every call begins with an evaluation, at the point where the last line search
    has ended: its result is remembered, so that it is not computed twice.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = list(parameters)
        inner = torch.optim.LBFGS(
            self._parameters,
            max_iter=1,
            max_eval=1 + LINE_SEARCH_EVALUATIONS,
            tolerance_grad=0,
            tolerance_change=0,
            history_size=LBFGS_HISTORY,
            line_search_fn="strong_wolfe",
        )
        super().__init__(inner)  # its rate is always 1, the length that the line search tries first
        self._seen: dict[bytes, tuple[Tensor, list[Tensor]]] = {}  # losses and gradients

    def step(self, closure: Callable[[], Tensor]) -> float:
        """Take one iteration on a loss that must be the same function in every call."""
        before = self._point()
        remembering = functools.partial(self._evaluate, closure)
        loss = self._inner.step(remembering)  # type: ignore[arg-type]
        after = self._point()
        if after == before:
            # No better point in this direction: without its history it tries the steepest next.
            self._inner.state.clear()
        self._seen = {point: seen for point, seen in self._seen.items() if point == after}
        return float(loss)

    def _point(self) -> bytes:
        """Return the present values of all parameters."""
        return parameters_to_vector(self._parameters).detach().cpu().numpy().tobytes()

    def _evaluate(self, closure: Callable[[], Tensor]) -> Tensor:
        point = self._point()
        if point not in self._seen:
            loss = closure()
            gradients = [p.grad.clone() for p in self._parameters if p.grad is not None]
            self._seen[point] = loss, gradients
        loss, gradients = self._seen[point]
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        return loss
