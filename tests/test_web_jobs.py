from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable

import pytest
from messages import refused

from nlnet.errors import Cancelled, InputError
from nlnet.web.queue import Busy, ClientGone, JobQueue, Progress, Standing, TimedOut

PATIENCE = 20.0


def never() -> Awaitable[object]:
    return asyncio.Event().wait()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), PATIENCE)

    asyncio.run(bounded())


class Blocker:
    """A job that runs until it is told to end, and sees whether it was stopped."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()
        self.stopped = False

    def __call__(self, go_on: Progress) -> str:
        self.begun.set()
        while not self.end.wait(0.005):
            if not go_on(0.5):
                self.stopped = True
                raise Cancelled
        return "done"


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


# the queue


def test_jobs_run_in_turn_and_give_their_results() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=10, seconds=10)
        order: list[int] = []

        def job(number: int) -> Callable[[Progress], int]:
            def work(go_on: Progress) -> int:
                order.append(number)
                return number**2

            return work

        results = await asyncio.gather(*(queue.run(job(number), never) for number in range(5)))
        assert results == [0, 1, 4, 9, 16]
        assert order == [0, 1, 2, 3, 4]
        await until(lambda: queue.unfinished == 0)

    run(test)


def test_a_full_queue_refuses() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=1, seconds=10)
        blocker = Blocker()
        accepted = [asyncio.ensure_future(queue.run(blocker, never)) for _ in range(2)]
        await until(blocker.begun.is_set)
        with refused(Busy, "2 images") as refusal:
            await queue.run(blocker, never)
        assert 1 <= refusal.value.retry_after <= 60
        blocker.end.set()
        assert await asyncio.gather(*accepted) == ["done", "done"]
        assert await queue.run(blocker, never) == "done"

    run(test)


def test_a_job_that_takes_too_long_is_stopped() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=1, seconds=0.05)
        with refused(TimedOut, "0.05 seconds"):
            await queue.run(Blocker(), never)
        # Waiting does not count, and the next job has all of its time.
        assert await queue.run(lambda go_on: go_on(0.1), never) is True

    run(test)


def test_nobody_waits_any_more() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=2, seconds=10)
        gone = asyncio.Event()
        running, waiting = Blocker(), Blocker()
        jobs = [asyncio.ensure_future(queue.run(job, gone.wait)) for job in (running, waiting)]
        await until(running.begun.is_set)
        gone.set()
        assert [type(end) for end in await asyncio.gather(*jobs, return_exceptions=True)] == [
            ClientGone,
            ClientGone,
        ]
        await until(lambda: queue.unfinished == 0)
        assert running.stopped
        assert not waiting.begun.is_set()

    run(test)


def test_errors_of_a_job_come_out() -> None:
    async def test() -> None:
        def fail(go_on: Progress) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await JobQueue(1, 10).run(fail, never)

    run(test)


def test_closing_finishes_the_running_job_only() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=2, seconds=10)
        running, waiting = Blocker(), Blocker()
        jobs = [asyncio.ensure_future(queue.run(job, never)) for job in (running, waiting)]
        await until(running.begun.is_set)
        queue.close()
        with refused(Busy, "stopping"):
            await jobs[1]
        with refused(Busy, "stopping"):
            await queue.run(waiting, never)
        running.end.set()
        assert await jobs[0] == "done"
        await queue.finished()
        assert not waiting.begun.is_set()

    run(test)


# how far it is


def test_a_job_has_a_place_and_a_progress() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=3, seconds=10)
        first, second = Blocker(), Blocker()
        jobs = [
            asyncio.ensure_future(queue.run(job, never, key))
            for job, key in ((first, "first"), (second, "second"))
        ]
        await until(lambda: queue.standing("first") == Standing(ahead=0, share=0.5))
        assert queue.standing() == Standing(0, 0.5)
        assert queue.standing("second") == Standing(ahead=1, share=0.0)
        assert queue.standing("third") is None
        with refused(InputError, "'second'", "another image"):
            await queue.run(second, never, "second")
        first.end.set()
        await until(lambda: queue.standing("second") == Standing(0, 0.5))
        second.end.set()
        assert await asyncio.gather(*jobs) == ["done", "done"]
        await until(lambda: queue.standing() is None)

    run(test)


def test_an_abort_stops_the_running_job_and_tells_whoever_waits() -> None:
    async def test() -> None:
        queue = JobQueue(waiting=2, seconds=10)
        running = Blocker()
        job = asyncio.ensure_future(queue.run(running, never))
        await until(running.begun.is_set)
        queue.close()
        queue.abort()
        with refused(Busy, "stopping"):
            await job
        await queue.finished()
        assert running.stopped

    run(test)


def test_a_job_that_fails_leaves_no_image_behind() -> None:
    class Image:
        pass

    async def test() -> None:
        kept: list[weakref.ref[Image]] = []

        def fail(go_on: Progress) -> None:
            image = Image()
            kept.append(weakref.ref(image))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as failure:
            await JobQueue(1, 10).run(fail, never)
        assert kept[0]() is None
        assert failure.value is not None  # it is still there, and held the image before

    run(test)
