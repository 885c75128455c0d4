"""One process or many: who takes which crops, and how losses and gradients come together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, distributed


class Team:
    """The processes that train together; a team of one needs no torch.distributed.

    Every process takes a share of each batch. Losses and gradients are summed over all of them, so
    every optimiser takes the steps that one process would take.
    """

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = device
        if self.size > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks to the user."""
        return self.rank == 0

    def share(self, items: Sequence[int]) -> Sequence[int]:
        """Return this process's part of the items."""
        return items[self.rank :: self.size]

    def sum_gradients(self, loss: Tensor, parameters: Iterable[Tensor]) -> Tensor:
        """Sum the loss and all gradients over the team, in one message; return the loss."""
        if self.size == 1:
            return loss
        held = [parameter for parameter in parameters if parameter.requires_grad]
        parts = [loss.reshape(1)]
        for parameter in held:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parts.append(gradient.reshape(-1))
        message = torch.cat(parts)
        distributed.all_reduce(message)
        start = 1
        for parameter in held:
            part = message[start : start + parameter.numel()]
            parameter.grad = part.reshape(parameter.shape).clone()
            start += parameter.numel()
        return message[0]

    def any(self, flag: bool) -> bool:
        """Return whether any process of the team says yes."""
        if self.size == 1:
            return flag
        votes = torch.tensor(float(flag), device=self.device)
        distributed.all_reduce(votes)
        return bool(votes > 0)

    def mean(self, values: Sequence[float], count: int) -> float:
        """Return the mean of `count` values that are spread over the team."""
        total = torch.tensor(sum(values), dtype=torch.float64)
        if self.size > 1:
            total = total.to(self.device, torch.float32 if self.device.type == "mps" else None)
            distributed.all_reduce(total)
        return float(total) / count
