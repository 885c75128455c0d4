r"""The refinement: a small convolutional network as one more step of the recursion.

.. math:: x \leftarrow (1 - \gamma)\, x + \gamma\, y - R(x, y)

This is the update of a stage, Eq. (24), with a convolutional network R in place of the sum over
groups: R has a large receptive field around every pixel. It works at half the size of the image
and below: four pixels of x and four of y are one pixel of its input. R is a U-Net:
`nlnet.network.layers` has its way down; on the way up, each level adds the end of its way down, and
has blocks again.

Its values are functions of sigma: input and output are scaled, and biases and gamma are linear in
log sigma. `RefinementFunctions.at` returns plain weights for one sigma, which the engine runs
(``engine/src/convolutions``). `nlnet.torch.refinement` has the module that is trained.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from nlnet.errors import ModelError
from nlnet.network.layers import (
    Array32,
    Layer,
    LayerSpec,
    blocks,
    check_blocks,
    check_sizes,
    pack_layers,
    padded_levels,
    way_down,
)

REFERENCE_SIGMA = 25.0
"""Images are scaled so that their noise has this standard deviation, whatever it was."""

CENTER = 127.5
"""The gray that is 0 for the layers, on the 0-255 scale: the middle of what an image can hold."""

_IMAGE_OFFSET = 10.0
"""Images are divided by twice the sum of sigma and this, which keeps edges and noise of any
strength at values of about 1."""

_HEAD = struct.Struct("<IIdd4I4I4I")


@dataclasses.dataclass(frozen=True)
class RefinementConfig:
    """Sizes of a refinement, level by level from half the size of the image on.

    Parameters
    ----------
    widths : tuple of int
        Channels of each level, multiples of 8.
    down : tuple of int
        Blocks of each level on the way down.
    up : tuple of int
        Blocks of each level but the lowest on the way up.

    Examples
    --------
    >>> RefinementConfig((48, 48), (2, 2), (2,)).unit
    4
    """

    widths: tuple[int, ...] = (48, 48)
    down: tuple[int, ...] = (2, 2)
    up: tuple[int, ...] = (2,)

    def __post_init__(self) -> None:
        check_sizes("refinement", self.widths, self.down)
        count = len(self.widths) - 1
        check_blocks("refinement", "up", self.up, count, "one fewer than widths")

    @property
    def unit(self) -> int:
        """Pixels of the image, along a side, that are one pixel of the lowest level."""
        return 1 << len(self.widths)

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
        return tuple(self._layers(channels))

    def _layers(self, channels: int) -> Iterator[LayerSpec]:
        yield from way_down(8 * channels, self.widths, self.down)
        for level in reversed(range(len(self.up))):
            below, width = self.widths[level + 1], self.widths[level]
            yield LayerSpec(f"double.{level}", "double", level, below, width)
            yield from blocks(f"up.{level}", self.up[level], level, width)
        yield LayerSpec("tail", "same", 0, self.widths[0], 4 * channels, initial_scale=0.1)


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A refinement for noise of one strength, in images whose noise is `REFERENCE_SIGMA`.

    Parameters
    ----------
    config : RefinementConfig
        Its sizes.
    channels : int
        1 for gray, 3 for color, of which it takes the working planes.
    step_size : float
        gamma.
    center : float
        The gray that is 0 for the layers.
    layers : tuple of Layer
        In the order of `RefinementConfig.layers`.
    """

    config: RefinementConfig
    channels: int
    step_size: float
    center: float
    layers: tuple[Layer, ...]

    def pack(self, dtype: np.dtype[np.floating]) -> bytes:
        """Return it as the end of a parameter block; ``docs/engine.md`` has the layout."""
        config = self.config
        sizes = map(padded_levels, (config.widths, config.down, config.up))
        levels = [number for numbers in sizes for number in numbers]
        head = _HEAD.pack(len(config.widths), 0, self.step_size, self.center, *levels)
        return head + pack_layers(config.layers(self.channels), self.layers, dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class RefinementFunctions:
    """A refinement whose values are functions of sigma.

    Parameters
    ----------
    config : RefinementConfig
        Its sizes.
    channels : int
        1 for gray, 3 for color.
    tensors : mapping of arrays
        What is learned, by name: ``step_size`` (2), and for each layer ``<name>.weights``,
        ``<name>.biases`` and, where these vary, ``<name>.slopes``: their change with log sigma.
    """

    config: RefinementConfig
    channels: int
    tensors: Mapping[str, Array32]

    def __post_init__(self) -> None:
        wanted = tensor_shapes(self.config, self.channels)
        if set(self.tensors) != set(wanted):
            odd = sorted(set(self.tensors) ^ set(wanted))
            raise ModelError(f"The refinement's tensors are not those of its layers: {odd[0]!r}.")
        for name, shape in wanted.items():
            tensor = self.tensors[name]
            if tensor.shape != shape:
                raise ModelError(
                    f"The refinement's {name} has shape {tensor.shape}, but must be {shape}."
                )
            if not np.isfinite(tensor).all():
                raise ModelError(f"The refinement's {name} has values that are not finite.")

    @property
    def parameter_count(self) -> int:
        """Number of learned values."""
        return self.config.parameter_count(self.channels)

    def at(self, sigma: float) -> Refinement:
        """Return the refinement for noise of this standard deviation, on the 0-255 scale."""
        place = math.log(sigma / REFERENCE_SIGMA)
        layers = []
        for spec in self.config.layers(self.channels):
            weights, biases = (
                self.tensors[f"{spec.name}.{kind}"] for kind in ("weights", "biases")
            )
            if spec.varies:
                biases = biases + np.float32(place) * self.tensors[f"{spec.name}.slopes"]
            layers.append(Layer(weights, biases))
        image, change = map(np.float32, scales_at(sigma))
        layers[0] = layers[0]._replace(weights=layers[0].weights * image)
        layers[-1] = Layer(layers[-1].weights * change, layers[-1].biases * change)
        at_reference, slope = map(float, self.tensors["step_size"])
        center = CENTER * REFERENCE_SIGMA / sigma
        return Refinement(
            self.config, self.channels, at_reference + place * slope, center, tuple(layers)
        )


class Scales(NamedTuple):
    """Factors of input and output, for an image whose noise is `REFERENCE_SIGMA`."""

    image: float
    change: float


def scales_at(sigma: float) -> Scales:
    """Return the factors that go with noise of a standard deviation on the 0-255 scale."""
    image = 1 / (2 * (sigma + _IMAGE_OFFSET))
    return Scales(image * sigma / REFERENCE_SIGMA, REFERENCE_SIGMA / 2)


def tensor_shapes(config: RefinementConfig, channels: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor that is learned, by its name."""
    shapes: dict[str, tuple[int, ...]] = {"step_size": (2,)}
    for layer in config.layers(channels):
        shapes[f"{layer.name}.weights"] = layer.weights
        shapes[f"{layer.name}.biases"] = (layer.filters,)
        if layer.varies:
            shapes[f"{layer.name}.slopes"] = (layer.filters,)
    return shapes


def blank(config: RefinementConfig, channels: int) -> RefinementFunctions:
    """Return a refinement that has not learned anything, and changes nothing."""
    shapes = tensor_shapes(config, channels)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return RefinementFunctions(config, channels, tensors)
