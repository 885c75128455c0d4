"""The eye: a small convolutional network that looks at tiles of a picture and gives maps of them.

Its input has four features per pixel: ``(L - 127.5) / 64`` for the luminance L, and
``asinh((p - mean) / 2)`` for L and both chrominances p of `nlnet.network.color`, with the mean of
5x5 pixels; the tile's border pixels are repeated outside. A gray tile has no chrominance: 0.
``pixel_unshuffle`` makes four pixels one, and these 16 channels go the way down of
`nlnet.network.layers`. A ReLU and the last layer, 3x3, give the maps, as large as the lowest level.

The first layer, those that halve and the last one are linear. The engine runs it
(``engine/src/convolutions/look.cpp``), by `nlnet.engine.tasks.look`.
"""

import dataclasses
import struct
from functools import cached_property

import numpy as np

from nlnet.errors import ModelError
from nlnet.network import layers
from nlnet.network.layers import Layer, LayerSpec, LevelSizes

FEATURES = 4
"""Features per pixel."""

MAGIC = b"nlneteye"
VERSION = 1

_HEAD = struct.Struct("<8s4I4I4IQ")


@dataclasses.dataclass(frozen=True)
class EyeConfig(LevelSizes):
    """Sizes of an eye; a pixel of its maps is a square of `unit` pixels of the picture.

    Parameters
    ----------
    widths, down
        As for `nlnet.network.layers.LevelSizes`.
    outputs : int
        Number of maps, a multiple of 8.

    Examples
    --------
    >>> EyeConfig((24, 40), (1, 1), 8).unit
    4
    """

    widths: tuple[int, ...] = (24, 40, 48, 64)
    down: tuple[int, ...] = (1, 1, 1, 1)
    outputs: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = f"a multiple of 8 up to {layers.MOST_WIDTH}"
        self._check("outputs", [self.outputs], layers.width_fits(self.outputs), wanted)

    @cached_property
    def layers(self) -> tuple[LayerSpec, ...]:
        """All layers, in the engine's order."""
        lowest = len(self.widths) - 1
        tail = LayerSpec("tail", "same", lowest, self.widths[-1], self.outputs)
        return (*layers.way_down(4 * FEATURES, self.widths, self.down), tail)


@dataclasses.dataclass(frozen=True, eq=False)
class Eye:
    """An eye with its weights.

    Parameters
    ----------
    config : EyeConfig
        Its sizes.
    layers : tuple of Layer
        In the order of `EyeConfig.layers`.
    """

    config: EyeConfig
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        specs = self.config.layers
        if len(self.layers) != len(specs):
            raise ModelError(f"The eye has {len(self.layers)} layers, but must have {len(specs)}.")
        for spec, layer in zip(specs, self.layers, strict=True):
            for array, shape in zip(layer, (spec.weights, (spec.filters,)), strict=True):
                layers.check_tensor(f"An array of the eye's layer {spec.name}", array, shape)

    def pack(self) -> bytes:
        """Return its parameter block, in float32; ``docs/engine.md`` has the layout."""
        config, arrays = self.config, layers.pack_layers(self.config.layers, self.layers, _FLOAT)
        levels = [*layers.padded_levels(config.widths), *layers.padded_levels(config.down)]
        head = (MAGIC, VERSION, len(config.widths), config.outputs, 0, *levels)
        return _HEAD.pack(*head, _HEAD.size + len(arrays)) + arrays


_FLOAT = np.dtype(np.float32)
