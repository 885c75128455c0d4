"""Jobs of the engine, and the threads that work on them.

The engine has no threads of its own: a thread that calls ``nlnet_work`` runs one task of the job,
if one is ready. Here some threads do so until the job is finished, or until progress, a callback or
Ctrl-C ends it.
"""

import ctypes
import threading
from collections.abc import Sequence
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
        Where callbacks leave theirs.
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
        self._failures = [] if failures is None else failures
        self._handle = ctypes.c_void_p()
        self._memory = call(maker, handle, ctypes.byref(task), result=self._handle)
        lock = threading.Lock()
        self._turn = threading.Condition(lock)  # for workers without a task that is ready
        self._news = threading.Condition(lock)  # for the thread that waits for them
        self._ended = 0  # tasks
        self._working = 0  # threads
        self._shares: list[float] | None = None  # done after each task, if anybody wants to know

    def run(self, threads: int, progress: Progress | None = None) -> None:
        """Let threads work until the job is finished; `progress` is called with the share done.

        The calling thread only waits for them, and tells the progress. So signal handlers, which
        Python runs in the main thread, may raise: at the entry of a callback, which they would
        interrupt otherwise, nothing can catch what they raise.

        Raises
        ------
        BaseException
            The first exception that progress, a callback or a signal raised; by then no thread
            works on the job any more.
        """
        self._shares = None if progress is None else []
        told = -1.0

        def report(share: float) -> None:
            """Tell the progress, if it has increased."""
            nonlocal told
            if progress is not None and share > told:
                told = share
                progress(share)

        workers: list[threading.Thread] = []
        try:
            report(0.0)
            for _ in range(threads):
                workers.append(threading.Thread(target=self._work, name="nlnet engine"))
                with self._turn:
                    self._working += 1
                workers[-1].start()
            working = True
            while working:
                working, shares = self._wait()
                for share in shares:
                    report(share)
        except BaseException as error:
            self._failures.append(error)
            self._library.cancel(self._handle)
            with self._turn:
                self._turn.notify_all()
        for worker in filter(threading.Thread.is_alive, workers):
            worker.join()
        if self._failures:
            raise self._failures[0]
        check_status(self._library.failure(self._handle))
        report(1.0)

    def _wait(self) -> tuple[bool, list[float]]:
        """Wait, but not for long; return whether anybody still works, and new shares done."""
        with self._turn:
            if self._working and not self._shares:
                self._news.wait(_PATIENCE)
            shares = self._shares or []
            if shares:
                self._shares = []
            return self._working > 0, shares

    def _work(self) -> None:
        """Run tasks until there are no more."""
        state = IDLE
        try:
            while state not in (DONE, CANCELLED):
                ended = self._ended
                state = self._library.work(self._handle)
                with self._turn:
                    if state != IDLE:
                        self._ended += 1
                        self._turn.notify_all()
                        if self._shares is not None:
                            self._shares.append(self._library.progress(self._handle))
                            self._news.notify()
                    elif self._ended == ended:  # else another task may be ready by now
                        self._turn.wait(_PATIENCE)
        finally:
            with self._turn:
                self._working -= 1
                self._news.notify()
