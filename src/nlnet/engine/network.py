"""Networks in the engine: made from a parameter block, which is checked and turned into tables."""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

import numpy as np

from nlnet.engine.library import check_status, load
from nlnet.engine.memory import address, aligned_memory

ELEMENTS = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
"""``nlnet_element``, by dtype."""

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


class EngineNetwork:
    """A network that is ready for any number of jobs, at once too.

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
        self.dtype = dtype
        self.handle = ctypes.c_void_p()
        size = ctypes.c_size_t()
        make = load().nlnet_network_make
        options = (block, len(block), ELEMENTS[dtype], instructions)
        check_status(make(*options, None, ctypes.byref(size), None), "The network")
        self._memory = aligned_memory(size.value)
        place = address(self._memory)
        status = make(*options, place, ctypes.byref(size), ctypes.byref(self.handle))
        check_status(status, "The network")
        self.sizes = Sizes(*_SIZES.unpack_from(block, _SIZES_AT))
