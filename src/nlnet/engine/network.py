"""Networks and eyes in the engine, made from a parameter block, which the engine checks."""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

import numpy as np

from nlnet.engine.library import load
from nlnet.engine.memory import call_in_memory

ELEMENTS = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
"""``nlnet_element``, by dtype."""

_SIZES = struct.Struct("<6I")
_SIZES_AT = 16  # bytes from the block's start
_EYE_SIZES = struct.Struct("<2I")
_EYE_SIZES_AT = 12


class Sizes(NamedTuple):
    """Sizes of a network, in the order of the parameter block."""

    channels: int
    stages: int
    patch: int
    group: int
    window: int
    rbf_count: int


class _Made:
    """What the engine has made of a parameter block; ready for any number of jobs, at once too."""

    def __init__(self, function: str, what: str, block: bytes, *options: int) -> None:
        self.handle = ctypes.c_void_p()
        make, given = getattr(load(), function), (block, len(block), *options)
        self._memory = call_in_memory(make, what, *given, result=self.handle)


def family_at(block: bytes, sigma: float) -> memoryview:
    """Return the parameter block of a family's network for noise of a standard deviation.

    Beyond the sigmas of the family, it is the network for the nearest of them.
    """
    given = (block, len(block), sigma)
    return call_in_memory(load().nlnet_family_at, "The network", *given).data


class EngineNetwork(_Made):
    """A denoising network.

    Parameters
    ----------
    block : bytes
        Its parameter block; ``docs/engine.md`` has the layout.
    dtype : dtype
        Of all images and of the computation, float32 or float64.
    instructions : int
        The instruction set that runs it, a value of `nlnet.engine.library.SETS`.

    Raises
    ------
    ModelError
        If the block is not one that the engine takes.
    """

    def __init__(self, block: bytes, dtype: np.dtype[np.floating], instructions: int) -> None:
        super().__init__("nlnet_network_make", "The network", block, ELEMENTS[dtype], instructions)
        self.dtype = dtype
        self.sizes = Sizes(*_SIZES.unpack_from(block, _SIZES_AT))


class EngineEye(_Made):
    """An eye, which looks at tiles in float32; its parameters are those of `EngineNetwork`."""

    def __init__(self, block: bytes, instructions: int) -> None:
        super().__init__("nlnet_eye_make", "The eye", block, instructions)
        levels, self.outputs = _EYE_SIZES.unpack_from(block, _EYE_SIZES_AT)
        self.unit = 1 << levels
        """Pixels of a tile, along a side, that are one of its maps."""
