"""Stages with ingredients beyond the paper, in plain torch: what `benchmarks.ablation` compares.

All compute ``sum_r P_r^T F^T g_r t_r`` with the features t = F P_r x of each patch, or, with
`sums`, of its group: what a stage of the paper removes. They differ in what the gain g of a
filter's feature depends on: on the feature alone (`Pointwise`: psi(t) = g(|t|) t), or on the
energies of all features, of the patch itself, averaged over its group, or at half the size
(`Gated`).
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

    energies: tuple[str, ...] = ()  # what gains depend on, of `Gated.energies`; () for psi
    hidden: int = 48  # units between energies and gains; 0: each filter by itself
    sums: bool = False  # weighted sums over the group, and spread to it
    patch_size: int = 5
    group_size: int = 8
    frames: int = 1  # sets of filters, each as many as the pixels of a patch but one
    distances: bool = False  # members of a group count less if they are less alike
    sparsity: bool = False  # patches of which less is kept count more where patches overlap
    stages: int = 1
    channels: int = 1
    across: bool = False  # filters see all channels, not one each


class Stage(nn.Module):
    """What all stages have in common."""

    def __init__(self, made_of: Ingredients) -> None:
        super().__init__()
        self.made_of = made_of
        basis = torch.tensor(dct_basis(made_of.patch_size), dtype=torch.float32)
        if made_of.across:
            basis = torch.block_diag(*[basis] * made_of.channels)
        self.basis: Tensor
        self.register_buffer("basis", basis)
        turned = torch.linalg.qr(torch.randn(made_of.frames - 1, len(basis), len(basis))).Q
        self.mix = nn.Parameter(torch.cat([torch.eye(len(basis)), *turned]))
        if made_of.sums:
            weights = torch.zeros(made_of.group_size)
            weights[0] = 1.0
            self.group_weights = nn.Parameter(weights)
        if made_of.sparsity:
            self.preference = nn.Parameter(torch.tensor(1.0))

    @property
    def filter_count(self) -> int:
        """Number of features of a patch."""
        return len(self.mix) * (1 if self.made_of.across else self.made_of.channels)

    def filters(self) -> Tensor:
        """Return filters of unit norm, (F, C, size, size)."""
        rows = functional.normalize(self.mix, dim=1) @ self.basis
        if not self.made_of.across:
            rows = torch.block_diag(*[rows] * self.made_of.channels)
        size = self.made_of.patch_size
        return rows.reshape(-1, self.made_of.channels, size, size)

    def forward(self, image: Tensor, members: Tensor) -> Tensor:
        """Return what is removed from (B, C, H, W) images."""
        size = self.made_of.patch_size
        batch, _, height, width = image.shape
        kernel = self.filters()
        padded = functional.pad(image, (size // 2,) * 4, mode="reflect")
        features = _in_rows(functional.conv2d(padded, kernel))  # (B H W, F)
        places = _rows_of(members)
        if self.made_of.sums:
            features = _summed(features, places, self.group_weights)
        coarse = _coarse(padded, kernel) if "half" in self.made_of.energies else None
        gains = self.gains(features, places, coarse)
        # A pixel is in size**2 patches.
        removed = gains * features / (size**2 * self.made_of.frames)
        if self.made_of.sums:
            removed = _spread(removed, places, self.group_weights)
        share = None
        if self.made_of.sparsity:
            kept = (1 - gains).square().mean(dim=1, keepdim=True)
            share = torch.exp(-self.preference * kept)
            removed = share * removed
        planes = removed.reshape(batch, height, width, -1).movedim(-1, 1)
        change = functional.conv_transpose2d(planes, kernel, padding=size // 2)
        if share is not None:
            shares = share.reshape(batch, 1, height, width)
            ones = torch.ones(1, 1, size, size)
            change = change * size**2 / functional.conv_transpose2d(shares, ones, padding=size // 2)
        return change

    def gains(self, features: Tensor, places: Tensor, coarse: Tensor | None) -> Tensor:
        """Return how much of each feature is removed."""
        raise NotImplementedError


class Pointwise(Stage):
    """The paper's psi: a function of one feature, as straight lines between nodes."""

    def __init__(self, made_of: Ingredients) -> None:
        super().__init__(made_of)
        at = torch.linspace(0, _LARGEST, _NODES)
        start = 0.5 * torch.exp(-0.5 * (at / 45) ** 2)
        self.table = nn.Parameter(start.repeat(self.filter_count, 1))

    def gains(self, features: Tensor, places: Tensor, coarse: Tensor | None) -> Tensor:
        """Look them up."""
        gains: Tensor = _Lookup.apply(self.table, features.abs() * ((_NODES - 1) / _LARGEST))
        return gains


