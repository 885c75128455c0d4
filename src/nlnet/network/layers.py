"""The layers of a small convolutional network, a refinement or an eye: sizes, weights, packing.

Level 0 has half the size of the image, and every level below it half that of the one above. On the
way down, each level has blocks of two 3x3 convolutions with a ReLU between them, whose result is
added to the block's input. Around every level there are zeros.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from nlnet.arrays import Array, Float32Array
from nlnet.errors import ModelError

Kind = Literal["same", "halve", "double"]

MOST_LEVELS, MOST_WIDTH, MOST_BLOCKS = 4, 256, 8


class LayerSpec(NamedTuple):
    """One convolution: its name, what it does with the size, and its channels."""

    name: str
    kind: Kind
    """3x3 at the same size; 2x2 that halves it; 1x1 that doubles it, each pixel becoming 2x2."""
    level: int
    """Of its output."""
    in_channels: int
    out_channels: int
    varies: bool = False
    """Whether its biases are functions of sigma, in a refinement."""
    initial_scale: float = 1.0
    """Factor of the random weights that training starts from."""

    @property
    def filters(self) -> int:
        """Number of its filters: one per output channel, four if each pixel becomes 2x2."""
        return 4 * self.out_channels if self.kind == "double" else self.out_channels

    @property
    def weights(self) -> tuple[int, int, int, int]:
        """Shape of its weights: filters, input channels, rows, columns."""
        side = {"same": 3, "halve": 2, "double": 1}[self.kind]
        return self.filters, self.in_channels, side, side


class Layer(NamedTuple):
    """Weights (filters, input channels, rows, columns) and biases (filters) of a convolution."""

    weights: Float32Array
    biases: Float32Array


@dataclasses.dataclass(frozen=True)
class LevelSizes:
    """Sizes of the way down, level by level from half the size of the image on.

    Parameters
    ----------
    widths : tuple of int
        Channels of each level, multiples of 8.
    down : tuple of int
        Blocks of each level on the way down.

    Examples
    --------
    >>> LevelSizes((24, 40), (1, 1)).unit
    4
    """

    widths: tuple[int, ...] = (48, 48)
    down: tuple[int, ...] = (2, 2)

    def __post_init__(self) -> None:
        holds = 1 <= len(self.widths) <= MOST_LEVELS and all(map(width_fits, self.widths))
        wanted = f"1 to {MOST_LEVELS} multiples of 8 up to {MOST_WIDTH}"
        self._check("widths", self.widths, holds, wanted)
        self._check_blocks("down", self.down, len(self.widths), "as many as widths")

    @property
    def unit(self) -> int:
        """Pixels of the image, along a side, that are one pixel of the lowest level."""
        return 1 << len(self.widths)

    def _check_blocks(self, name: str, blocks: Sequence[int], count: int, wanted: str) -> None:
        holds = len(blocks) == count and all(0 <= number <= MOST_BLOCKS for number in blocks)
        self._check(name, blocks, holds, f"{wanted}, each from 0 to {MOST_BLOCKS}")

    def _check(self, name: str, given: Sequence[int], holds: bool, wanted: str) -> None:
        if not holds:
            owner = type(self).__name__.removesuffix("Config").lower()
            raise ModelError(f"The {owner}'s {name} are {list(given)}, but must be {wanted}.")


def width_fits(width: int) -> bool:
    """Return whether a layer can have so many output channels."""
    return 8 <= width <= MOST_WIDTH and width % 8 == 0


def way_down(in_channels: int, widths: Sequence[int], down: Sequence[int]) -> Iterator[LayerSpec]:
    """Yield the first layer and those of all levels down to the lowest."""
    yield LayerSpec("head", "same", 0, in_channels, widths[0], varies=True)
    for level, width in enumerate(widths):
        if level > 0:
            yield LayerSpec(f"halve.{level}", "halve", level, widths[level - 1], width)
        yield from blocks(f"down.{level}", down[level], level, width)


def blocks(name: str, count: int, level: int, width: int) -> Iterator[LayerSpec]:
    """Yield the layers of a level's blocks, on one of its ways.

    The second layer of a block starts small, so that a deep network starts as a shallow one.
    """
    for block in range(count):
        first, second = (f"{name}.{block}.{part}" for part in ("first", "second"))
        yield LayerSpec(first, "same", level, width, width, varies=True)
        yield LayerSpec(second, "same", level, width, width, initial_scale=0.3)


def check_tensor(name: str, tensor: Array, shape: tuple[int, ...]) -> None:
    """Raise ModelError unless a tensor has its shape and finite values."""
    if tensor.shape != shape:
        raise ModelError(f"{name} has shape {tensor.shape}, but must be {shape}.")
    if not np.isfinite(tensor).all():
        raise ModelError(f"{name} has values that are not finite.")


def padded_levels(values: Sequence[int]) -> list[int]:
    """Return one number per level, with zeros for levels that are not there."""
    return [*values, *[0] * (MOST_LEVELS - len(values))]


def pack_layers(
    specs: Iterable[LayerSpec], layers: Iterable[Layer], dtype: np.dtype[np.floating]
) -> bytes:
    """Return all weights and biases as in a parameter block; ``docs/engine.md`` has the layout."""
    pairs = zip(specs, layers, strict=True)
    arrays = (array for spec, layer in pairs for array in _engine_arrays(spec, layer))
    return b"".join(pack_array(array, dtype) for array in arrays)


def pack_array(array: Array, dtype: np.dtype[np.floating]) -> bytes:
    """Return an array as in a parameter block: little-endian, padded to a multiple of 8 bytes."""
    content = np.ascontiguousarray(array, dtype.newbyteorder("<")).tobytes()
    return content + bytes(-len(content) % 8)


def unpack_array(
    block: memoryview, start: int, shape: tuple[int, ...], dtype: np.dtype[np.floating]
) -> tuple[Array, int]:
    """Return an array that begins somewhere in a parameter block, and where it ends."""
    count = math.prod(shape)
    values = np.frombuffer(block, dtype.newbyteorder("<"), count, start).astype(dtype, copy=False)
    size = count * dtype.itemsize
    return values.reshape(shape), start + size + -size % 8


def _engine_arrays(spec: LayerSpec, layer: Layer) -> tuple[Array, Array]:
    """Return weights as (rows, columns, inputs, outputs) and biases, as the engine takes them."""
    weights, biases = layer
    channels = spec.out_channels
    if spec.kind == "double":
        # The engine makes a row of pixels at a time: (row, inputs, column, channel).
        split = weights.reshape(channels, 2, 2, spec.in_channels)
        return split.transpose(1, 3, 2, 0), biases.reshape(channels, 2, 2).transpose(1, 2, 0)
    spare = -channels % 8
    wide = np.pad(weights, ((0, spare), (0, 0), (0, 0), (0, 0)))
    return wide.transpose(2, 3, 1, 0), np.pad(biases, (0, spare))
