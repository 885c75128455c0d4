"""Threads over tiles: kernels release the GIL, so plain threads use all cores."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import threadpoolctl

from nlnet.arrays import Array

CACHE_LINE = 64
"""Bytes of a cache line, or a multiple of them."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Task(NamedTuple):
    """Something to do in any thread, and what follows from it."""

    work: Callable[[], Any]
    end: Callable[[Any], object]
    """Called with the result of the work; only one thread at a time calls an `end`."""


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

    Several threads of BLAS wait for each other in busy loops. On cores that have other work, the
    one that is waited for may not get its turn for long, and a product of milliseconds takes
    seconds.

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


single_threaded_blas = _SingleThreadedBlas()
"""A context for matrix products: ``with single_threaded_blas: ...``"""


class _Run:
    """Tasks that several threads work through together."""

    def __init__(self, next_task: Callable[[], Task | None]) -> None:
        self._next_task = next_task
        self._turn = threading.Condition()
        self._running = 0
        self._stopped = False

    def work(self, between: Callable[[], None]) -> None:
        """Work in this thread until no task is ready nor running, or any thread has failed."""
        task, result = None, None
        try:
            while True:
                with self._turn:
                    if task is not None:
                        self._end(task, result)
                    task = None if self._stopped else self._begin()
                    if task is None:
                        if self._stopped or self._running == 0:
                            return
                        self._turn.wait()
                between()
                if task is not None:
                    result = task.work()
        except BaseException:
            self._stopped = True
            with self._turn:
                self._turn.notify_all()
            raise

    def _begin(self) -> Task | None:
        task = self._next_task()
        self._running += task is not None
        return task

    def _end(self, task: Task, result: object) -> None:
        task.end(result)
        self._running -= 1
        self._turn.notify_all()


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
        self._stack.enter_context(single_threaded_blas)
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
        function: Callable[[Item], Result],
        items: Iterable[Item],
        done: Callable[[int], None] | None = None,
    ) -> list[Result]:
        """Return the function's results in the order of the items, whatever the threads do.

        `done` is called in the calling thread, now and then and at the end, with the number of
        items finished so far. If it, or the function, raises, the items not yet started are dropped
        and the error comes out here.
        """
        waiting = deque(enumerate(items))
        total = len(waiting)
        results: dict[int, Result] = {}

        def next_task() -> Task | None:
            if not waiting:
                return None
            number, item = waiting.popleft()
            return Task(
                functools.partial(function, item), functools.partial(results.__setitem__, number)
            )

        reported = 0

        def report() -> None:
            nonlocal reported
            if done is not None and reported < len(results):
                reported = len(results)
                done(reported)

        self.run(next_task, report, min(self.threads, total))
        report()
        return [results[number] for number in range(total)]

    def run(
        self,
        next_task: Callable[[], Task | None],
        between: Callable[[], None],
        threads: int | None = None,
    ) -> None:
        """Work through tasks that become ready as others end, until none is ready nor running.

        Parameters
        ----------
        next_task : callable
            Returns a task that is ready, or None. It and the tasks' `end` are called in any thread,
            but only one of them at a time.
        between : callable
            Called in the calling thread, between its tasks.
        threads : int, optional
            How many are worth while; by default all.

        If any of them raises, no more tasks are started and the error comes out here.
        """
        run = _Run(next_task)
        # The calling thread works too: to wake threads takes long beside the work of a tile.
        helpers: list[Future[None]] = []
        if self._pool is not None:
            wanted = self.threads if threads is None else threads
            helpers = [self._pool.submit(run.work, lambda: None) for _ in range(wanted - 1)]
        run.work(between)
        for helper in helpers:
            helper.result()

    def scratch(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return memory of the calling thread's own, with whatever was left in it.

        Asking for the same name again gives the same memory: big arrays are not made anew, page by
        page, for every tile.
        """
        size = math.prod(shape) * np.dtype(dtype).itemsize
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
