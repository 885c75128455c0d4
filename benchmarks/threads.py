"""Bounds on the cores a method uses, each by the means its library has."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

import threadpoolctl


@contextlib.contextmanager
def limit_threads(count: int, *, pinned: bool = False) -> Iterator[None]:
    """Let every library loaded so far use `count` threads.

    OpenCV and torch have calls of their own; threadpoolctl does it for BLAS and OpenMP; nlnet gets
    the number as an argument. What has no setting at all is `pinned`: the calling thread, and all
    threads it starts meanwhile, may use `count` CPUs only (on Linux; elsewhere it is not bounded).
    """
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    with contextlib.ExitStack() as stack:
        stack.enter_context(threadpoolctl.threadpool_limits(count))
        if pinned and hasattr(os, "sched_setaffinity"):
            allowed = os.sched_getaffinity(0)
            os.sched_setaffinity(0, sorted(allowed)[:count])
            stack.callback(os.sched_setaffinity, 0, allowed)
        yield
