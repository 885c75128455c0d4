r"""The refinement: a small convolutional network as one more step of the recursion.

.. math:: x \leftarrow (1 - \gamma)\, x + \gamma\, y - R(x, y)

This is the update of a stage, Eq. (24), with a convolutional network R in place of the sum over
groups: R has a large receptive field around every pixel. It works at half the size of the image
and below: four pixels of x and four of y are one pixel of its input. R is a U-Net:
`nlnet.network.layers` has its way down; on the way up, each level adds the end of its way down, and
has blocks again.

Its values are functions of sigma: input and output are scaled, and biases and gamma are linear in
log sigma. `Refinement.layers` are plain weights for one sigma, which the engine runs
(``engine/src/convolutions``). `nlnet.torch.refinement` has the module that is trained.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from nlnet.arrays import Float32Array
from nlnet.errors import ModelError
from nlnet.network import layers
from nlnet.network.layers import Layer, LayerSpec, LevelSizes

REFERENCE_SIGMA = 25.0
"""Images are scaled so that their noise has this standard deviation, whatever it was."""

CENTER = 127.5
"""The gray that is 0 for the layers, on the 0-255 scale: the middle of what an image can hold."""

_IMAGE_OFFSET = 10.0
"""Images are divided by twice the sum of sigma and this, which keeps edges and noise of any
strength at values of about 1."""

CHANGE_SCALE = REFERENCE_SIGMA / 2
"""The factor of the output, for images whose noise is `REFERENCE_SIGMA`."""

_HEAD = struct.Struct("<IIdd4I4I4I")


@dataclasses.dataclass(frozen=True)
class RefinementConfig(LevelSizes):
    """Sizes of a refinement.

    Parameters
    ----------
    widths, down
        As for `nlnet.network.layers.LevelSizes`.
    up : tuple of int
        Blocks of each level but the lowest on the way up.

    Examples
    --------
    >>> RefinementConfig((48, 48), (2, 2), (2,)).unit
    4
    """

    up: tuple[int, ...] = (2,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_blocks("up", self.up, len(self.widths) - 1, "one fewer than widths")

    @property
    def reach(self) -> int:
        """Radius of the receptive field, in pixels of the image."""
        steps = (2 << layer.level for layer in self.layers(1) if layer.kind == "same")
        # Where sizes are halved and doubled, a pixel reaches all that share a lowest-level pixel.
        return sum(steps) + self.unit

    def parameter_count(self, channels: int) -> int:
        """Return the number of learned values for gray (1) or color (3)."""
        return sum(math.prod(shape) for shape in tensor_shapes(self, channels).values())

    def layers(self, channels: int) -> tuple[LayerSpec, ...]:
        """Return all layers for gray (1) or color (3), in the engine's order."""
        specs = list(layers.way_down(8 * channels, self.widths, self.down))
        for level in reversed(range(len(self.up))):
            below, width = self.widths[level + 1], self.widths[level]
            specs.append(LayerSpec(f"double.{level}", "double", level, below, width))
            specs += layers.blocks(f"up.{level}", self.up[level], level, width)
        tail = LayerSpec("tail", "same", 0, self.widths[0], 4 * channels, initial_scale=0.1)
        return (*specs, tail)


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A refinement with its values, as functions of sigma and at one sigma.

    Parameters
    ----------
    config : RefinementConfig
        Its sizes.
    channels : int
        1 for gray, 3 for color, of which it takes the working planes.
    tensors : mapping of arrays
        What is learned, by name: ``step_size`` (2), and for each layer ``<name>.weights``,
        ``<name>.biases`` and, where these vary, ``<name>.slopes``: their change with log sigma.
    sigma : float
        What `step_size`, `center` and `layers` are for: images whose noise had this standard
        deviation before they were scaled so that it is `REFERENCE_SIGMA`.
    """

    config: RefinementConfig
    channels: int
    tensors: Mapping[str, Float32Array]
    sigma: float = REFERENCE_SIGMA

    def __post_init__(self) -> None:
        wanted = tensor_shapes(self.config, self.channels)
        if set(self.tensors) != set(wanted):
            odd = sorted(set(self.tensors) ^ set(wanted))
            raise ModelError(f"The refinement's tensors are not those of its layers: {odd[0]!r}.")
        for name, shape in wanted.items():
            layers.check_tensor(f"The refinement's {name}", self.tensors[name], shape)

    def at(self, sigma: float) -> Refinement:
        """Return the refinement for noise of this standard deviation, on the 0-255 scale."""
        return dataclasses.replace(self, sigma=sigma)

    @property
    def step_size(self) -> float:
        """Gamma."""
        at_reference, slope = map(float, self.tensors["step_size"])
        return at_reference + self._log_sigma * slope

    @property
    def center(self) -> float:
        """The gray that is 0 for the layers."""
        return CENTER * REFERENCE_SIGMA / self.sigma

    @property
    def _log_sigma(self) -> float:
        return math.log(self.sigma / REFERENCE_SIGMA)

    def layers(self, dtype: np.dtype[np.floating]) -> list[Layer]:
        """Return plain weights and biases, in the order of `RefinementConfig.layers`."""
        # In double precision, as the engine does it for a family (``engine/src/family.cpp``).
        specs = self.config.layers(self.channels)
        return [self._layer(spec, spec is specs[0], spec is specs[-1], dtype) for spec in specs]

    def _layer(
        self, spec: LayerSpec, first: bool, last: bool, dtype: np.dtype[np.floating]
    ) -> Layer:
        weights, biases = (
            self.tensors[f"{spec.name}.{kind}"].astype(np.float64) for kind in ("weights", "biases")
        )
        if spec.varies:
            biases += self._log_sigma * self.tensors[f"{spec.name}.slopes"].astype(np.float64)
        if first:
            weights *= image_scale(self.sigma)
        if last:
            weights *= CHANGE_SCALE
            biases *= CHANGE_SCALE
        return Layer(weights.astype(dtype), biases.astype(dtype))

    def pack(self, dtype: np.dtype[np.floating]) -> bytes:
        """Return it as the end of a network's block; ``docs/engine.md`` has the layout."""
        head = self._pack_head(self.step_size, self.center)
        specs = self.config.layers(self.channels)
        return head + layers.pack_layers(specs, self.layers(dtype), dtype)

    def pack_functions(self, dtype: np.dtype[np.floating]) -> bytes:
        """Return it, as functions of sigma, as the end of a family's block."""
        at_reference, slope = map(float, self.tensors["step_size"])
        parts = [self._pack_head(at_reference, CENTER), struct.pack("<d", slope)]
        for spec in self.config.layers(self.channels):
            weights, biases = (
                self.tensors[f"{spec.name}.{kind}"] for kind in ("weights", "biases")
            )
            parts.append(layers.pack_layers([spec], [Layer(weights, biases)], dtype))
            if spec.varies:
                parts.append(layers.pack_array(self.tensors[f"{spec.name}.slopes"], dtype))
        return b"".join(parts)

    def _pack_head(self, step_size: float, center: float) -> bytes:
        config = self.config
        sizes = map(layers.padded_levels, (config.widths, config.down, config.up))
        levels = [number for numbers in sizes for number in numbers]
        return _HEAD.pack(len(config.widths), 0, step_size, center, *levels)


def image_scale(sigma: Any) -> Any:
    """Return the factor of the input for noise of `sigma`, scaled to `REFERENCE_SIGMA`."""
    return sigma / REFERENCE_SIGMA / (2 * (sigma + _IMAGE_OFFSET))


def tensor_shapes(config: RefinementConfig, channels: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that is learned, by its name."""
    shapes: dict[str, tuple[int, ...]] = {"step_size": (2,)}
    for layer in config.layers(channels):
        shapes[f"{layer.name}.weights"] = layer.weights
        shapes[f"{layer.name}.biases"] = (layer.filters,)
        if layer.varies:
            shapes[f"{layer.name}.slopes"] = (layer.filters,)
    return shapes


def blank(config: RefinementConfig, channels: int) -> Refinement:
    """Return a refinement that has not learned anything, and changes nothing."""
    shapes = tensor_shapes(config, channels)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return Refinement(config, channels, tensors)
