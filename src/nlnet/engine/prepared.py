"""Networks as the engine has them: a parameter block, checked, and its tables."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.config import NetworkConfig
from nlnet.engine.block import ELEMENTS, pack
from nlnet.engine.library import check_status, instruction_set, load
from nlnet.engine.memory import address, aligned_memory
from nlnet.parameters import StageParameters


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedNetwork:
    """A network that is ready for any number of jobs, at once too.

    Parameters
    ----------
    handle : c_void_p
        The engine's own, which points into `memory`.
    config : NetworkConfig
        Its shape.
    dtype : dtype
        Of all images and of the computation.
    memory : array
        Where the engine keeps it.
    """

    handle: ctypes.c_void_p
    config: NetworkConfig
    dtype: np.dtype[np.floating]
    memory: npt.NDArray[np.uint8]


def make_network(config: NetworkConfig, stages: Sequence[StageParameters]) -> PreparedNetwork:
    """Return a network for the engine; the parameters' dtype is that of the computation."""
    config = dataclasses.replace(config, stages=len(stages))
    return _make(pack(config, stages), config, stages[0].filters.dtype, instruction_set())


def prepare(config: NetworkConfig, stages: Sequence[StageParameters]) -> PreparedNetwork:
    """Return :func:`make_network` of it, or what it returned before for the same content.

    A model's tables are made once, not again for each of its images.
    """
    config = dataclasses.replace(config, stages=len(stages))
    return _make_once(pack(config, stages), config, stages[0].filters.dtype, instruction_set())


def prepare_matching(config: NetworkConfig) -> PreparedNetwork:
    """Return a network that only finds groups, in float32: of no learned values."""
    config = dataclasses.replace(config, channels=1, stages=1, rbf_count=2, rbf_std=None)
    pixels, filters = config.patch_size**2, config.filter_count
    nothing = StageParameters(
        np.zeros((filters, pixels), np.float32),
        np.zeros(config.group_size, np.float32),
        np.zeros((1, filters, config.rbf_count), np.float32),
        0.0,
    )
    return prepare(config, [nothing])


def _make(
    block: bytes, config: NetworkConfig, dtype: np.dtype[np.floating], vectors: int
) -> PreparedNetwork:
    library = load()
    size, handle = ctypes.c_size_t(), ctypes.c_void_p()
    options = (block, len(block), ELEMENTS[dtype], vectors)
    status = library.nlnet_network_make(*options, None, ctypes.byref(size), None)
    check_status(status, "The network")
    memory = aligned_memory(size.value)
    status = library.nlnet_network_make(
        *options, address(memory), ctypes.byref(size), ctypes.byref(handle)
    )
    check_status(status, "The network")
    return PreparedNetwork(handle, config, dtype, memory)


_make_once = functools.lru_cache(maxsize=8)(_make)
