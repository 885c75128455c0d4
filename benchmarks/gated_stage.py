"""Stages with ingredients beyond the paper, in plain torch: what `benchmarks.ablation` compares.

All are ``x <- (1 - gamma) x + gamma y - sum_r P_r^T F^T g_r t_r`` with the features t = F P_r x of
each patch, or, with `sums`, of its group, as in the paper. They differ in what the gain g of a
filter's feature depends on: on the feature alone (`Pointwise`: psi(t) = g(|t|) t), or on the
energies of all features, of the patch itself and averaged over its group (`Gated`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nlnet.network.parameters import dct_basis

SIGMA = 25.0
"""Noise that energies are counted in."""

_NODES, _LARGEST = 26, 100.0
"""Places at which the gain of a single feature is given, from 0 to the largest."""

_FLOOR = 0.05
"""Least energy, in that of the noise."""


@dataclasses.dataclass(frozen=True)
class Ingredients:
    """What a network is made of."""

    energies: tuple[str, ...] = ()  # "own", "group": what gains depend on; () for psi
    hidden: int = 48  # units between energies and gains; 0: each filter by itself
    sums: bool = False  # weighted sums over the group, and spread to it
    patch_size: int = 5
    group_size: int = 8
    stages: int = 1
    memory: int = 0  # values per pixel that go from stage to stage


class Stage(nn.Module):
    """What all stages have in common."""

    def __init__(self, made_of: Ingredients, first: bool) -> None:
        super().__init__()
        self.made_of = made_of
        basis = torch.tensor(dct_basis(made_of.patch_size), dtype=torch.float32)
        self.basis: Tensor
        self.register_buffer("basis", basis)
        self.mix = nn.Parameter(torch.eye(len(basis)))
        self.step_size = nn.Parameter(torch.tensor(0.0 if first else 0.1))
        if made_of.sums:
            weights = torch.zeros(made_of.group_size)
            weights[0] = 1.0
            self.group_weights = nn.Parameter(weights)

    def forward(
        self, estimate: Tensor, noisy: Tensor, members: Tensor, memory: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the next estimate, and the memory for the next stage."""
        size = self.made_of.patch_size
        batch, _, height, width = estimate.shape
        kernel = functional.normalize(self.mix, dim=1) @ self.basis
        kernel = kernel.reshape(-1, 1, size, size)
        padded = functional.pad(estimate, (size // 2,) * 4, mode="reflect")
        features = functional.conv2d(padded, kernel)  # (B, F, H, W)
        features = features.movedim(1, -1).reshape(-1, len(kernel))  # (B H W, F)
        places = _rows_of(members)
        if self.made_of.sums:
            features = _summed(features, places, self.group_weights)
        gains, memory = self.gains(features, places, memory)
        removed = gains * features / size**2  # every pixel is in size**2 patches
        if self.made_of.sums:
            removed = _spread(removed, places, self.group_weights)
        planes = removed.reshape(batch, height, width, -1).movedim(-1, 1)
        change = functional.conv_transpose2d(planes, kernel, padding=size // 2)
        return (1 - self.step_size) * estimate + self.step_size * noisy - change, memory

    def gains(
        self, features: Tensor, places: Tensor, memory: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return how much of each feature is removed."""
        raise NotImplementedError


class Pointwise(Stage):
    """The paper's psi: a function of one feature, as straight lines between nodes."""

    def __init__(self, made_of: Ingredients, *, first: bool, last: bool) -> None:
        super().__init__(made_of, first)
        at = torch.linspace(0, _LARGEST, _NODES)
        start = 0.5 * torch.exp(-0.5 * (at / 45) ** 2)
        self.table = nn.Parameter(start.repeat(len(self.basis), 1))

    def gains(
        self, features: Tensor, places: Tensor, memory: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Look them up."""
        return _Lookup.apply(self.table, features.abs() * ((_NODES - 1) / _LARGEST)), None


class Gated(Stage):
    """Gains from the logarithms of energies, mixed by one layer of hidden units."""

    def __init__(self, made_of: Ingredients, *, first: bool, last: bool) -> None:
        super().__init__(made_of, first)
        filters, hidden = len(self.basis), made_of.hidden
        self.remembers = 0 if last else made_of.memory
        inputs = filters * len(made_of.energies)
        remembered = 0 if first else made_of.memory
        start = -0.5 * torch.eye(filters).repeat(1, len(made_of.energies))
        self.direct = nn.Parameter(functional.pad(start, (0, remembered)))
        self.offset = nn.Parameter(torch.zeros(filters))
        self.scale = nn.Parameter(torch.full((filters,), 0.8 if first else 0.4))
        self.low = nn.Parameter(torch.zeros(filters))
        self.member_weights = nn.Parameter(torch.zeros(made_of.group_size))
        if hidden:
            self.inner = nn.Linear(inputs + remembered, hidden)
            self.outer = nn.Linear(hidden, filters + self.remembers, bias=False)
            nn.init.uniform_(self.outer.weight, -0.3 / hidden**0.5, 0.3 / hidden**0.5)

    def gains(
        self, features: Tensor, places: Tensor, memory: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the energies."""
        own = features.square() / SIGMA**2
        known = {"own": own}
        if "group" in self.made_of.energies:
            known["group"] = _summed(own, places, self.member_weights.softmax(0))
        logs = [torch.log(known[kind] + _FLOOR) for kind in self.made_of.energies]
        seen = torch.cat(logs if memory is None else [*logs, memory], dim=1)
        filters = features.shape[1]
        if not self.made_of.hidden:
            score = seen * self.direct.diagonal() + self.offset
            return (score.sigmoid() - self.low) * self.scale, None
        mixed = self.outer(self.inner(seen).relu())
        score = mixed[:, :filters] + seen @ self.direct.T + self.offset
        left = mixed[:, filters:] if self.remembers else None
        return (score.sigmoid() - self.low) * self.scale, left


class _Lookup(torch.autograd.Function):
    """Values of tables (F, nodes) at places (N, F), by straight lines."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, places: Tensor) -> Tensor:
        filters, nodes = table.shape
        inside = places.clamp(0, nodes - 1.0001)
        left = inside.int()
        share = inside - left
        at = left.long() + torch.arange(filters) * nodes
        flat = table.reshape(-1)
        rise = flat[at + 1] - flat[at]
        ctx.save_for_backward(at, share, rise)
        ctx.shape = table.shape
        return flat[at] + share * rise

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor, Tensor]:
        at, share, rise = ctx.saved_tensors
        size = ctx.shape.numel()
        upper = torch.bincount(at.reshape(-1), (cotangents[0] * share).reshape(-1), size)
        both = torch.bincount(at.reshape(-1), cotangents[0].reshape(-1), size)
        table = both - upper
        table[1:] += upper[:-1]
        return table.reshape(ctx.shape).to(rise.dtype), cotangents[0] * rise


def _rows_of(members: Tensor) -> Tensor:
    """From pixels of each image, (B, K, H W), to rows of all features, (B H W, K)."""
    batch, count, pixels = members.shape
    first = pixels * torch.arange(batch).reshape(-1, 1, 1)
    return (members + first).movedim(1, -1).reshape(-1, count)


def _summed(values: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of the rows of each group."""
    each = weights.expand(places.shape).contiguous()
    return functional.embedding_bag(places, values, mode="sum", per_sample_weights=each)


def _spread(values: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Return the adjoint of `_summed`."""
    spread = torch.zeros_like(values)
    for member, weight in zip(places.T, weights, strict=True):
        spread = spread.index_add(0, member, weight * values)
    return spread
