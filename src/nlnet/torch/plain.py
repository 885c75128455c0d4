"""The network in plain torch operations: any device, autograd, and no copy to the host.

The recursion is that of :mod:`nlnet.network`, in the order of the paper's Fig. 3:
convolve with the filters, gather and sum the group's features, psi, and the transposes of these in
reverse.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from nlnet.arrays import Box, FloatArray
from nlnet.network import color, potentials
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import check_size
from nlnet.network.parameters import StageParameters


class StageTensors(NamedTuple):
    """A stage's parameters: (P-1, P), (K,), (C, P-1, M), scalar."""

    filters: Tensor
    group_weights: Tensor
    coefficients: Tensor
    step_size: Tensor

    def export(self) -> StageParameters:
        """Return them as plain arrays on the CPU."""
        filters, weights, coefficients = (tensor.detach().cpu().numpy() for tensor in self[:3])
        return StageParameters(filters, weights, coefficients, self.step_size.item())


class Stages(NamedTuple):
    """Consecutive stages of a network, and the box that they project onto."""

    tensors: Sequence[StageTensors]
    config: NetworkConfig
    box: Box | None
    project_last: bool = True
    """Whether the last of them projects, where the config does not say so of every stage."""


def run_stages(estimate: Tensor, noisy: Tensor, groups: Tensor, stages: Stages) -> Tensor:
    """Run (B, C, H, W) working planes through consecutive stages, as the engine does."""
    config, members = stages.config, flat_members(groups)
    for number, parameters in enumerate(stages.tensors, start=1):
        estimate = stage(estimate, noisy, members, parameters, config)
        last = number == len(stages.tensors) and stages.project_last
        if stages.box and (config.project_every_stage or last):
            estimate = project(estimate, stages.box)
    return estimate


def stage(
    estimate: Tensor,
    noisy: Tensor,
    members: Tensor,
    parameters: StageTensors,
    config: NetworkConfig,
) -> Tensor:
    """Return u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x) for (B, C, H, W) planes.

    `members` are the groups as flat pixel indices, (B, K, H * W), from :func:`flat_members`.
    """
    filters, weights, coefficients, step_size = parameters
    features = analysis(estimate, filters, weights, members)
    responses = psi(features, coefficients, config)
    regularizer = synthesis(responses, filters, weights, members, estimate.shape)
    return (1 - step_size) * estimate + step_size * noisy - regularizer  # Eq. (24)


