"""The refinement in torch operations: for training, for gradients and for other devices.

`nlnet.network.refinement` says what it is; the engine has the same layers in
``engine/src/convolutions``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from nlnet.network.refinement import (
    CENTER,
    REFERENCE_SIGMA,
    Refinement,
    RefinementConfig,
    RefinementFunctions,
    blank,
    scales_at,
)
from nlnet.torch.plain import mirrored


class LayerTensors(NamedTuple):
    """Weights of a convolution, and its biases for every image or for all of them."""

    weights: Tensor  # (outputs, inputs, rows, columns)
    biases: Tensor  # (B or 1, outputs)


class RefinementTensors(NamedTuple):
    """All values of a refinement; those that depend on the noise are (B or 1, 1, 1, 1)."""

    step_size: Tensor
    image_scale: Tensor
    change_scale: Tensor
    layers: Sequence[LayerTensors]
    """In the order of `RefinementConfig.layers`."""


def refine(
    estimate: Tensor,
    noisy: Tensor,
    values: RefinementTensors,
    config: RefinementConfig,
    *,
    center: Tensor,
    bfloat16: bool = False,
) -> Tensor:
    """Return (1 - gamma) x + gamma y - R(x, y) for (B, C, H, W) working planes.

    `center`, (B or 1, C, 1, 1), is what is subtracted from all planes before the first layer. With
    `bfloat16`, the layers compute in that type.
    """
    height, width = noisy.shape[-2:]
    rows = mirrored(height, 0, -height % config.unit, noisy)
    columns = mirrored(width, 0, -width % config.unit, noisy)
    planes = torch.cat([estimate - center, noisy - center], dim=1) * values.image_scale
    planes = planes.index_select(-2, rows).index_select(-1, columns)
    with torch.autocast(noisy.device.type, torch.bfloat16, enabled=bfloat16):
        change = _run_layers(functional.pixel_unshuffle(planes, 2), values.layers, config)
    change = functional.pixel_shuffle(change, 2)[..., :height, :width].to(noisy.dtype)
    step_size = values.step_size
    return (1 - step_size) * estimate + step_size * noisy - values.change_scale * change


def _run_layers(planes: Tensor, layers: Sequence[LayerTensors], config: RefinementConfig) -> Tensor:
    following = iter(layers)

    def convolve(planes: Tensor, stride: int = 1) -> Tensor:
        weights, biases = next(following)
        padding = weights.shape[-1] // 2 if stride == 1 else 0
        if len(biases) == 1:
            return functional.conv2d(planes, weights, biases[0], stride, padding)
        result = functional.conv2d(planes, weights, None, stride, padding)
        return result + biases.to(result.dtype)[:, :, None, None]

    def run_blocks(planes: Tensor, count: int) -> Tensor:
        for _ in range(count):
            planes = planes + convolve(functional.relu(convolve(planes)))
        return planes

    # Convolutions are several times as fast if all channels of a pixel are next to each other.
    planes = convolve(planes.contiguous(memory_format=torch.channels_last))
    ends: list[Tensor] = []
    for count in config.down:
        ends.append(run_blocks(convolve(planes, stride=2) if ends else planes, count))
        planes = ends[-1]
    for end, count in zip(ends[-2::-1], config.up[::-1], strict=True):
        larger = functional.pixel_shuffle(convolve(planes), 2)
        planes = run_blocks(end + larger, count)
    return convolve(functional.relu(planes))


def _center(channels: int, gray: float, like: Tensor) -> Tensor:
    """Return what is subtracted from working planes: a gray, and nothing from the colors."""
    return like.new_tensor([gray, 0, 0][:channels]).reshape(1, channels, 1, 1)


class FixedRefinement(nn.Module):
    """A refinement for noise of one strength, in images whose noise is `REFERENCE_SIGMA`."""

    def __init__(self, refinement: Refinement) -> None:
        super().__init__()
        self.config, self.channels = refinement.config, refinement.channels
        self._center = refinement.center
        self.step_size = nn.Parameter(torch.tensor(refinement.step_size, dtype=torch.float32))
        self.weights, self.biases = (
            nn.ParameterList(torch.tensor(array) for array in arrays)
            for arrays in zip(*refinement.layers, strict=True)
        )

    def forward(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None = None) -> Tensor:
        """Refine working planes whose noise is `REFERENCE_SIGMA`."""
        pairs = zip(self.weights, self.biases, strict=True)
        layers = [LayerTensors(weights, biases[None]) for weights, biases in pairs]
        one = noisy.new_ones(())
        values = RefinementTensors(self.step_size, one, one, layers)
        center = _center(self.channels, self._center, noisy)
        return refine(estimate, noisy, values, self.config, center=center)


class RefinementNet(nn.Module):
    """A refinement whose values are learned, as functions of sigma.

    Parameters
    ----------
    functions : RefinementFunctions
        Values to start from.
    limits : (float, float)
        Sigmas between which they are functions of sigma. Images with less or more noise are scaled,
        and their noise becomes the nearer of the two.

    Attributes
    ----------
    in_bfloat16 : bool
        Whether its layers compute in bfloat16.
    """

    def __init__(
        self, functions: RefinementFunctions, limits: tuple[float, float] = (0.0, math.inf)
    ) -> None:
        super().__init__()
        self.config, self.channels = functions.config, functions.channels
        self.in_bfloat16 = False
        self._limits = limits
        self.values = nn.ParameterDict(
            {_key(name): torch.tensor(values) for name, values in functions.tensors.items()}
        )

    def forward(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None = None) -> Tensor:
        """Refine working planes on the 0-255 scale, whose noise has the given sigmas, (B,)."""
        if sigmas is None:
            sigmas = noisy.new_full((1,), REFERENCE_SIGMA)
        nearest = sigmas.clamp(*self._limits)
        place = torch.log(nearest / REFERENCE_SIGMA).to(noisy)[:, None]  # (B, 1)
        layers = []
        for spec in self.config.layers(self.channels):
            biases = self._value(spec.name, "biases")[None]
            if spec.varies:
                biases = biases + place * self._value(spec.name, "slopes")
            layers.append(LayerTensors(self._value(spec.name, "weights"), biases))
        step_size = self.values["step_size"]
        scales = [scales_at(sigma) for sigma in nearest.tolist()]
        # The scales are for images whose noise is the reference; here it is not.
        factors = (REFERENCE_SIGMA / sigmas).to(noisy)[:, None, None, None]
        values = RefinementTensors(
            step_size[0] + step_size[1] * place[:, :, None, None],
            factors * noisy.new_tensor([scale.image for scale in scales])[:, None, None, None],
            noisy.new_tensor([scale.change for scale in scales])[:, None, None, None] / factors,
            layers,
        )
        beyond = (sigmas / nearest).to(noisy)[:, None, None, None]
        center = beyond * _center(self.channels, CENTER, noisy)
        return refine(
            estimate, noisy, values, self.config, center=center, bfloat16=self.in_bfloat16
        )

    def matrices_and_others(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the weights of all convolutions but the first and the last, and all else."""
        inner = {_key(f"{spec.name}.weights") for spec in self.config.layers(self.channels)[1:-1]}
        named = list(self.values.items())
        matrices = [value for name, value in named if name in inner]
        return matrices, [value for name, value in named if name not in inner]

    def export(self) -> RefinementFunctions:
        """Return the present values as plain float32 arrays."""
        names = blank(self.config, self.channels).tensors
        tensors = {
            name: self.values[_key(name)].detach().cpu().numpy().astype(np.float32)
            for name in names
        }
        return RefinementFunctions(self.config, self.channels, tensors)

    def _value(self, layer: str, name: str) -> Tensor:
        value: Tensor = self.values[_key(f"{layer}.{name}")]
        return value


def initial_refinement(config: RefinementConfig, channels: int, seed: int) -> RefinementFunctions:
    """Return a refinement to begin training with: random weights, and half of the noisy image.

    R begins without the estimate.
    """
    rng = np.random.default_rng(seed)
    tensors = {name: values.copy() for name, values in blank(config, channels).tensors.items()}
    specs = config.layers(channels)
    for spec in specs:
        bound = 1 / np.sqrt(math.prod(spec.weights[1:]))
        weights = rng.uniform(-bound, bound, spec.weights).astype(np.float32)
        tensors[f"{spec.name}.weights"] = weights * np.float32(spec.initial_scale)
    tensors[f"{specs[0].name}.weights"][:, : 4 * channels] = 0
    tensors["step_size"][0] = 0.5
    return RefinementFunctions(config, channels, tensors)


def _key(name: str) -> str:
    return name.replace(".", "_")  # names of parameters cannot have dots
