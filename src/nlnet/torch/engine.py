"""The engine as an autograd function: a run of stages forward, Appendix A backward."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nlnet.engine import tasks
from nlnet.network.block import make_network
from nlnet.torch import plain
from nlnet.torch.plain import Stages, StageTensors


def run_stages(
    estimate: Tensor, noisy: Tensor, groups: Tensor, stages: Stages, threads: int | None = None
) -> Tensor:
    """Run (B, C, H, W) working planes on the CPU through consecutive stages."""
    flat = [tensor for stage in stages.tensors for tensor in stage]
    given = (stages, threads, groups, estimate, noisy, *flat)
    run: Tensor = _RunStages.apply(*given)  # type: ignore[no-untyped-call]
    return run


class _RunStages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        stages: Stages,
        threads: int | None,
        groups: Tensor,
        estimate: Tensor,
        noisy: Tensor,
        *flat: Tensor,
    ) -> Tensor:
        # Torch notices if they are changed before the backward pass.
        ctx.save_for_backward(estimate, noisy, *flat)
        ctx.stages, ctx.groups = stages._replace(tensors=()), groups
        ctx.run = tasks.Run(
            make_network(stages.config, [stage.export() for stage in _stages_of(flat)]),
            estimate.detach().contiguous().numpy(),
            noisy.detach().contiguous().numpy(),
            groups.contiguous().numpy(),
            box=stages.box,
            project_last=stages.project_last,
            threads=threads,
        )
        # A copy, because the caller may change the result before the backward pass.
        return torch.from_numpy(ctx.run.estimates[-1].copy())

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (None, None, None, *_differentiable_gradients(ctx, saved, cotangents[0]))
        gradients = tasks.backward(ctx.run, cotangents[0].contiguous().numpy())
        dtype = cotangents[0].dtype
        parts = [torch.from_numpy(part).to(dtype) for part in gradients[:4]]
        flat = [part[number] for number in range(len(parts[0])) for part in parts]
        images = (torch.from_numpy(gradients.estimate), torch.from_numpy(gradients.noisy))
        return (None, None, None, *images, *flat)


def _stages_of(flat: Sequence[Tensor]) -> list[StageTensors]:
    return [StageTensors(*flat[first : first + 4]) for first in range(0, len(flat), 4)]


def _differentiable_gradients(
    ctx: Any, inputs: Sequence[Tensor], cotangent: Tensor
) -> Sequence[Tensor | None]:
    """Return the gradients as functions that can be differentiated again (``create_graph=True``).

    The engine has no second derivatives: the stages run once more, in plain torch operations.
    """
    # The same tensor may be both estimate and noisy image; its views are two.
    estimate, noisy, *flat = views = [tensor.view_as(tensor) for tensor in inputs]
    stages = ctx.stages._replace(tensors=_stages_of(flat))
    result = plain.run_stages(estimate, noisy, ctx.groups, stages)
    wanted = [view for view in views if view.requires_grad]
    found = iter(
        torch.autograd.grad(result, wanted, cotangent, create_graph=True, allow_unused=True)
    )
    return [next(found) if view.requires_grad else None for view in views]
