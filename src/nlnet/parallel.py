"""Threads: the number of CPUs, and keeping BLAS to one thread."""

import functools
import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threadpoolctl


def available_cpus() -> int:
    """Return the number of CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _blas() -> "threadpoolctl.ThreadpoolController":
    """Find the BLAS that numpy has loaded, once: it takes milliseconds."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def _take_control() -> None:
    """Let this thread set limits.

    Since version 3.8 of threadpoolctl, only one thread may do so: the first one that did, until it
    gives up control. Limits set by other threads are ignored without an error.
    """
    for library in _blas().lib_controllers:
        give_up = getattr(library, "clear_controlling_thread", None)
        if give_up is not None:
            give_up(force=True)


class _SingleThreadedBlas:
    """Holds BLAS to one thread while any block is open.

    The threads of BLAS wait for each other in busy loops. If the cores also do other work, the
    thread that the others wait for may be suspended, and a product that should take milliseconds
    takes seconds.

    The limit applies to the whole process, so overlapping blocks of several threads share it: the
    first one sets it, and the last one restores the limit there was before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                _take_control()
                self._limit = _blas().limit(limits=1)
            self._blocks += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                _take_control()
                self._limit.restore_original_limits()
                _take_control()


single_threaded_blas = _SingleThreadedBlas()
"""A context for matrix products: ``with single_threaded_blas: ...``"""
