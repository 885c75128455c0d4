"""Memory for the engine to work in, and addresses of arrays that it reads and writes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.engine.library import check_status
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


def checked_address(
    name: str,
    array: Array,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    *,
    written: bool = False,
) -> int:
    """Return the address of an array, if the engine can take it as it is.

    Parameters
    ----------
    name : str
        What the array is called in the error.
    array : array
        It must be contiguous, and the caller must keep it alive as long as the engine works.
    shape, dtype
        What the engine takes it for.
    written : bool
        Whether the engine writes to it.

    Raises
    ------
    InputError
        If shape, dtype or layout differ, or the array is read-only but written to.
    """
    wanted = np.dtype(dtype)
    if array.shape != shape or array.dtype != wanted:
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}, but must be {wanted} of shape "
            f"{shape}."
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise InputError(f"{name} must be contiguous.")
    if written and not array.flags.writeable:
        raise InputError(f"{name} is read-only, but the result is to be written to it.")
    return address(array)


def call_in_memory(
    function: Callable[..., int],
    what: str,
    *given: Any,
    result: Any = None,
    take: Callable[[int], npt.NDArray[np.uint8]] = aligned_memory,
) -> npt.NDArray[np.uint8]:
    """Call a function of the engine twice: for the size of its memory, then with the memory.

    Parameters
    ----------
    function : callable
        Takes `given`, memory, its size and, if there is one, a pointer to `result`.
    what : str
        What it makes, for errors.
    take : callable
        Gives memory of a size.

    Returns
    -------
    array
        The memory, which must live as long as what was made in it.
    """
    size = ctypes.c_size_t()
    nowhere, there = ((), ()) if result is None else ((None,), (ctypes.byref(result),))
    check_status(function(*given, None, ctypes.byref(size), *nowhere), what)
    memory = take(size.value)
    check_status(function(*given, address(memory), ctypes.byref(size), *there), what)
    return memory


class Workspace:
    """Memory that is reused, so that large blocks are not allocated for every job.

    Several threads may take from it at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[npt.NDArray[np.uint8]] = []

    def __reduce__(self) -> tuple[type[Workspace], tuple[()]]:
        """Let copies, also those in other processes, start empty."""
        return Workspace, ()

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """Return memory of at least that size, until it is given back."""
        with self._lock:
            for place, memory in enumerate(self._free):
                if memory.size >= size:
                    return self._free.pop(place)
            self._free.clear()  # all too small
        return aligned_memory(size)

    def give_back(self, memory: npt.NDArray[np.uint8]) -> None:
        """Take memory back that no job uses any more."""
        with self._lock:
            self._free.append(memory)
