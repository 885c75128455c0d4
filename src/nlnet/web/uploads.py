"""Reading uploads within limits of size, time and memory; nothing is written to disk."""

import asyncio
import math
import sys
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartParser
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from nlnet.web.queue import Busy, ClientGone, first_of

if TYPE_CHECKING:
    from nlnet.web.service import Service

_MAX_FIELDS = 20
_MAX_FIELD_BYTES = 1024
_DISCARD_SECONDS = 5.0

# An upload is never larger than the server's limit, so it need not go to a temporary file.
MultiPartParser.spool_max_size = sys.maxsize


class UploadRoute(APIRoute):
    """A route for a form with a file, which is read within the limits of the server.

    The answer is an error if the request is no such form, too large or too slow, or if the server
    has no room for it.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request, as FastAPI asks for it."""
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            upload = _Upload(request, request.app.state.service)
            try:
                upload.check_start()
                return await answer(upload)
            except HTTPException:
                await upload.discard()
                raise
            finally:
                upload.give_back()

        return handler


class _Upload(Request):
    """A request whose form has one file and some short fields, and is read within limits."""

    def __init__(self, request: Request, service: "Service") -> None:
        super().__init__(request.scope, self._receive_some)
        self._receive_any = request.receive
        self._service = service
        self._held = 0
        self._ended = False
        self._deadline = time.monotonic() + service.limits.upload_seconds

    async def form(self, **_: object) -> FormData:  # type: ignore[override]
        """Read the form, as FastAPI asks for it; each field may be there once."""
        limits = {"max_files": 1, "max_fields": _MAX_FIELDS, "max_part_size": _MAX_FIELD_BYTES}
        form = await super().form(**limits)
        names = [name for name, _ in form.multi_items()]
        for name in names:
            if names.count(name) > 1:
                await form.close()
                raise HTTPException(422, f"The field {name[:40]!r} is given more than once.")
        return form

    def check_start(self) -> None:
        """Refuse what is no form, declares too large a size, or comes when the queue is full."""
        if not self.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            raise _bad_form(415, "The request must be a form of the type multipart/form-data.")
        declared = self.headers.get("content-length", "0")
        if declared.isdecimal():
            self._check_size(int(declared))
        self._service.queue.check_room()

    async def _receive_some(self) -> Message:
        """Return the next piece of the body; once it has ended, what the client does next."""
        if self._ended:
            return await self._receive_any()
        message = await self._next(self._deadline)
        size = len(message.get("body", b""))
        self._check_size(self._held + size)
        if self._service.held_bytes + size > self._service.limits.held_bytes:
            raise Busy("The server holds as many images as it can; try again later.", 5)
        self._held += size
        self._service.held_bytes += size
        return message

    async def discard(self) -> None:
        """Read and drop the rest of the body, for a few seconds.

        Clients read the answer only when they have sent everything. A client that sent an
        ``Expect`` header waits for permission, and has sent nothing yet.
        """
        deadline = time.monotonic() + _DISCARD_SECONDS
        try:
            while not self._ended and "expect" not in self.headers:
                await self._next(deadline)
        except HTTPException:
            pass

    def give_back(self) -> None:
        """Give back the memory of the upload."""
        self._service.held_bytes -= self._held

    async def _next(self, deadline: float) -> Message:
        """Return the next message; give up at the deadline, or when the server stops."""
        receiving = asyncio.ensure_future(self._receive_any())
        closing = self._service.queue.closing.wait()
        done = await first_of(receiving, closing, timeout=deadline - time.monotonic())
        if receiving not in done:
            self._service.queue.check_open()
            seconds = self._service.limits.upload_seconds
            raise _bad_form(408, f"The upload took longer than {seconds:g} seconds.")
        message = receiving.result()
        self._ended = not message.get("more_body", False)
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    def _check_size(self, size: int) -> None:
        most = self._service.limits.upload_bytes
        if size > most:
            megabytes = math.floor(most / 2**20 * 10) / 10
            raise _bad_form(
                413, f"The upload is larger than {megabytes:g} MB, the most that is taken."
            )


def _bad_form(status: int, sentence: str) -> HTTPException:
    """Return the error; the rest of what the client wanted to send is not read."""
    return HTTPException(status, sentence, {"Connection": "close"})
