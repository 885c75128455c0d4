"""Gives the memory of an image back to the system as soon as it is done."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

_MAPPED = 2**20
_ARENAS = 2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
"""Names of glibc's <malloc.h>."""

_GROWTH = 32 * 2**20
"""Smaller growth is not worth a garbage collection."""

_STATISTICS = Path("/proc/self/statm")


class Heap:
    """Returns the memory of an image to the system, down to what an idle server needs.

    Two things would keep it, more than a gigabyte after one large photo. Arrays in reference cycles
    stay until the garbage collector runs, which it does not while the server is idle. And the C
    library keeps freed blocks of up to 32 MB for later use.

    So blocks from one megabyte on are mapped, which returns them as soon as they are freed, and all
    threads share two arenas, so that small blocks which live on are in few pages.
    """

    def __init__(self) -> None:
        self._level = 0
        self._trim = _find_trim()
        if self._trim is not None:
            library = ctypes.CDLL(None)
            library.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
            library.mallopt(_M_ARENA_MAX, _ARENAS)

    def settle(self) -> None:
        """Exclude the objects that exist now from garbage collection, as they are never freed."""
        gc.collect()
        gc.freeze()
        self.give_back()

    def give_back(self) -> None:
        """Return unused memory to the system, if there is much of it."""
        if self._trim is None or _resident() < self._level + _GROWTH:
            return
        gc.collect()
        self._trim(0)
        self._level = _resident()


def _find_trim() -> Callable[[int], object] | None:
    """Return `malloc_trim` of glibc, None with another C library."""
    if sys.platform != "linux" or not _STATISTICS.exists():
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
