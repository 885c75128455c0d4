"""Networks and eyes in the engine, made from a parameter block, which the engine checks."""

import ctypes
import struct
from typing import NamedTuple

import numpy as np

from nlnet.engine.library import ELEMENTS
from nlnet.engine.memory import call

_SIZES = struct.Struct("<6I")
_SIZES_AT = 16  # bytes from the block's start


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

    def __init__(self, maker: str, block: bytes, *options: int) -> None:
        self.handle = ctypes.c_void_p()
        self._memory = call(maker, block, len(block), *options, result=self.handle)


def family_at(block: bytes, sigma: float) -> memoryview:
    """Return the parameter block of a family's network for noise of a standard deviation.

    Beyond the sigmas of the family, it is the network for the nearest of them.
    """
    return call("family_at", block, len(block), sigma).data


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
        super().__init__("network_make", block, ELEMENTS[dtype], instructions)
        self.dtype = dtype
        self.sizes = Sizes(*_SIZES.unpack_from(block, _SIZES_AT))


class EngineEye(_Made):
    """An eye, which looks at tiles in float32; its parameters are those of `EngineNetwork`."""

    def __init__(self, block: bytes, instructions: int) -> None:
        super().__init__("eye_make", block, instructions)
