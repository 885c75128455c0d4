"""Jobs of the engine, and the threads that work on them.

The engine has no threads of its own: a thread that calls ``nlnet_work`` runs one task of the job,
if one is ready. Here the calling thread and some helpers do so until the job is finished, or until
progress, a callback or Ctrl-C ends it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

from nlnet.engine.library import CANCELLED, DONE, IDLE, check_status, load
from nlnet.engine.memory import call
from nlnet.parallel import available_cpus
from nlnet.progress import Progress

_PATIENCE = 0.1
"""Seconds to wait at most for other threads, so that Ctrl-C and progress are handled in time."""

_PIXELS_PER_THREAD = 2048
"""Below this, starting another thread takes longer than it saves."""


def threads_for(pixels: int, threads: int | None) -> int:
    """Return how many threads to use for this number of pixels; None asks for all CPUs."""
    wanted = available_cpus() if threads is None else threads
    return max(1, min(wanted, pixels // _PIXELS_PER_THREAD))


def memory_needed(maker: str, handle: Any, task: ctypes.Structure) -> int:
    """Return how many bytes of memory a job takes; parameters as for `Job`."""
    size = ctypes.c_size_t()
    given = (handle, ctypes.byref(task), None, ctypes.byref(size), None)
    check_status(getattr(load(), maker)(*given))
    return size.value


class Job:
    """A job, with all that must live as long as a thread works on it.

    Parameters
    ----------
    maker : str
        The function of the engine that makes it.
    handle : pointer
        The network or eye that runs, or several networks.
    task : Structure
        What to do, as that function takes it.
    kept : sequence of objects
        What the job has the addresses of: networks, arrays and callbacks.
    failures : list of exceptions, optional
        Where callbacks leave theirs; only for tasks that have callbacks.
    """

    def __init__(
        self,
        maker: str,
        handle: Any,
        task: ctypes.Structure,
        kept: Sequence[object],
        *,
        failures: list[BaseException] | None = None,
    ) -> None:
        self._library = load()
        self._kept = handle, task, kept
        self._calls_back = failures is not None
        self._failures = [] if failures is None else failures
        self._handle = ctypes.c_void_p()
        self._memory = call(maker, handle, ctypes.byref(task), result=self._handle)
        lock = threading.Lock()
        self._turn = threading.Condition(lock)  # for threads without a task that is ready
        self._news = threading.Condition(lock)  # for a main thread that does not work itself
        self._ended = 0  # tasks
        self._helping = 0  # helpers
        self._tells = False  # whether helpers report that a task has ended

    def run(self, threads: int, progress: Progress | None = None) -> None:
        """Work until the job is finished; `progress` is called here with the share done.

        Raises
        ------
        BaseException
            The first exception that progress, a callback or a signal raised; by then no thread
            works on the job any more.
        """
        # Python runs signal handlers in the main thread, also at the entry of a callback, where
        # nothing can catch what they raise. So the main thread leaves callbacks to others.
        watches = self._calls_back and threading.current_thread() is threading.main_thread()
        self._tells = progress is not None
        told = -1.0

        def report(least: float = 0.0) -> None:
            """Tell the progress, if it has increased."""
            nonlocal told
            share = max(least, self._library.progress(self._handle))
            if progress is not None and share > told:
                told = share
                progress(share)

        helpers: list[threading.Thread] = []
        try:
            report()
            while len(helpers) < (threads if watches else threads - 1):
                helpers.append(self._start_helper())
            if watches:
                self._watch(report)
            else:
                self._work(report)
        except BaseException as error:
            self._fail(error)
        for helper in helpers:
            helper.join()
        if self._failures:
            raise self._failures[0]
        check_status(self._library.failure(self._handle))
        report(1.0)

    def _start_helper(self) -> threading.Thread:
        helper = threading.Thread(target=self._help, name="nlnet engine")
        with self._turn:
            self._helping += 1
        helper.start()
        return helper

    def _help(self) -> None:
        """Work in a helper thread."""
        try:
            self._work(lambda: None)
        except BaseException as error:
            self._fail(error)
        with self._turn:
            self._helping -= 1
            self._news.notify()

    def _work(self, between: Callable[[], None]) -> None:
        """Work in this thread, calling `between` after each task, until there is no more to do."""
        while True:
            ended = self._ended
            state = self._library.work(self._handle)
            with self._turn:
                if state != IDLE:
                    self._ended += 1
                    self._turn.notify_all()
                    if self._tells:
                        self._news.notify()
                elif self._ended == ended:  # else another task may be ready by now
                    self._turn.wait(_PATIENCE)
            if state in (DONE, CANCELLED):
                return
            between()

    def _watch(self, between: Callable[[], None]) -> None:
        """Let the helpers work."""
        while True:
            with self._turn:
                if not self._helping:
                    return
                self._news.wait(_PATIENCE)
            between()

    def _fail(self, error: BaseException) -> None:
        self._failures.append(error)
        self._library.cancel(self._handle)
        with self._turn:
            self._turn.notify_all()
