"""Threads over tiles: kernels release the GIL, so plain threads use all cores."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import threadpoolctl

from nlnet.arrays import Array

CACHE_LINE = 64
"""Bytes of a cache line, or a multiple of them."""

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_cpus() -> int:
    """Return the number of CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """Find the BLAS that numpy has loaded, once: it takes milliseconds."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _SingleThreadedBlas:
    """Holds BLAS to one thread while any block is open.

    The limit is one of the whole process, so overlapping blocks of several threads share it: the
    first sets it, and the last, not whichever was first, restores what was there before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._limit = _blas().limit(limits=1)
            self._blocks += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                self._limit.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()


class Workers:
    """A pool of threads for the length of a ``with`` block, and their scratch memory.

    Inside the block a matrix product runs in the thread that asks for it: BLAS makes no threads of
    its own. The calling thread is one of the threads.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = available_cpus() if threads is None else threads
        self._local = threading.local()
        self._stack = contextlib.ExitStack()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        self._stack.enter_context(_single_threaded_blas)
        if self.threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.threads - 1))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._pool = None

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        done: Callable[[int], None] | None = None,
    ) -> list[Result]:
        """Return the function's results in the order of the tasks, whatever the threads do.

        `done` is called in the calling thread, now and then and at the end, with the number of
        tasks finished so far. If it, or a task, raises, the tasks not yet started are dropped and
        the error comes out here.
        """
        waiting = deque(enumerate(tasks))
        total = len(waiting)
        results: dict[int, Result] = {}

        def work(report: Callable[[int], None] | None = None) -> None:
            while True:
                try:
                    number, task = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[number] = function(task)
                    if report is not None:
                        report(len(results))
                except BaseException:
                    waiting.clear()
                    raise

        # The calling thread works too: to wake threads takes long beside the work of a tile.
        helpers: list[Future[None]] = []
        if self._pool is not None:
            helpers = [self._pool.submit(work) for _ in range(min(self.threads, total) - 1)]
        work(done)
        for helper in helpers:
            helper.result()
        if helpers and done is not None:
            done(total)
        return [results[number] for number in range(total)]

    def scratch(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return memory of the calling thread's own, with whatever was left in it.

        Asking for the same name again gives the same memory: big arrays are not made anew, page by
        page, for every tile.
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        held: Array | None = getattr(self._local, name, None)
        if held is None or held.size < size:
            held = _aligned_zeros(size)
            setattr(self._local, name, held)
        return held[:size].view(dtype).reshape(shape)


def _aligned_zeros(size: int) -> Array:
    """Return so many bytes that start at a cache line."""
    memory = np.zeros(size + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size]
