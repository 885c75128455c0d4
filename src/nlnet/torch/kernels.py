"""The kernels as an autograd function: a run of stages forward, Appendix A backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlnet.network.config import NetworkConfig
from nlnet.network.parallel import Workers
from nlnet.network.parameters import StageParameters
from nlnet.network.projection import Box
from nlnet.network.recursion import StageRun
from nlnet.network.stage import Stage
from nlnet.torch.plain import StageTensors


def run_stages(
    estimate: Tensor,
    noisy: Tensor,
    groups: Tensor,
    stages: Sequence[StageTensors],
    config: NetworkConfig,
    box: Box | None,
    *,
    threads: int | None = None,
    exact: bool = False,
) -> Tensor:
    """Run (B, C, H, W) working planes on the CPU through consecutive stages."""
    flat = [tensor for stage in stages for tensor in stage]
    run: Tensor = _RunStages.apply(  # type: ignore[no-untyped-call]
        config, box, threads, exact, groups, estimate, noisy, *flat
    )
    return run


class _RunStages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        config: NetworkConfig,
        box: Box | None,
        threads: int | None,
        exact: bool,
        groups: Tensor,
        estimate: Tensor,
        noisy: Tensor,
        *flat: Tensor,
    ) -> Tensor:
        stages = [
            Stage(
                StageParameters(
                    filters.detach().numpy(),
                    weights.detach().numpy(),
                    coefficients.detach().contiguous().numpy(),
                    step_size.item(),
                ),
                config,
                exact=exact,
            )
            for filters, weights, coefficients, step_size in zip(*[iter(flat)] * 4, strict=True)
        ]
        ctx.run = StageRun(stages, box, project_every_stage=config.project_every_stage)
        ctx.threads = threads
        ctx.groups = groups.numpy()
        # Saved only so that torch notices if they are changed before the backward pass.
        ctx.save_for_backward(estimate, noisy)
        ctx.noisy = noisy.detach().contiguous().numpy()
        ctx.tape = []
        with Workers(threads) as workers:
            result = ctx.run.forward(
                estimate.detach().contiguous().numpy(),
                ctx.noisy,
                ctx.groups,
                workers,
                tape=ctx.tape,
            )
        return torch.from_numpy(result)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        assert len(ctx.saved_tensors) == 2
        with Workers(ctx.threads) as workers:
            gradients, estimate, noisy = ctx.run.backward(
                cotangents[0].contiguous().numpy(), ctx.noisy, ctx.groups, workers, ctx.tape
            )
        flat = [
            tensor
            for gradient in gradients
            for tensor in (
                torch.from_numpy(gradient.filters),
                torch.from_numpy(gradient.group_weights),
                torch.from_numpy(gradient.coefficients),
                cotangents[0].new_tensor(gradient.step_size),
            )
        ]
        return (
            None,
            None,
            None,
            None,
            None,
            torch.from_numpy(estimate),
            torch.from_numpy(noisy),
            *flat,
        )
