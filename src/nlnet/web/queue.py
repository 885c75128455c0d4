"""The queue: one job at a time in a thread, a bounded number waiting, each with a time limit.

One at a time because a job uses all CPUs already: two at once would take twice as long each, and
twice the memory.
"""

import asyncio
import ctypes
import gc
import math
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from starlette.exceptions import HTTPException

from nlnet.errors import InputError
from nlnet.progress import Progress

Result = TypeVar("Result")

_FIRST_GUESS_SECONDS = 1.0
_MEMORY = 0.7
"""Weight of the past in the running mean of job times."""


class Busy(HTTPException):
    """No place for another job; `retry_after` says in how many seconds there may be one."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(503, message, {"Retry-After": str(retry_after)})
        self.retry_after = retry_after


class TimedOut(HTTPException):
    """The job ran longer than it may."""


class ClientGone(HTTPException):
    """The client has closed its connection; 499 is what nginx logs then."""

    def __init__(self) -> None:
        super().__init__(499, "The client has gone.")


class Standing(NamedTuple):
    """The progress of a job."""

    ahead: int
    """Jobs that come before it, the running one included; 0 once it runs itself."""
    share: float
    """How much of its work is done, from 0 to 1."""


class _Job:
    """One job: its name, its progress, and whether it has been stopped."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.share = 0.0
        self.stopped = False


class JobQueue:
    """A worker thread with a bounded queue; used from one event loop.

    Parameters
    ----------
    waiting : int
        Jobs that may wait while one runs.
    seconds : float
        Time a job may run; checked whenever the job reports progress.
    """

    def __init__(self, waiting: int, seconds: float) -> None:
        self._capacity = waiting + 1
        self._seconds = seconds
        self._mean_seconds = _FIRST_GUESS_SECONDS
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="nlnet-job")
        self._unfinished: dict[Future[Any], _Job] = {}  # in the order of their turns
        self.closing = asyncio.Event()
        self._aborting = asyncio.Event()

    @property
    def unfinished(self) -> int:
        """Jobs that run or wait."""
        return len(self._unfinished)

    def standing(self, key: str | None = None) -> Standing | None:
        """Return the progress of the job with that key, or else of the one that runs, if any."""
        for ahead, job in enumerate(self._unfinished.values()):
            if key in (None, job.key):
                return Standing(ahead, job.share)
        return None

    def check_open(self) -> None:
        """Raise Busy once the queue is closed."""
        if self.closing.is_set():
            raise Busy("The server is stopping; try again later.", retry_after=10)

    def check_room(self) -> None:
        """Raise Busy unless there is a place for another job."""
        self.check_open()
        if self.unfinished >= self._capacity:
            waiting_seconds = math.ceil(self._mean_seconds * self.unfinished)
            raise Busy(
                f"The server is busy with {self.unfinished} images; try again later.",
                retry_after=min(60, max(1, waiting_seconds)),
            )

    async def run(
        self,
        work: Callable[[Progress], Result],
        gone: Callable[[], Awaitable[object]],
        key: str | None = None,
    ) -> Result:
        """Return what `work` returns, computed in the worker thread.

        Parameters
        ----------
        work : callable
            Called with the function to report progress to.
        gone : callable
            Returns an awaitable that ends when the client has gone; the job is then stopped.
        key : str, optional
            The name by which `standing` finds the job.

        Raises
        ------
        Busy
            If there is no place, or the server stops before the job's turn comes.
        TimedOut
            If the job ran too long.
        ClientGone
            If `gone` ended first.
        InputError
            If another job has that key.
        """
        self.check_room()
        if key is not None and self.standing(key) is not None:
            raise InputError(f"job is {key!r}, but another image is at work under that name.")
        job = _Job(key)
        future = self._submit(job, work)
        answer = asyncio.wrap_future(future)
        try:
            done = await first_of(answer, gone(), self._aborting.wait())
            if future.cancelled() or self._aborting.is_set():
                self.check_open()  # it is not, and says so
            if answer not in done:
                raise ClientGone
            return answer.result()
        finally:
            job.stopped = True  # at its next report, if it runs

    def close(self) -> None:
        """Let the running job finish, and refuse those that wait and all that come."""
        self.closing.set()
        for future in tuple(self._unfinished):
            future.cancel()
        self._executor.shutdown(wait=False)

    def abort(self) -> None:
        """Close the queue and stop the running job; its client gets an error."""
        self.close()
        self._aborting.set()

    async def finished(self) -> None:
        """Wait until the running job has ended."""
        await asyncio.to_thread(self._executor.shutdown)

    def _submit(self, job: _Job, work: Callable[[Progress], Result]) -> Future[Result]:
        loop = asyncio.get_running_loop()
        future = self._executor.submit(self._run, job, work)
        self._unfinished[future] = job
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._unfinished.pop, done, None)
        )
        return future

    def _run(self, job: _Job, work: Callable[[Progress], Result]) -> Result:
        """Do the work, in the worker thread."""
        start = time.monotonic()

        def go_on(share: float) -> bool:
            job.share = share
            if time.monotonic() - start > self._seconds:
                taken = f"The work took longer than {self._seconds:g} seconds and was stopped"
                raise TimedOut(504, f"{taken}; try a smaller image.")
            return not job.stopped

        try:
            return work(go_on)
        except BaseException as error:
            # The frames hold the image; the error itself may live for a while.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            taken = time.monotonic() - start
            self._mean_seconds = _MEMORY * self._mean_seconds + (1 - _MEMORY) * taken
            _give_back_memory()


async def first_of(
    *waiting: Awaitable[Any], timeout: float | None = None
) -> Collection[asyncio.Future[Any]]:
    """Wait until one ends, or the timeout; cancel the others, and return those that ended."""
    futures = [asyncio.ensure_future(each) for each in waiting]
    try:
        done, _ = await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return done
    finally:
        for future in futures:
            future.cancel()


def _give_back_memory() -> None:
    """Return the memory of an image to the system: an idle server would keep much of it.

    Arrays in reference cycles stay until the garbage collector runs, and the C library keeps freed
    blocks for later use.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; others have none
        if trim is not None:
            trim(0)
