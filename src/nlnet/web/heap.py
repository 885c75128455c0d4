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
    """The memory of this process, as large as it is when nothing is worked on.

    Arrays of an image can be part of reference cycles, which Python breaks when it has made many
    new objects, and a server that idles makes none. The C library then keeps blocks of up to 32 MB
    for the next image. Together that was more than a gigabyte after one large photo.

    So blocks of a megabyte and more are mapped, each on its own, and go back to the system when
    they are freed; and threads share two arenas, or small blocks that live on keep pages of many.
    """

    def __init__(self) -> None:
        self._level = 0
        self._trim = _find_trim()
        if self._trim is not None:
            library = ctypes.CDLL(None)
            library.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
            library.mallopt(_M_ARENA_MAX, _ARENAS)

    def settle(self) -> None:
        """Exclude all objects that exist now from garbage collection: they stay for good."""
        gc.collect()
        gc.freeze()
        self.give_back()

    def give_back(self) -> None:
        """Return to the system what is not used any more, if it is much."""
        if self._trim is None or _resident() < self._level + _GROWTH:
            return
        gc.collect()
        self._trim(0)
        self._level = _resident()


def _find_trim() -> Callable[[int], object] | None:
    """Return glibc's function; other C libraries have none, and less of the habit."""
    if sys.platform != "linux" or not _STATISTICS.exists():
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
