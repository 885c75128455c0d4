"""NLNet as an ``nn.Module``: the learned values, and the choice between engine and torch."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from nlnet.arrays import Box
from nlnet.errors import InputError
from nlnet.model.family import Family, place_of
from nlnet.model.model import Model
from nlnet.network import color
from nlnet.network.config import BOX, NetworkConfig
from nlnet.network.matching import find_groups
from nlnet.network.parameters import (
    StageParameters,
    check_parameters,
    dct_basis,
    half_from_odd,
    initial_parameters,
)
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement
from nlnet.torch import engine, plain, tiles
from nlnet.torch.plain import StageTensors
from nlnet.torch.refinement import RefinementNet, initial_refinement

Backend = Literal["auto", "engine", "plain"]


class NLNet(nn.Module):
    """The non-local network for batches of images on the 0-255 scale.

    On the CPU it runs through the same engine as :func:`nlnet.denoise`, with its hand-written
    backward pass; on any other device, and for second derivatives, in plain torch operations.

    Parameters
    ----------
    config : NetworkConfig
        The network's shape.
    *sets : sequence of StageParameters, optional
        Values of all stages to start from; by default those that training starts from. Several
        sets make a network whose values are functions of sigma.
    sigmas : sequence of float, optional
        The noise that each of several sets is for, ascending.
    refinement : Refinement, optional
        Values of the refinement, if the config has one: functions of sigma if the stages' are, and
        else for its own sigma; by default those that training starts from.
    box : (low, high) or None
        Intensities that the estimate is kept in; None for no constraint.
    backend : {"auto", "engine", "plain"}
        "auto" takes the engine on the CPU and torch operations elsewhere.
    threads : int, optional
        Threads of the engine; by default all CPUs the process may use.
    max_memory : int
        Bytes that torch operations may take beside planes and groups (about 70 bytes per pixel in
        color), where no gradients are wanted: images are worked on in tiles of that size.

    Examples
    --------
    >>> network = NLNet(NetworkConfig(stages=2))
    >>> noisy = 128 + 25 * torch.randn(1, 1, 32, 32)
    >>> network(noisy).shape
    torch.Size([1, 1, 32, 32])
    """

    def __init__(
        self,
        config: NetworkConfig,
        *sets: Sequence[StageParameters],
        sigmas: Sequence[float] = (),
        refinement: Refinement | None = None,
        box: Box | None = BOX,
        backend: Backend = "auto",
        threads: int | None = None,
        max_memory: int = tiles.DEFAULT_MEMORY,
    ) -> None:
        super().__init__()
        if not sets:
            sets = ([stage.astype(np.float32) for stage in initial_parameters(config)],)
        for stages in sets:
            check_parameters(stages, config)
        self.config = config
        self.sigmas = tuple(sigmas)
        self.box = box
        self.backend: Backend = backend
        self.threads = threads
        self.max_memory = max_memory
        self.stages = nn.ModuleList(
            NLNetStage(stage_sets, config) for stage_sets in zip(*sets, strict=True)
        )
        self.refinement: RefinementNet | None = None
        if config.refinement is not None:
            begun = refinement or initial_refinement(config.refinement, config.channels, seed=0)
            sigmas = self.sigmas or (begun.sigma,)
            self.refinement = RefinementNet(begun, (sigmas[0], sigmas[-1]))

    @classmethod
    def from_model(
        cls,
        model: Model | Family,
        *,
        box: Box | None = BOX,
        backend: Backend = "auto",
        threads: int | None = None,
    ) -> "NLNet":
        """Return the network with the weights of a loaded model, all of which can be trained.

        One for every sigma (`Family`) is given the noise with the images; any other is for images
        whose noise is the model's.
        """
        sets = ([stage.astype(np.float32) for stage in stages] for stages in model.sets)
        network = cls(model.config, *sets, sigmas=model.sigmas, refinement=model.refinement)
        network.box, network.backend, network.threads = box, backend, threads
        return network

    def forward(
        self, noisy: Tensor, groups: Tensor | None = None, sigma: float | None = None
    ) -> Tensor:
        """Denoise (B, C, H, W) images.

        `groups`, (B, H, W, K, 2) int8, if they are known; `sigma`, the noise of the images, for a
        network whose values are functions of it.
        """
        if noisy.ndim != 4 or noisy.shape[1] != self.config.channels:
            raise InputError(
                f"The batch has shape {tuple(noisy.shape)}, "
                f"but must be (B, {self.config.channels}, H, W)."
            )
        own = self.stages[0].mix.dtype
        if noisy.dtype != own or own not in (torch.float32, torch.float64):
            raise InputError(
                f"The batch is {noisy.dtype} and the network {own}, but both must be the same, "
                "float32 or float64: half precision would be too coarse for 0 to 255."
            )
        planes = self.to_working_planes(noisy)
        if groups is None:
            groups = self.find_groups(planes)
        estimate = self.run(planes, planes, groups, sigma=sigma)
        sigmas = None if sigma is None else noisy.new_full((len(noisy),), sigma)
        return self.from_working_planes(self.refine(estimate, planes, sigmas))

    def run(
        self,
        estimate: Tensor,
        noisy: Tensor,
        groups: Tensor,
        first: int = 0,
        last: int | None = None,
        *,
        project_last: bool = True,
        sigma: float | None = None,
    ) -> Tensor:
        """Run working planes through the stages from `first` up to, not including, `last`.

        The last stage's output is projected onto the box, as that of a whole network is, unless
        `project_last` is False and the network projects only at its end. A network whose values are
        functions of sigma works on planes whose noise is scaled to `REFERENCE_SIGMA`.
        """
        scale, place = 1.0, 0.0
        if self.sigmas:
            if sigma is None:
                raise InputError("sigma is missing: the network's values are functions of it.")
            scale, place = REFERENCE_SIGMA / sigma, place_of(sigma, self.sigmas)
        tensors = [stage.tensors(place) for stage in self.stages[first:last]]  # type: ignore[operator]
        box = self.box and (scale * self.box[0], scale * self.box[1])
        stages = plain.Stages(tensors, self.config, box, project_last)
        scaled = noisy if scale == 1 else scale * noisy
        begun = scaled if estimate is noisy else scale * estimate
        if self._uses_engine(noisy):
            run = engine.run_stages(begun, scaled, groups, stages, self.threads)
        elif self._wants_gradients(estimate, noisy):
            run = plain.run_stages(begun, scaled, groups, stages)
        else:
            run = tiles.run_stages(begun, scaled, groups, stages, self.max_memory)
        return run if scale == 1 else run / scale

    def refine(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None) -> Tensor:
        """Return working planes after the refinement, if there is one.

        `sigmas`, (B,), is the noise of each image, for values that are functions of it.
        """
        if self.refinement is None:
            return estimate
        if self._wants_gradients(estimate, noisy):
            refined: Tensor = self.refinement(estimate, noisy, sigmas)
        else:
            refined = tiles.refine(self.refinement, estimate, noisy, sigmas, self.max_memory)
        return refined if self.box is None else plain.project(refined, self.box)

    def _wants_gradients(self, *planes: Tensor) -> bool:
        """Tell whether autograd records what is done with these planes."""
        recorded = (tensor.requires_grad for tensor in (*planes, *self.parameters()))
        return torch.is_grad_enabled() and any(recorded)

    def find_groups(self, planes: Tensor) -> Tensor:
        """Match the patches of the working planes' first channel: (B, H, W, K, 2) int8."""
        images = planes[:, 0].detach()
        if not self._uses_engine(planes):
            return tiles.find_groups(images, self.config, self.max_memory)
        return torch.from_numpy(find_groups(images.numpy(), self.config, self.threads))

    def to_working_planes(self, images: Tensor) -> Tensor:
        """From gray or RGB images to the planes the stages work on."""
        return images if self.config.channels == 1 else plain.transform(images, color.OPPONENT)

    def from_working_planes(self, planes: Tensor) -> Tensor:
        """From the planes the stages work on back to gray or RGB images."""
        return planes if self.config.channels == 1 else plain.transform(planes, color.RGB)

    def export(self) -> tuple[tuple[StageParameters, ...], ...]:
        """Return the present values of all stages as plain float32 arrays, one tuple per set."""
        return tuple(
            tuple(stage.export(place) for stage in self.stages)  # type: ignore[operator]
            for place in range(max(1, len(self.sigmas)))
        )

    def _uses_engine(self, like: Tensor) -> bool:
        return self.backend == "engine" or (self.backend == "auto" and like.device.type == "cpu")


