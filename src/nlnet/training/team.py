"""One process or many: sharing the crops, and summing losses and gradients."""

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from nlnet.denoising.devices import torch_device
from nlnet.errors import NLNetError
from nlnet.parallel import available_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")


class Team:
    """The processes that train together; a team of one needs no torch.distributed.

    Every process takes a shard of each batch. Losses and gradients are summed over all of them, so
    every optimizer takes the steps that one process would take. The processes are those that
    torchrun has started; use a team in a ``with`` block.

    Parameters
    ----------
    device : str
        Where to compute: "cpu", "cuda" (each process of a machine takes its own GPU), "mps".
    threads : int, optional
        Threads of this process; by default the machine's CPUs are shared by its processes.
    """

    def __init__(self, device: str = "cpu", threads: int | None = None) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = _find_device(device, int(os.environ.get("LOCAL_RANK", "0")))
        neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.threads = threads or max(1, available_cpus() // neighbours)

    def __enter__(self) -> "Team":
        # The engine has threads of its own, and what is left to torch is small. Torch's threads
        # wait for each other in busy loops: beside other work, a step would take many times as
        # long. And its sums depend on their number; with one, a run can be repeated to the bit.
        torch.set_num_threads(1)
        if self.size > 1:
            # Optimizers import this, and its default arguments would hold on to a process group
            # that exists by then; the group's threads abort the process at its end, now and then.
            importlib.import_module("torch.distributed.nn")
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            _reach_others(lambda: distributed.init_process_group(backend))
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        # After an error the others may be gone, and waiting for them would take long.
        if self.size > 1 and error is None:
            _reach_others(distributed.barrier)
            distributed.destroy_process_group()

    @property
    def is_rank_0(self) -> bool:
        """Whether this process writes files and speaks to the user."""
        return self.rank == 0

    def shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return this process's part of the items."""
        return items[self.rank :: self.size]

    def all_reduce(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Sum the loss and the parameters' gradients over the team, in one message."""
        if self.size == 1:
            return loss
        gradients = [each.grad for each in parameters if each.grad is not None]
        # In float64, as the loss is.
        message = torch.cat([loss.reshape(1).to(self.device), *(g.flatten() for g in gradients)])
        _reach_others(lambda: distributed.all_reduce(message))
        sizes = [gradient.numel() for gradient in gradients]
        parts: Sequence[Tensor] = torch.split(message[1:], sizes)
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.reshape(gradient.shape))
        return message[0].cpu()

    def sum(self, *values: float) -> Sequence[float]:
        """Return the sum of each of the values over the team."""
        if self.size == 1:
            return values
        message = torch.tensor(values, dtype=torch.float64, device=self.device)
        _reach_others(lambda: distributed.all_reduce(message))
        totals: list[float] = message.tolist()
        return totals

    def broadcast(self, make: Callable[[], Result]) -> Result:
        """Let rank 0 make something and give it to all; if it fails, all leave."""
        if self.size == 1:
            return make()
        parcel: list[Any] = [None, False]
        error: NLNetError | None = None
        if self.is_rank_0:
            try:
                parcel = [make(), True]
            except NLNetError as failure:
                error = failure
        _reach_others(lambda: distributed.broadcast_object_list(parcel, device=self.device))
        if error is not None:
            raise error
        if not parcel[1]:
            raise SystemExit(2)  # rank 0 has said why
        result: Result = parcel[0]
        return result


def _find_device(name: str, place: int) -> torch.device:
    device = torch_device(name)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", place)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def _reach_others(message: Callable[[], object]) -> None:
    try:
        message()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise NLNetError(
            f"Another process of the training cannot be reached, it may have died ({reason}); "
            "start all of them again with --resume."
        ) from error
