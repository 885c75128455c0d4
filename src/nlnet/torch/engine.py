"""The engine as an autograd function: a run of stages forward, Appendix A backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlnet.arrays import Box
from nlnet.engine import tasks
from nlnet.engine.memory import Workspace
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters
from nlnet.network.prepared import make_network
from nlnet.torch.plain import StageTensors


def run_stages(
    estimate: Tensor,
    noisy: Tensor,
    groups: Tensor,
    stages: Sequence[StageTensors],
    config: NetworkConfig,
    box: Box | None,
    *,
    project_last: bool = True,
    threads: int | None = None,
    workspace: Workspace | None = None,
) -> Tensor:
    """Run (B, C, H, W) working planes on the CPU through consecutive stages.

    Where the config does not say so of every stage, `project_last` projects the last of these.
    """
    flat = [tensor for stage in stages for tensor in stage]
    options = {
        "box": box,
        "project_last": project_last,
        "threads": threads,
        "workspace": workspace,
    }
    run: Tensor = _RunStages.apply(  # type: ignore[no-untyped-call]
        config, options, groups, estimate, noisy, *flat
    )
    return run


class _RunStages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        config: NetworkConfig,
        options: dict[str, Any],
        groups: Tensor,
        estimate: Tensor,
        noisy: Tensor,
        *flat: Tensor,
    ) -> Tensor:
        stages = [
            StageParameters(
                filters.detach().numpy(),
                weights.detach().numpy(),
                coefficients.detach().numpy(),
                step_size.item(),
            )
            for filters, weights, coefficients, step_size in zip(*[iter(flat)] * 4, strict=True)
        ]
        # Saved only so that torch notices if they are changed before the backward pass.
        ctx.save_for_backward(estimate, noisy)
        ctx.workspace = options["workspace"]
        ctx.run = tasks.forward(
            make_network(config, stages),
            estimate.detach().contiguous().numpy(),
            noisy.detach().contiguous().numpy(),
            groups.contiguous().numpy(),
            **options,
        )
        # A copy, because the caller may change the result before the backward pass.
        return torch.from_numpy(ctx.run.estimates[-1].copy())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        assert len(ctx.saved_tensors) == 2
        gradients = tasks.backward(ctx.run, cotangents[0].contiguous().numpy(), ctx.workspace)
        dtype = cotangents[0].dtype
        parts = [
            torch.from_numpy(part).to(dtype)
            for part in (
                gradients.filters,
                gradients.group_weights,
                gradients.coefficients,
                gradients.step_sizes,
            )
        ]
        flat = [part[number] for number in range(len(parts[0])) for part in parts]
        images = (torch.from_numpy(gradients.estimate), torch.from_numpy(gradients.noisy))
        return (None, None, None, *images, *flat)
