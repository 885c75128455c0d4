"""The refinement in torch operations: for training, for gradients and for other devices.

`nlnet.network.refinement` says what it is; the engine has the same layers in
``engine/src/convolutions``.
"""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from nlnet.network.refinement import (
    CENTER,
    CHANGE_SCALE,
    REFERENCE_SIGMA,
    Refinement,
    RefinementConfig,
    blank,
    image_scale,
)
from nlnet.torch.plain import pad


class RefinementNet(nn.Module):
    """A refinement whose values are learned, as functions of sigma.

    Parameters
    ----------
    values : Refinement
        What to start from.
    limits : (float, float)
        Sigmas between which the values are functions of sigma. Images with less or more noise are
        scaled, and their noise becomes the nearer of the two.

    Attributes
    ----------
    in_bfloat16 : bool
        Whether its layers compute in bfloat16.
    """

    def __init__(self, values: Refinement, limits: tuple[float, float] = (0.0, math.inf)) -> None:
        super().__init__()
        self.config, self.channels = values.config, values.channels
        self.in_bfloat16 = False
        self._limits = limits
        self.values = nn.ParameterDict(
            {_key(name): torch.tensor(tensor) for name, tensor in values.tensors.items()}
        )

    def forward(self, estimate: Tensor, noisy: Tensor, sigmas: Tensor | None = None) -> Tensor:
        """Return (1 - gamma) x + gamma y - R(x, y) for (B, C, H, W) working planes.

        `sigmas`, (B,), is the noise of each image; by default, it is `REFERENCE_SIGMA`.
        """
        noise = [REFERENCE_SIGMA] if sigmas is None else sigmas.tolist()
        known = torch.tensor(noise, dtype=torch.float64)[:, None, None, None]  # (B, 1, 1, 1)
        nearest = known.clamp(*self._limits)
        log_sigma = torch.log(nearest / REFERENCE_SIGMA).to(noisy)
        # The scales are for images whose noise is the reference; here it is not.
        factors = (REFERENCE_SIGMA / known).to(noisy)
        gray = noisy.new_tensor([CENTER, 0, 0][: self.channels]).reshape(1, -1, 1, 1)
        center = (known / nearest).to(noisy) * gray  # nothing is subtracted from the colors
        planes = torch.cat([estimate - center, noisy - center], dim=1)
        planes = planes * (factors * image_scale(nearest).to(noisy))
        height, width = noisy.shape[-2:]
        planes = pad(planes, 0, (-height % self.config.unit, -width % self.config.unit))
        with torch.autocast(noisy.device.type, torch.bfloat16, enabled=self.in_bfloat16):
            change = self._run_layers(functional.pixel_unshuffle(planes, 2), log_sigma)
        change = functional.pixel_shuffle(change, 2)[..., :height, :width].to(noisy.dtype)
        at_reference, slope = self.values["step_size"]
        step_size: Tensor = at_reference + slope * log_sigma
        change_scale = noisy.new_tensor(CHANGE_SCALE) / factors
        return (1 - step_size) * estimate + step_size * noisy - change_scale * change

    def _run_layers(self, planes: Tensor, log_sigma: Tensor) -> Tensor:
        following = iter(self.config.layers(self.channels))

        def convolve(planes: Tensor) -> Tensor:
            spec = next(following)
            weights, biases = (self._value(spec.name, kind) for kind in ("weights", "biases"))
            stride, padding = (2, 0) if spec.kind == "halve" else (1, weights.shape[-1] // 2)
            if not spec.varies:
                return functional.conv2d(planes, weights, biases, stride, padding)
            biases = biases[None] + log_sigma[:, :, 0, 0] * self._value(spec.name, "slopes")
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
        for count in self.config.down:
            ends.append(run_blocks(convolve(planes) if ends else planes, count))
            planes = ends[-1]
        for end, count in zip(ends[-2::-1], self.config.up[::-1], strict=True):
            larger = functional.pixel_shuffle(convolve(planes), 2)
            planes = run_blocks(end + larger, count)
        return convolve(functional.relu(planes))

    def matrices_and_others(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the weights of all convolutions but the first and the last, and all else."""
        inner = {_key(f"{spec.name}.weights") for spec in self.config.layers(self.channels)[1:-1]}
        named = list(self.values.items())
        matrices = [value for name, value in named if name in inner]
        return matrices, [value for name, value in named if name not in inner]

    def export(self) -> Refinement:
        """Return the present values as plain float32 arrays."""
        names = blank(self.config, self.channels).tensors
        tensors = {
            name: self.values[_key(name)].detach().cpu().numpy().astype(np.float32)
            for name in names
        }
        return Refinement(self.config, self.channels, tensors)

    def _value(self, layer: str, name: str) -> Tensor:
        value: Tensor = self.values[_key(f"{layer}.{name}")]
        return value


def initial_refinement(config: RefinementConfig, channels: int, seed: int) -> Refinement:
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
    return Refinement(config, channels, tensors)


def _key(name: str) -> str:
    return name.replace(".", "_")  # names of parameters cannot have dots


class EyeNet(nn.Module):
    """An eye whose weights are learned.

    Parameters
    ----------
    widths : sequence of int
        Channels of each level; the first works at half the size of the image.
    outputs : int
        Values per place of the lowest level.
    """

    def __init__(self, widths: tuple[int, ...] = (24, 40, 48, 64), outputs: int = 16) -> None:
        super().__init__()
        self.head = nn.Conv2d(16, widths[0], 3, padding=1)
        self.halve = nn.ModuleList(
            nn.Conv2d(above, width, 2, stride=2) for above, width in itertools.pairwise(widths)
        )
        self.first = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in widths)
        self.second = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in widths)
        self.tail = nn.Conv2d(widths[-1], outputs, 3, padding=1)

    def forward(self, planes: Tensor) -> Tensor:
        """Look at (B, 3, H, W) opponent planes; returns (B, outputs, H / 16, W / 16)."""
        features = functional.pixel_unshuffle(_features(planes), 2)
        features = self.head(features.contiguous(memory_format=torch.channels_last))
        for level, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            if level > 0:
                features = self.halve[level - 1](features)
            features = features + second(functional.relu(first(features)))
        result: Tensor = self.tail(functional.relu(features))
        return result

    def export(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return the weights as plain arrays, by the names of the engine's layers."""
        named: dict[str, nn.Module] = {"head": self.head, "tail": self.tail}
        for level, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            if level > 0:
                named[f"halve.{level}"] = self.halve[level - 1]
            named |= {f"down.{level}.0.first": first, f"down.{level}.0.second": second}
        return {
            f"{name}.{kind}": layer.get_parameter(own).detach().cpu().numpy().astype(np.float32)
            for name, layer in named.items()
            for kind, own in (("weights", "weight"), ("biases", "bias"))
        }


def _features(planes: Tensor) -> Tensor:
    """Return brightness, and what a mean of 5x5 pixels leaves of each plane: (B, 4, H, W)."""
    wide = functional.pad(planes, (2, 2, 2, 2), mode="replicate")
    detail = planes - functional.avg_pool2d(wide, 5, 1)
    return torch.cat([(planes[:, :1] - 127.5) / 64, torch.asinh(detail / 2)], dim=1)