class Gated(Stage):
    """Gains from the logarithms of energies, mixed by one layer of hidden units."""

    def __init__(self, made_of: Ingredients) -> None:
        super().__init__(made_of)
        filters, hidden = self.filter_count, made_of.hidden
        inputs = filters * len(made_of.energies)
        self.direct = nn.Parameter(-0.5 * torch.eye(filters).repeat(1, len(made_of.energies)))
        self.offset = nn.Parameter(torch.zeros(filters))
        self.scale = nn.Parameter(torch.full((filters,), 0.8 / made_of.stages))
        self.low = nn.Parameter(torch.zeros(filters))
        self.member_weights = nn.Parameter(torch.zeros(made_of.group_size))
        if "nearest" in made_of.energies:
            self.nearest_weights = nn.Parameter(-torch.arange(made_of.group_size).float())
        if made_of.distances:
            self.strictness = nn.Parameter(torch.tensor(0.5))
        if hidden:
            self.inner = nn.Linear(inputs, hidden)
            self.outer = nn.Linear(hidden, filters, bias=False)
            nn.init.uniform_(self.outer.weight, -0.3 / hidden**0.5, 0.3 / hidden**0.5)

    def gains(self, features: Tensor, places: Tensor, coarse: Tensor | None) -> Tensor:
        """Mix the energies."""
        known = self.energies(features, places, coarse)
        logs = [torch.log(known[kind] + _FLOOR) for kind in self.made_of.energies]
        seen = torch.cat(logs, dim=1)
        if self.made_of.hidden:
            score = self.outer(self.inner(seen).relu()) + seen @ self.direct.T
        else:
            score = seen * self.direct.diagonal()
        return ((score + self.offset).sigmoid() - self.low) * self.scale

    def energies(
        self, features: Tensor, places: Tensor, coarse: Tensor | None
    ) -> dict[str, Tensor]:
        """Return those that are asked for, in that of the noise.

        "own": of the patch. "group": averaged over its group. "nearest": again, with other weights,
        which begin with the members most alike. "half": of the patch at half the size.
        """
        own = features.square() / SIGMA**2
        known = {"own": own}
        if coarse is not None:
            known["half"] = coarse.square() / (SIGMA / 2) ** 2
        if "group" in self.made_of.energies:
            scores = self.member_weights.expand(places.shape)
            if self.made_of.distances:
                apart = (features[places] - features[:, None]).square().mean(dim=2) / SIGMA**2
                scores = scores - self.strictness * apart
            known["group"] = _summed(own, places, scores.softmax(1))
        if "nearest" in self.made_of.energies:
            known["nearest"] = _summed(own, places, self.nearest_weights.softmax(0))
        return known


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


def _in_rows(planes: Tensor) -> Tensor:
    """From (B, F, H, W) to (B H W, F)."""
    return planes.movedim(1, -1).reshape(-1, planes.shape[1])


def _coarse(padded: Tensor, kernel: Tensor) -> Tensor:
    """Return features at half the size, (B H W, F): each serves four pixels."""
    margin = kernel.shape[-1] // 2
    height, width = (side - 2 * margin for side in padded.shape[-2:])
    image = padded[..., margin : margin + height, margin : margin + width]
    half = functional.avg_pool2d(image, 2, ceil_mode=True)
    features = functional.conv2d(functional.pad(half, (margin,) * 4, mode="reflect"), kernel)
    larger = features.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    return _in_rows(larger[..., :height, :width])


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