class NLNetStage(nn.Module):
    """The learned values of one stage, in the form in which they are free to move.

    The filters are mixtures of DCT atoms with normalised rows, so they keep zero mean and unit
    norm; of odd mixtures only half of the coefficients exist. There may be several sets of values,
    one for each of some sigmas.

    Parameters
    ----------
    sets : sequence of StageParameters
        Values to start from, one or more.
    config : NetworkConfig
        The network's shape.
    """

    def __init__(self, sets: Sequence[StageParameters], config: NetworkConfig) -> None:
        super().__init__()
        self._config = config
        dct = dct_basis(config.patch_size).astype(sets[0].filters.dtype)
        coefficients = np.stack([each.coefficients for each in sets])
        if config.odd:
            coefficients = half_from_odd(coefficients)
        self.mix = nn.Parameter(torch.tensor(np.stack([each.filters @ dct.T for each in sets])))
        self.group_weights = nn.Parameter(torch.tensor(np.stack([s.group_weights for s in sets])))
        self.coefficients = nn.Parameter(torch.tensor(coefficients))
        self.step_size = nn.Parameter(
            torch.tensor([each.step_size for each in sets], dtype=self.mix.dtype)
        )
        self.dct: Tensor
        self.register_buffer("dct", torch.tensor(dct), persistent=False)

    def tensors(self, place: float = 0.0) -> StageTensors:
        """Return the filters, weights, all coefficients and the step size, differentiably.

        `place` counts the sets from 0; between two of them, the values are interpolated, and the
        filters brought back to unit norm.
        """
        filters = _normalized(_between(_normalized(self.mix), place)) @ self.dct
        coefficients = _between(self.coefficients, place)
        if self._config.odd:
            middle = coefficients.new_zeros(*coefficients.shape[:-1], self._config.rbf_count % 2)
            coefficients = torch.cat([coefficients, middle, -coefficients.flip(-1)], dim=-1)
        weights, step_size = (_between(t, place) for t in (self.group_weights, self.step_size))
        return StageTensors(filters, weights, coefficients, step_size)

    def export(self, place: float = 0.0) -> StageParameters:
        """Return the present values as plain float32 arrays."""
        with torch.no_grad():
            return self.tensors(place).export().astype(np.float32)


def _normalized(mix: Tensor) -> Tensor:
    return nn.functional.normalize(mix, dim=-1)


def _between(sets: Tensor, place: float) -> Tensor:
    """Return the set at this place, or a mean of the two around it."""
    lower = min(int(place), len(sets) - 1)
    share = place - lower
    return sets[lower] if share == 0 else torch.lerp(sets[lower], sets[lower + 1], share)