def analysis(image: Tensor, filters: Tensor, weights: Tensor, members: Tensor) -> Tensor:
    """L: filter the patches, and sum each group's features with its weights, (B, C, F, H * W)."""
    batch, channels, height, width = image.shape
    size = int(filters.shape[1] ** 0.5)
    padded = pad(image, size // 2)
    kernel = filters.reshape(-1, 1, size, size)
    features = functional.conv2d(padded.reshape(batch * channels, 1, *padded.shape[2:]), kernel)
    features = features.reshape(batch, channels, -1, height * width)
    total = torch.zeros_like(features)
    for k in range(weights.shape[0]):
        place = members[:, k].reshape(batch, 1, 1, -1).expand(features.shape)
        total = total + weights[k] * torch.gather(features, -1, place)  # Eq. (11)
    return total


def synthesis(
    features: Tensor, filters: Tensor, weights: Tensor, members: Tensor, shape: torch.Size
) -> Tensor:
    """L^T: the exact adjoint of :func:`analysis`, giving (B, C, H, W)."""
    batch, channels, height, width = shape
    size = int(filters.shape[1] ** 0.5)
    ungrouped = torch.zeros_like(features)
    for k in range(weights.shape[0]):
        place = members[:, k].reshape(batch, 1, 1, -1).expand(features.shape)
        ungrouped = ungrouped.scatter_add(-1, place, weights[k] * features)  # Eq. (13)
    planes = ungrouped.reshape(batch * channels, -1, height, width)
    padded = functional.conv_transpose2d(planes, filters.reshape(-1, 1, size, size))
    padded = padded.reshape(batch, channels, *padded.shape[2:])
    rows, columns = mirrored(height, size // 2, features), mirrored(width, size // 2, features)
    folded = padded.new_zeros(batch, channels, height, padded.shape[-1])
    folded = folded.index_add(-2, rows, padded)
    return folded.new_zeros(tuple(shape)).index_add(-1, columns, folded)


def project(planes: Tensor, box: tuple[float, float]) -> Tensor:
    """P_C: clip the intensities to the box, which for color is one of RGB values."""
    if planes.shape[1] == 1:
        return planes.clamp(*box)
    return transform(transform(planes, color.RGB).clamp(*box), color.OPPONENT)


def transform(planes: Tensor, matrix: FloatArray) -> Tensor:
    """Multiply the channels of (B, 3, H, W) planes by a 3x3 matrix."""
    factors = torch.as_tensor(matrix, dtype=planes.dtype, device=planes.device)
    return torch.einsum("ij,bjhw->bihw", factors, planes)


def flat_members(groups: Tensor) -> Tensor:
    """From offsets, (B, H, W, K, 2), to flat pixel indices, (B, K, H * W).

    Of a part of an image, members beyond its edge are brought back to the edge.
    """
    batch, height, width, count, _ = groups.shape
    wide = groups.to(torch.int64)
    rows = torch.arange(height, device=groups.device).reshape(1, -1, 1, 1) + wide[..., 0]
    columns = torch.arange(width, device=groups.device).reshape(1, 1, -1, 1) + wide[..., 1]
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    return (rows * width + columns).reshape(batch, height * width, count).transpose(1, 2)


def find_groups(image: Tensor, config: NetworkConfig) -> Tensor:
    """Block matching of (B, H, W) images in torch operations: (B, H, W, K, 2) int8 offsets.

    A candidate's distance and its offset's rank make one integer, so that one comparison orders by
    both, as the engine's does. One row of the window at a time, to keep memory small.
    """
    batch, height, width = image.shape
    check_size(height, width, config)
    radius, size = config.window // 2, config.patch_size
    padded = pad(image.float(), size // 2)
    edge = (radius,) * 4
    around = functional.pad(padded, edge)
    inside = functional.pad(torch.ones_like(image), edge) > 0
    offsets = torch.tensor(_ranked_offsets(config.window), device=image.device)
    ranks = torch.empty(config.window**2, dtype=torch.int64, device=image.device)
    ranks[(offsets[:, 0] + radius) * config.window + offsets[:, 1] + radius] = torch.arange(
        config.window**2, device=image.device
    )
    best = image.new_empty((batch, 0, height, width), dtype=torch.int64)
    far = torch.finfo(torch.float32).max
    for dy in range(config.window):
        candidates = [best]
        for dx in range(config.window):
            if (dy, dx) == (radius, radius):
                continue
            there = around[:, dy : dy + padded.shape[1], dx : dx + padded.shape[2]]
            squares = (padded - there) ** 2
            line = sum(squares[:, :, tap : tap + width] for tap in range(size))
            assert isinstance(line, Tensor)
            distance = sum(line[:, tap : tap + height] for tap in range(size))
            assert isinstance(distance, Tensor)
            valid = inside[:, dy : dy + height, dx : dx + width]
            # Where there is no patch, or none at a finite distance, the pixel itself stands in.
            valid = valid & (distance < far)
            bits = torch.where(valid, distance, far).view(torch.int32).to(torch.int64)
            rank = torch.where(valid, ranks[dy * config.window + dx], 0)
            candidates.append(((bits << 20) + rank).unsqueeze(1))
        keys = torch.cat(candidates, dim=1)
        count = min(config.group_size - 1, keys.shape[1])
        best = keys.topk(count, dim=1, largest=False, sorted=True).values
    itself = best.new_zeros(batch, 1, height, width)
    members = torch.cat([itself, best & 0xFFFFF], dim=1)
    return offsets[members.movedim(1, -1)].to(torch.int8)


# An array, not a tensor: one that is made during an export or in inference mode is of no use after.
@functools.lru_cache(maxsize=8)
def _ranked_offsets(window: int) -> npt.NDArray[np.int64]:
    """All offsets of a window: by length, then row by row."""
    span = range(-(window // 2), window // 2 + 1)
    ranked = sorted(((dy, dx) for dy in span for dx in span), key=lambda o: o[0] ** 2 + o[1] ** 2)
    return np.array(ranked)


def pad(
    planes: Tensor, before: int, behind: tuple[int | None, int | None] = (None, None)
) -> Tensor:
    """Return (..., H, W) planes with mirrored edges; parameters as for :func:`mirrored`."""
    rows, columns = (
        mirrored(planes.shape[axis], before, planes, behind[axis]) for axis in (-2, -1)
    )
    return planes.index_select(-2, rows).index_select(-1, columns)


def mirrored(length: int, before: int, like: Tensor, behind: int | None = None) -> Tensor:
    """Return the indices of a line with symmetric ends: 1 0 | 0 1 2 ... n-1 | n-1 n-2.

    There are `before` more at its beginning, and as many `behind` it, unless that is given. Where a
    line is shorter than what is wanted behind it, its first pixel is taken for the rest.
    """
    end = length + (before if behind is None else behind)
    place = torch.arange(-before, end, device=like.device)
    place = torch.where(place < 0, -1 - place, place)
    return torch.where(place >= length, 2 * length - 1 - place, place).clamp(min=0)


def psi(features: Tensor, coefficients: Tensor, config: NetworkConfig) -> Tensor:
    """Psi of every filter, Eq. (14), by the same table of cubics as the engine's.

    `features` are (B, C, F, n), and `coefficients` (C, F, M).
    """
    table = potentials.cubic_basis(config).T  # (M, intervals * 4)
    basis = torch.tensor(table, dtype=features.dtype, device=features.device)
    intervals = potentials.table_intervals(config)
    cubics = (coefficients @ basis).reshape(*coefficients.shape[:2], intervals, 4)
    position = (features + config.rbf_range) / potentials.table_step(config)
    position = position.clamp(0, intervals)
    interval = position.detach().long().clamp(max=intervals - 1)
    t = position - interval
    value = torch.zeros_like(t)
    for power in (3, 2, 1, 0):
        factors = cubics[..., power].expand(*features.shape[:3], intervals)
        value = value * t + torch.gather(factors, -1, interval)
    return value
