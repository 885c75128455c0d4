from __future__ import annotations

import io
import itertools

import pytest
import torch
from refinements import SIZES, random_refinement
from torch import Tensor
from training_cases import picture

from nlnet.torch.refinement import RefinementNet, initial_refinement
from nlnet.training.optimizers import (
    LBFGS,
    LINE_SEARCH_EVALUATIONS,
    Muon,
    adam,
    orthogonalized,
)
from nlnet.training.settings import PhaseSettings, RefinementSettings

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
    def tensors(self) -> list[Tensor]:
        return [tensor for _, tensor in self.named]

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
    optimizer = LBFGS(stepwise.tensors)
    losses = [optimizer.step(stepwise) for _ in range(40)]
    assert torch.equal(once.values, stepwise.values)
    assert once.evaluations == stepwise.evaluations  # none is computed twice
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


def test_lbfgs_goes_on_from_a_saved_state() -> None:
    whole, first = Valley(), Valley()
    optimizer = LBFGS(whole.tensors)
    for _ in range(15):
        optimizer.step(whole)
    optimizer = LBFGS(first.tensors)
    for _ in range(6):
        optimizer.step(first)
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    second = Valley()
    for (_, target), (_, source) in zip(second.named, first.named, strict=True):
        target.data.copy_(source.data)
    optimizer = LBFGS(second.tensors)
    optimizer.load_state_dict(torch.load(io.BytesIO(buffer.getvalue()), weights_only=True))
    for _ in range(9):
        optimizer.step(second)
    assert torch.equal(whole.values, second.values)


def test_lbfgs_starts_anew_where_it_finds_no_better_point() -> None:
    valley = Valley()
    optimizer = LBFGS(valley.tensors)
    for _ in range(5):
        optimizer.step(valley)

    def uphill() -> Tensor:
        """Gradients that point the wrong way: every step is worse."""
        loss = valley()
        for _, tensor in valley.named:
            tensor.grad = -tensor.grad
        return loss

    before = valley.values
    optimizer = LBFGS(valley.tensors)
    valley.evaluations = 0
    optimizer.step(uphill)
    assert torch.equal(valley.values, before)
    assert valley.evaluations <= 1 + LINE_SEARCH_EVALUATIONS
    assert not optimizer.state_dict()["state"]


def test_adam_has_two_rates_that_decay_along_a_cosine() -> None:
    valley = Valley()
    settings = PhaseSettings(rate=0.1, scalar_rate=0.02, final_rate=0.5)
    optimizer = adam(valley.tensors[:1], valley.tensors[1:], settings)
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
    optimizer = adam(
        valley.tensors[:1], valley.tensors[1:], PhaseSettings(rate=0.1, scalar_rate=0.1)
    )
    before = valley.values
    optimizer.step(valley)
    assert (valley.values != before).all()


# --- Muon -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 5), (8, 72), (32, 16)])
def test_orthogonalized_matrices_have_equal_singular_values(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(1)
    matrix = torch.randn(shape, generator=generator)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    values = torch.logspace(0, -1.5, len(values))
    for scale in (1e-6, 1.0, 1e4):
        result = orthogonalized(scale * (left * values) @ right)
        assert result.shape == shape
        # Between the same singular vectors there is nothing but numbers of about 1.
        inner = left.T @ result @ right.T
        assert bool(((inner.diag() > 0.6) & (inner.diag() < 1.3)).all())
        assert float((inner - torch.diag(inner.diag())).abs().max()) < 1e-3
    assert not orthogonalized(torch.zeros(3, 4)).any()


class Fit:
    """A small refinement that is to become another one."""

    def __init__(self) -> None:
        self.network = RefinementNet(initial_refinement(SIZES, 1, seed=2))
        self._wanted = RefinementNet(random_refinement(SIZES, seed=3))
        images = [torch.from_numpy(picture(n, (16, 16))).float()[None, None] for n in (1, 2)]
        self._inputs = (*images, torch.tensor([12.0]))
        self.named = list(self.network.named_parameters())

    def __call__(self) -> Tensor:
        for _, tensor in self.named:
            tensor.grad = None
        with torch.no_grad():
            wanted = self._wanted(*self._inputs)
        loss = ((self.network(*self._inputs) - wanted) ** 2).mean()
        loss.backward()
        return loss.detach().double()


SETTINGS = RefinementSettings(epochs=1, rate=0.02, scalar_rate=0.005, final_rate=0.1)


def test_muon_takes_equal_steps_in_all_directions_of_inner_convolutions() -> None:
    fit = Fit()
    optimizer = Muon(*fit.network.matrices_and_others(), SETTINGS)
    optimizer.set_share(0.004)
    before = {name: tensor.detach().clone() for name, tensor in fit.named}
    optimizer.step(fit)
    for name, tensor in fit.named:
        step = (tensor.detach() - before[name]).flatten(1 if tensor.ndim == 4 else 0)
        if tensor.ndim == 4 and "head" not in name and "tail" not in name:
            rows, columns = step.shape
            values = torch.linalg.svdvals(step) / (optimizer.rate * max(1, rows / columns) ** 0.5)
            assert float(values.max()) < 1.3, name
            assert float(values.median()) > 0.6, name
            continue
        # The first step of Adam has the length of the rate wherever there is a gradient.
        sizes = step.abs()[step != 0]
        assert sizes.numel() > 0, name
        assert sizes.median() == pytest.approx(0.005 * optimizer.rate / 0.02, rel=0.05), name


def test_muon_learns() -> None:
    fit = Fit()
    optimizer = Muon(*fit.network.matrices_and_others(), SETTINGS)
    losses = []
    for step in range(60):
        optimizer.set_share(step / 60)
        losses.append(optimizer.step(fit))
    assert losses[-1] < 0.5 * losses[0]


def test_rates_rise_first_and_then_decay_along_a_cosine() -> None:
    optimizer = Muon(*Fit().network.matrices_and_others(), SETTINGS)
    rates = []
    for share in (0.0, 0.002, 0.5, 1.0):
        optimizer.set_share(share)
        rates.append(optimizer.rate)
    assert rates == pytest.approx([0.0002, 0.51 * 0.02, 0.55 * 0.02, 0.1 * 0.02], rel=1e-3)


def test_muon_goes_on_from_a_saved_state() -> None:
    whole, first, second = Fit(), Fit(), Fit()
    optimizer = Muon(*whole.network.matrices_and_others(), SETTINGS)
    for step in range(9):
        optimizer.set_share(step / 9)
        optimizer.step(whole)
    optimizer = Muon(*first.network.matrices_and_others(), SETTINGS)
    for step in range(4):
        optimizer.set_share(step / 9)
        optimizer.step(first)
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    second.network.load_state_dict(first.network.state_dict())
    resumed = Muon(*second.network.matrices_and_others(), SETTINGS)
    resumed.load_state_dict(torch.load(io.BytesIO(buffer.getvalue()), weights_only=True))
    assert resumed.rate == optimizer.rate  # which the log tells
    for step in range(4, 9):
        resumed.set_share(step / 9)
        resumed.step(second)
    for (name, one), (_, other) in zip(whole.named, second.named, strict=True):
        assert torch.equal(one, other), name
