"""Memory for the engine to work in, and addresses of arrays that it reads and writes."""

import ctypes
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, Float32Array
from nlnet.engine.library import TYPES, check_status, load
from nlnet.errors import InputError

ALIGNMENT = 64
"""Bytes that the engine's memory is aligned to: a cache line."""


def aligned_memory(size: int) -> npt.NDArray[np.uint8]:
    """Return uninitialized memory of this size that starts at a cache line."""
    try:
        memory = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:
        raise InputError(f"{size} bytes of memory are needed, but cannot be had.") from error
    start = -address(memory) % ALIGNMENT
    return memory[start : start + size]


def address(array: Array) -> int:
    """Return where an array's first element is."""
    return int(array.__array_interface__["data"][0])


def array_at(where: int, shape: tuple[int, ...]) -> Float32Array:
    """Return floats of the engine as an array; they live as long as the engine's call."""
    memory = (ctypes.c_float * math.prod(shape)).from_address(where)
    return np.frombuffer(memoryview(memory).cast("B"), np.float32).reshape(shape)


def checked_address(name: str, array: Array, shape: tuple[int, ...], dtype: npt.DTypeLike) -> int:
    """Return the address of an array, if the engine can take it as it is.

    Parameters
    ----------
    name : str
        What the array is called in the error.
    array : array
        It must be contiguous, and the caller must keep it alive as long as the engine works.
    shape, dtype
        What the engine takes it for.

    Raises
    ------
    InputError
        If shape, dtype or layout differ.
    """
    wanted = np.dtype(dtype)
    if array.shape != shape or array.dtype != wanted:
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}, but must be {wanted} of shape "
            f"{shape}."
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise InputError(f"{name} must be contiguous.")
    return address(array)


def usable(values: Array) -> Array:
    """Return values as they are, or a copy, so that the engine takes them: of its own types."""
    native = values.dtype.newbyteorder("=")
    dtype = native if native in TYPES else np.dtype(np.float32)
    return values if values.dtype == dtype and values.flags.aligned else values.astype(dtype)


def call(name: str, *given: Any, result: Any = None) -> npt.NDArray[np.uint8]:
    """Call a function of the engine twice: for the size of its memory, then with the memory.

    Parameters
    ----------
    name : str
        Its name. It takes `given`, memory, its size and, if there is one, a pointer to `result`.

    Returns
    -------
    array
        The memory, which must live as long as what was made in it.
    """
    function, size = getattr(load(), name), ctypes.c_size_t()
    nowhere, there = ((), ()) if result is None else ((None,), (ctypes.byref(result),))
    check_status(function(*given, None, ctypes.byref(size), *nowhere))
    memory = aligned_memory(size.value)
    check_status(function(*given, address(memory), ctypes.byref(size), *there))
    return memory
