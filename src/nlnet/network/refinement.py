r"""The refinement: a small convolutional network as one more step of the recursion.

.. math:: x \leftarrow (1 - \gamma)\, x + \gamma\, y - R(x, y)

as of a stage, Eq. (24), but for R: where a stage sees groups of small patches, R sees one large
neighbourhood of every pixel. It works at half the size of the image and below: four pixels of x and
of y are one pixel of its input. Each level has blocks of two convolutions whose result is added to
what went in; the levels of the way up are added to those of the way down.

Its values are functions of the noise: inputs and output are scaled by sigma, biases and gamma are
linear in log sigma. `RefinementFunctions.at` puts all of that into plain weights for the engine,
``engine/src/refinement.h``; `nlnet.torch.refinement` is what is trained.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nlnet.errors import ModelError

Array32 = npt.NDArray[np.float32]
Kind = Literal["same", "halve", "double"]

REFERENCE_SIGMA = 25.0
"""Images are scaled so that their noise has this standard deviation, whatever it was."""

CENTER = 127.5
"""The gray that is 0 for the layers, on the 0-255 scale: the middle of what an image can hold."""

_IMAGE_OFFSET = 10.0
"""Images are divided by twice the noise and this, so that both strong edges and weak noise are
numbers of about 1."""

_MOST_LEVELS, _MOST_WIDTH, _MOST_BLOCKS = 4, 256, 8
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
        levels = len(self.widths)
        rules = {
            "widths": (
                1 <= levels <= _MOST_LEVELS
                and all(8 <= width <= _MOST_WIDTH and width % 8 == 0 for width in self.widths),
                f"1 to {_MOST_LEVELS} multiples of 8 up to {_MOST_WIDTH}",
            ),
            "down": (
                len(self.down) == levels and all(0 <= n <= _MOST_BLOCKS for n in self.down),
                f"as many as widths, each from 0 to {_MOST_BLOCKS}",
            ),
            "up": (
                len(self.up) == levels - 1 and all(0 <= n <= _MOST_BLOCKS for n in self.up),
                f"one fewer than widths, each from 0 to {_MOST_BLOCKS}",
            ),
        }
        for name, (holds, wanted) in rules.items():
            if not holds:
                given = list(getattr(self, name))
                raise ModelError(f"The refinement's {name} are {given}, but must be {wanted}.")

    @property
    def unit(self) -> int:
        """Pixels of the image, along a side, that are one pixel of the lowest level."""
        return 1 << len(self.widths)

    @property
    def reach(self) -> int:
        """How far away a pixel can influence another one."""
        steps = (2 << layer.level for layer in self.layers(1) if layer.kind == "same")
        # Halving and doubling take a pixel to any of those that are one with it further down.
        return sum(steps) + self.unit

    def parameter_count(self, channels: int) -> int:
        """Return the number of learned values for gray (1) or color (3)."""
        return sum(math.prod(shape) for shape in tensor_shapes(self, channels).values())

    def layers(self, channels: int) -> tuple[LayerShape, ...]:
        """Return the shapes of all layers for gray (1) or color (3), in the engine's order."""
        return tuple(self._layers(channels))

    def _layers(self, channels: int) -> Iterator[LayerShape]:
        def blocks(name: str, count: int, level: int) -> Iterator[LayerShape]:
            width = self.widths[level]
            for block in range(count):
                for part in ("first", "second"):
                    yield LayerShape(f"{name}.{level}.{block}.{part}", "same", level, width, width)

        levels = range(len(self.widths))
        yield LayerShape("head", "same", 0, 8 * channels, self.widths[0])
        for level in levels:
            width = self.widths[level]
            if level > 0:
                yield LayerShape(f"halve.{level}", "halve", level, self.widths[level - 1], width)
            yield from blocks("down", self.down[level], level)
        for level in reversed(levels[:-1]):
            below, width = self.widths[level + 1], self.widths[level]
            yield LayerShape(f"double.{level}", "double", level, below, width)
            yield from blocks("up", self.up[level], level)
        yield LayerShape("tail", "same", 0, self.widths[0], 4 * channels)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> RefinementConfig:
        """Build a config from plain values; an unknown key or a wrong type is an error."""
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ModelError(
                f"Unknown refinement setting {', '.join(map(repr, unknown))}; "
                f"the known ones are {', '.join(names)}."
            )
        for name, value in values.items():
            if not isinstance(value, (list, tuple)) or any(type(each) is not int for each in value):
                raise ModelError(f"Refinement setting {name!r} has the unusable value {value!r}.")
        return cls(**{name: tuple(value) for name, value in values.items()})

    def to_mapping(self) -> dict[str, Any]:
        """Return the config as plain values, the inverse of :meth:`from_mapping`."""
        return {name: list(value) for name, value in dataclasses.asdict(self).items()}


