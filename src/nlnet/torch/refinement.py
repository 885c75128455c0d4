"""The refinement in torch operations: for training, for gradients and for other devices.

`nlnet.network.refinement` says what it is; the engine has the same layers in
``engine/src/refine.h``.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    layers: Mapping[str, LayerTensors]


def refine(
    estimate: Tensor,
    noisy: Tensor,
    values: RefinementTensors,
    config: RefinementConfig,
    *,
    center: Tensor,
    blind: bool = False,
    bfloat16: bool = False,
) -> Tensor:
    """Return (1 - gamma) x + gamma y - R(x, y) for (B, C, H, W) working planes.

    `center`, (1, C, 1, 1), is what is subtracted from all planes before the first layer. A blind
    R sees zeros in place of x. With `bfloat16` its layers compute with fewer digits.
    """
    height, width = noisy.shape[-2:]
    rows = mirrored(height, 0, -height % config.unit, noisy)
    columns = mirrored(width, 0, -width % config.unit, noisy)
    seen = torch.zeros_like(estimate) if blind else estimate - center
    planes = torch.cat([seen, noisy - center], dim=1) * values.image_scale
    planes = planes.index_select(-2, rows).index_select(-1, columns)
    with torch.autocast(noisy.device.type, torch.bfloat16, enabled=bfloat16):
        change = _run_layers(functional.pixel_unshuffle(planes, 2), values.layers, config)
    change = functional.pixel_shuffle(change, 2)[..., :height, :width].to(noisy.dtype)
    step_size = values.step_size
    return (1 - step_size) * estimate + step_size * noisy - values.change_scale * change


def _run_layers(
    planes: Tensor, layers: Mapping[str, LayerTensors], config: RefinementConfig
) -> Tensor:
    def convolve(name: str, planes: Tensor, stride: int = 1) -> Tensor:
        weights, biases = layers[name]
        padding = weights.shape[-1] // 2 if stride == 1 else 0
        if len(biases) == 1:
            return functional.conv2d(planes, weights, biases[0], stride, padding)
        result = functional.conv2d(planes, weights, None, stride, padding)
        return result + biases.to(result.dtype)[:, :, None, None]

    def blocks(name: str, count: int, planes: Tensor) -> Tensor:
        for block in range(count):
            inner = functional.relu(convolve(f"{name}.{block}.first", planes))
            planes = planes + convolve(f"{name}.{block}.second", inner)
        return planes

    # Convolutions are several times as fast if all channels of a pixel are next to each other.
    planes = convolve("head", planes.contiguous(memory_format=torch.channels_last))
    levels = range(len(config.widths))
    ends = []
    for level in levels:
        if level > 0:
            planes = convolve(f"halve.{level}", planes, stride=2)
        planes = blocks(f"down.{level}", config.down[level], planes)
        ends.append(planes)
    for level in reversed(levels[:-1]):
        larger = functional.pixel_shuffle(convolve(f"double.{level}", planes), 2)
        planes = blocks(f"up.{level}", config.up[level], ends[level] + larger)
    return convolve("tail", functional.relu(planes))


def _center(channels: int, gray: float, like: Tensor) -> Tensor:
    """Return what is subtracted from working planes: a gray, and nothing from the colors."""
    return like.new_tensor([gray, 0, 0][:channels]).reshape(1, channels, 1, 1)


class FixedRefinement(nn.Module):
    """A refinement for noise of one strength; it has nothing to train."""

    def __init__(self, refinement: Refinement) -> None:
        super().__init__()
        self._refinement = refinement

    def forward(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None = None) -> Tensor:
        """Refine working planes whose noise is `REFERENCE_SIGMA`."""
        refinement = self._refinement

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(np.asarray(values), dtype=noisy.dtype, device=noisy.device)

        shapes = refinement.config.layers(refinement.channels)
        layers = {
            shape.name: LayerTensors(tensor(layer.weights), tensor(layer.biases)[None])
            for shape, layer in zip(shapes, refinement.layers, strict=True)
        }
        one = tensor(1.0)
        values = RefinementTensors(tensor(refinement.step_size), one, one, layers)
        center = _center(refinement.channels, refinement.center, noisy)
        return refine(estimate, noisy, values, refinement.config, center=center)


class RefinementNet(nn.Module):
    """A refinement whose values are learned, as functions of sigma.

    Parameters
    ----------
    functions : RefinementFunctions
        Values to start from.

    Attributes
    ----------
    opened : bool
        Whether R sees the estimate x beside the noisy image y, and gamma is learned. Training
        may begin without.
    coarse : bool
        Whether its layers compute with fewer digits.
    """

    def __init__(self, functions: RefinementFunctions) -> None:
        super().__init__()
        self.config, self.channels = functions.config, functions.channels
        self.opened, self.coarse = True, False
        self.values = nn.ParameterDict(
            {_key(name): torch.tensor(values) for name, values in functions.tensors.items()}
        )

    def forward(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None = None) -> Tensor:
        """Refine working planes on the 0-255 scale, whose noise has the given sigmas, (B,)."""
        if sigmas is None:
            sigmas = noisy.new_full((1,), REFERENCE_SIGMA)
        place = torch.log(sigmas / REFERENCE_SIGMA).to(noisy)[:, None]  # (B, 1)
        layers = {}
        for shape in self.config.layers(self.channels):
            biases = self._value(shape.name, "biases")[None]
            if shape.varies:
                biases = biases + place * self._value(shape.name, "slopes")
            layers[shape.name] = LayerTensors(self._value(shape.name, "weights"), biases)
        step_size = self.values["step_size"]
        step_size = step_size[0] + step_size[1] * place[:, :, None, None]
        # The scales are for images whose noise is the reference; here it is not.
        scales = [scales_at(sigma) for sigma in sigmas.tolist()]
        factors = [REFERENCE_SIGMA / sigma for sigma in sigmas.tolist()]
        image = [scale.image * factor for scale, factor in zip(scales, factors, strict=True)]
        change = [scale.change / factor for scale, factor in zip(scales, factors, strict=True)]
        values = RefinementTensors(
            step_size if self.opened else step_size.detach(),
            noisy.new_tensor(image)[:, None, None, None],
            noisy.new_tensor(change)[:, None, None, None],
            layers,
        )
        center = _center(self.channels, CENTER, noisy)
        return refine(
            estimate,
            noisy,
            values,
            self.config,
            center=center,
            blind=not self.opened,
            bfloat16=self.coarse,
        )

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

    The second convolutions of the blocks and the last layer begin small, so that a deep network
    begins as a shallow one; R begins without the estimate.
    """
    rng = np.random.default_rng(seed)
    tensors = {name: values.copy() for name, values in blank(config, channels).tensors.items()}
    for shape in config.layers(channels):
        _, taken, rows, columns = shape.weights
        bound = 1 / np.sqrt(taken * rows * columns)
        weights = rng.uniform(-bound, bound, shape.weights).astype(np.float32)
        if shape.name.endswith("second"):
            weights *= np.float32(0.3)
        elif shape.name == "tail":
            weights *= np.float32(0.1)
        elif shape.name == "head":
            weights[:, : 4 * channels] = 0
        tensors[f"{shape.name}.weights"] = weights
    tensors["step_size"][0] = 0.5
    return RefinementFunctions(config, channels, tensors)


def _key(name: str) -> str:
    return name.replace(".", "_")  # names of parameters cannot have dots
