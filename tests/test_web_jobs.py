from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from messages import refused
from pictures import random_image
from starlette.requests import Request
from starlette.types import Message

from nlnet.errors import Cancelled, InputError
from nlnet.images import ImageFile, encode
from nlnet.model.model import Model
from nlnet.web.catalog import Catalog
from nlnet.web.limits import Limits
from nlnet.web.queue import Busy, ClientGone, JobQueue, Progress, Standing, TimedOut
from nlnet.web.responses import ResultResponse
from nlnet.web.service import Service
from nlnet.web.uploads import BadForm, read_upload

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


# uploads


def form(data: bytes) -> tuple[dict[str, str], bytes]:
    start = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    return {"content-type": "multipart/form-data; boundary=b"}, start + data + b"\r\n--b--\r\n"


def request_of(headers: dict[str, str], messages: list[Message | None]) -> Request:
    """A request whose client sends these messages; None is a client that keeps still."""

    async def receive() -> Message:
        message = messages.pop(0) if messages else None
        if message is None:
            await never()
        assert message is not None
        return message

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": raw}
    return Request(scope, receive)


def piece(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def service_of(model: Model, **limits: Any) -> Service:
    return Service(Catalog([model]), Limits(**limits))


async def read(service: Service, request: Request) -> bytes:
    with service.memory.claim() as claim:
        upload = await read_upload(request, service.limits, service.queue, claim)
        assert service.memory.free < service.limits.held_bytes
        return upload.data


def test_a_slow_upload_is_given_up(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model, upload_seconds=0.05)
        headers, body = form(b"x" * 100)
        with refused(BadForm, "0.05 seconds") as refusal:
            await read(service, request_of({**headers, "expect": "100"}, [piece(body[:50]), None]))
        assert refusal.value.status == 408
        assert service.memory.free == service.limits.held_bytes

    run(test)


def test_a_dropped_upload_leaves_nothing(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model)
        headers, body = form(b"x" * 100)
        messages = [piece(body[:50]), {"type": "http.disconnect"}]
        with pytest.raises(ClientGone):
            await read(service, request_of(headers, messages))
        assert service.memory.free == service.limits.held_bytes
        assert service.queue.unfinished == 0

    run(test)


def test_uploads_together_have_a_bound(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model, upload_bytes=1000)
        headers, body = form(b"x" * 700)
        slow = [request_of(headers, [piece(body[:600]), None]) for _ in range(13)]
        tasks = [asyncio.ensure_future(read(service, request)) for request in slow]
        await until(lambda: service.memory.free < 600)
        with refused(Busy, "as many images"):
            await read(service, request_of(headers, [piece(body, more=False)]))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        request = request_of(headers, [piece(body[:5]), piece(body[5:], more=False)])
        assert await read(service, request) == b"x" * 700
        assert service.memory.free == service.limits.held_bytes

    run(test)


def test_a_full_queue_refuses_before_reading(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model, waiting=0)
        blocker = Blocker()
        job = asyncio.ensure_future(service.queue.run(blocker, never))
        await until(blocker.begun.is_set)
        headers, body = form(b"x")
        messages: list[Message | None] = [piece(body, more=False)]
        with pytest.raises(Busy):
            await read(service, request_of({**headers, "expect": "100-continue"}, messages))
        assert len(messages) == 1
        with pytest.raises(Busy):
            await read(service, request_of(headers, messages))
        assert messages == []  # a client that is sending gets to read its answer
        blocker.end.set()
        await job

    run(test)


def test_closing_ends_slow_uploads(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model)
        headers, body = form(b"x")
        task = asyncio.ensure_future(read(service, request_of(headers, [piece(body[:9]), None])))
        await asyncio.sleep(0.02)
        service.queue.close()
        with refused(Busy, "stopping"):
            await task

    run(test)


# results


def test_a_client_that_goes_away_stops_its_job(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model)
        headers, body = form(encode(ImageFile(random_image((1500, 1500))), ".png"))
        messages = [piece(body, more=False), {"type": "http.disconnect"}]
        start = time.monotonic()
        with pytest.raises(ClientGone):
            await service.denoise(request_of(headers, messages))
        await until(lambda: service.queue.unfinished == 0)
        assert time.monotonic() - start < PATIENCE / 2

    run(test)


def test_results_count_until_they_are_sent(gray_model: Model) -> None:
    async def test() -> None:
        service = service_of(gray_model, stall_seconds=0.05)
        headers, body = form(encode(ImageFile(random_image((400, 1500))), ".png"))
        request = request_of(headers, [piece(body, more=False)])
        response = await service.preview(request)
        assert isinstance(response, ResultResponse)
        size = len(response.body)
        assert size > 2**19
        assert service.memory.free == service.limits.held_bytes - size
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)
            if len(sent) == 3:
                await never()  # a client that has stopped reading

        await response(request.scope, request.receive, send)
        assert len(sent) == 3
        assert service.memory.free == service.limits.held_bytes
        response = await service.preview(request_of(headers, [piece(body, more=False)]))
        sent.extend([{}] * 3)
        await response(request.scope, request.receive, send)
        pieces = [message["body"] for message in sent[7:]]
        assert b"".join(pieces) == response.body
        assert [message["more_body"] for message in sent[7:]][-1] is False

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
        assert queue.running == Standing(0, 0.5)
        assert queue.standing("second") == Standing(ahead=1, share=0.0)
        assert queue.standing("third") is None
        with refused(InputError, "'second'", "another image"):
            await queue.run(second, never, "second")
        first.end.set()
        await until(lambda: queue.standing("second") == Standing(0, 0.5))
        second.end.set()
        assert await asyncio.gather(*jobs) == ["done", "done"]
        await until(lambda: queue.running is None)

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