class LayerShape(NamedTuple):
    """One convolution: its name, what it does with the size, and its channels."""

    name: str
    kind: Kind
    level: int
    """Of its output."""
    taken: int
    given: int

    @property
    def outputs(self) -> int:
        """Channels of its result; four times as many, if each pixel becomes four."""
        return 4 * self.given if self.kind == "double" else self.given

    @property
    def weights(self) -> tuple[int, int, int, int]:
        """Shape of its weights: outputs, inputs, rows, columns."""
        side = {"same": 3, "halve": 2, "double": 1}[self.kind]
        return self.outputs, self.taken, side, side

    @property
    def varies(self) -> bool:
        """Whether its biases are functions of sigma."""
        return self.name == "head" or self.name.endswith("first")


class Layer(NamedTuple):
    """Weights (outputs, inputs, rows, columns) and biases (outputs) of a convolution."""

    weights: Array32
    biases: Array32


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

        def padded(values: Sequence[int]) -> list[int]:
            return [*values, *[0] * (_MOST_LEVELS - len(values))]

        config = self.config
        sizes = [*padded(config.widths), *padded(config.down), *padded(config.up)]
        parts = [_HEAD.pack(len(config.widths), 0, self.step_size, self.center, *sizes)]
        for shape, layer in zip(config.layers(self.channels), self.layers, strict=True):
            for array in _engine_arrays(shape, layer):
                content = np.ascontiguousarray(array, dtype.newbyteorder("<")).tobytes()
                parts.append(content + bytes(-len(content) % 8))
        return b"".join(parts)


def _engine_arrays(shape: LayerShape, layer: Layer) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return weights as (rows, columns, inputs, outputs) and biases, as the engine takes them."""
    weights, biases = layer
    if shape.kind == "double":
        # The engine makes a row of pixels at a time: (row, inputs, column, channel).
        split = weights.reshape(shape.given, 2, 2, shape.taken)
        return split.transpose(1, 3, 2, 0), biases.reshape(shape.given, 2, 2).transpose(1, 2, 0)
    spare = -shape.given % 8
    wide = np.pad(weights, ((0, spare), (0, 0), (0, 0), (0, 0)))
    return wide.transpose(2, 3, 1, 0), np.pad(biases, (0, spare))


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
        scales = scales_at(sigma)
        layers = []
        for shape in self.config.layers(self.channels):
            weights = self.tensors[f"{shape.name}.weights"]
            biases = self.tensors[f"{shape.name}.biases"]
            if shape.varies:
                biases = biases + np.float32(place) * self.tensors[f"{shape.name}.slopes"]
            if shape.name == "head":
                weights = weights * np.float32(scales.image)
            if shape.name == "tail":
                weights = weights * np.float32(scales.change)
                biases = biases * np.float32(scales.change)
            layers.append(Layer(weights, biases))
        at_reference, slope = map(float, self.tensors["step_size"])
        center = CENTER * REFERENCE_SIGMA / sigma
        return Refinement(
            self.config, self.channels, at_reference + place * slope, center, tuple(layers)
        )


class Scales(NamedTuple):
    """Factors for an image whose noise is `REFERENCE_SIGMA`: of what goes in, of what comes out."""

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
        shapes[f"{layer.name}.biases"] = (layer.outputs,)
        if layer.varies:
            shapes[f"{layer.name}.slopes"] = (layer.outputs,)
    return shapes


def blank(config: RefinementConfig, channels: int) -> RefinementFunctions:
    """Return a refinement that has not learned anything, and changes nothing."""
    shapes = tensor_shapes(config, channels)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return RefinementFunctions(config, channels, tensors)
