"""Turning parameters, or their gradients, into one vector and back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of all values in a row."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def flatten_gradients(parameters: Sequence[Tensor]) -> Tensor:
    """Return a copy of all gradients in a row, zeros where a parameter has none."""
    return flatten([p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters])


def set_gradients(parameters: Sequence[Tensor], values: Tensor) -> None:
    """Set all gradients from a row of values."""
    start = 0
    for parameter in parameters:
        part = values[start : start + parameter.numel()]
        parameter.grad = part.reshape(parameter.shape).to(parameter.dtype, copy=True)
        start += parameter.numel()
