from __future__ import annotations

import io
import itertools

import pytest
import torch
from torch import Tensor

from nlnet.training.optimizers import LBFGS, LINE_SEARCH_EVALUATIONS, Adam
from nlnet.training.settings import PhaseSettings

pytestmark = pytest.mark.numerical


class Valley:
    """A curved valley of 12 dimensions, and a count of how often it was looked at."""

    def __init__(self, dtype: object = torch.float32) -> None:
        generator = torch.Generator().manual_seed(3)
        self.named = [
            ("stages.0.mix", torch.randn(2, 4, generator=generator).to(dtype).requires_grad_()),
            ("stages.0.step_size", torch.randn(4, generator=generator).to(dtype).requires_grad_()),
        ]
        self.evaluations = 0

    def __call__(self) -> Tensor:
        self.evaluations += 1
        x = torch.cat([tensor.reshape(-1) for _, tensor in self.named])
        for _, tensor in self.named:
            tensor.grad = None
        loss = (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss.detach().double()

    @property
    def values(self) -> Tensor:
        return torch.cat([tensor.detach().reshape(-1) for _, tensor in self.named])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_iterations_are_the_steps_of_one_long_call(dtype: object) -> None:
    once, stepwise = Valley(dtype), Valley(dtype)
    inner = torch.optim.LBFGS(
        [tensor for _, tensor in once.named],
        max_iter=40,
        max_eval=10**6,
        tolerance_grad=0,
        tolerance_change=0,
        history_size=50,
        line_search_fn="strong_wolfe",
    )
    inner.step(once)
    optimizer = LBFGS(stepwise.named)
    losses = [optimizer.step(stepwise) for _ in range(40)]
    assert torch.equal(once.values, stepwise.values)
    assert once.evaluations == stepwise.evaluations  # none is computed twice
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


def test_lbfgs_goes_on_from_a_saved_state() -> None:
    whole, first = Valley(), Valley()
    optimizer = LBFGS(whole.named)
    for _ in range(15):
        optimizer.step(whole)
    optimizer = LBFGS(first.named)
    for _ in range(6):
        optimizer.step(first)
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    second = Valley()
    for (_, target), (_, source) in zip(second.named, first.named, strict=True):
        target.data.copy_(source.data)
    optimizer = LBFGS(second.named)
    optimizer.load_state_dict(torch.load(io.BytesIO(buffer.getvalue()), weights_only=True))
    for _ in range(9):
        optimizer.step(second)
    assert torch.equal(whole.values, second.values)


def test_lbfgs_starts_anew_where_it_finds_no_better_point() -> None:
    valley = Valley()
    optimizer = LBFGS(valley.named)
    for _ in range(5):
        optimizer.step(valley)

    def uphill() -> Tensor:
        """Gradients that point the wrong way: every step is worse."""
        loss = valley()
        for _, tensor in valley.named:
            tensor.grad = -tensor.grad
        return loss

    before = valley.values
    optimizer = LBFGS(valley.named)
    valley.evaluations = 0
    optimizer.step(uphill)
    assert torch.equal(valley.values, before)
    assert valley.evaluations <= 1 + LINE_SEARCH_EVALUATIONS
    assert not optimizer.state_dict()["state"]


def test_adam_has_two_rates_that_decay_along_a_cosine() -> None:
    valley = Valley()
    settings = PhaseSettings(rate=0.1, scalar_rate=0.02, final_rate=0.5)
    optimizer = Adam(valley.named, settings)
    rates = []
    for share in (0.0, 0.5, 1.0):
        optimizer.set_share(share)
        rates.append(optimizer.rate)
    assert rates == pytest.approx([0.1, 0.075, 0.05])
    optimizer.set_share(0.0)
    before = [tensor.detach().clone() for _, tensor in valley.named]
    optimizer.step(valley)
    # The first step of Adam has the length of the rate in every coordinate.
    for (_, tensor), old, rate in zip(valley.named, before, (0.1, 0.02), strict=True):
        assert (tensor.detach() - old).abs().flatten().tolist() == pytest.approx(
            [rate] * tensor.numel(), rel=1e-3
        )


def test_equal_rates_are_no_special_case() -> None:
    valley = Valley()
    optimizer = Adam(valley.named, PhaseSettings(rate=0.1, scalar_rate=0.1))
    before = valley.values
    optimizer.step(valley)
    assert (valley.values != before).all()
