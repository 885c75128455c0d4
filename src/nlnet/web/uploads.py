"""Reading uploads within limits of size, time and memory; nothing is written to disk."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import AsyncGenerator, Mapping

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.types import Message

from nlnet.errors import InputError
from nlnet.web.limits import Limits
from nlnet.web.memory import Claim
from nlnet.web.queue import Busy, ClientGone, JobQueue

_MAX_FIELDS = 20
_MAX_FIELD_BYTES = 1024
_DISCARD_SECONDS = 5.0


class BadForm(Exception):  # noqa: N818 - named for what it is about
    """The request is not a form that can be read; `status` is the HTTP status that says so."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Upload:
    """A file that was sent, and the fields that came with it."""

    data: bytes
    filename: str
    fields: Mapping[str, str]


async def read_upload(request: Request, limits: Limits, queue: JobQueue, claim: Claim) -> Upload:
    """Read a multipart form of one file, called ``file``, and some fields.

    Raises
    ------
    BadForm
        If it is no such form, too large, or too slow.
    Busy
        If the server has no room for it.
    ClientGone
        If the client stopped in the middle.
    InputError
        If a field is given twice, or there is no file.
    """
    content_type, _ = parse_options_header(request.headers.get("content-type"))
    stream = _Stream(request, limits, queue, claim)
    try:
        if content_type != b"multipart/form-data":
            raise BadForm("The request must be a form of the type multipart/form-data.", 415)
        stream.check_start()
        parser = MultiPartParser(
            request.headers,
            stream.chunks(),
            max_files=1,
            max_fields=_MAX_FIELDS,
            max_part_size=_MAX_FIELD_BYTES,
        )
        # No upload is larger than this, so the parser's temporary file stays in memory.
        parser.spool_max_size = limits.upload_bytes
        form = await parser.parse()
    except MultiPartException as error:
        await stream.discard()
        raise BadForm(f"The form cannot be read: {error.message}", 400) from error
    except (BadForm, Busy):
        await stream.discard()
        raise
    try:
        return await _to_upload(form.multi_items())
    finally:
        await form.close()


async def _to_upload(items: list[tuple[str, UploadFile | str]]) -> Upload:
    names = [name for name, _ in items]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The field {name[:40]!r} is given more than once.")
    content = dict(items)
    file = content.pop("file", None)
    if not isinstance(file, UploadFile):
        raise InputError("The form has no file in its field 'file'.")
    # The parser takes one file only, so the others are plain text.
    fields = {name: value for name, value in content.items() if isinstance(value, str)}
    return Upload(await file.read(), file.filename or "image", fields)


class _Stream:
    """The body of a request, within its bounds."""

    def __init__(self, request: Request, limits: Limits, queue: JobQueue, claim: Claim) -> None:
        self._request = request
        self._limits = limits
        self._queue = queue
        self._claim = claim
        self._ended = False

    def check_start(self) -> None:
        """Refuse an upload that declares too large a size, or comes when the queue is full."""
        declared = self._request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._limits.upload_bytes:
            raise self._too_large()
        self._queue.check_room()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body piece by piece."""
        received = 0
        deadline = time.monotonic() + self._limits.upload_seconds
        while not self._ended:
            chunk = await self._next(deadline - time.monotonic())
            received += len(chunk)
            if received > self._limits.upload_bytes:
                raise self._too_large()
            self._claim.add(len(chunk))
            yield chunk

    async def discard(self) -> None:
        """Read and drop the rest of the body, for a few seconds.

        Clients read the answer only when they have sent everything. A client that sent an
        ``Expect`` header waits for permission, and has sent nothing yet.
        """
        if "expect" in self._request.headers:
            return
        try:
            deadline = time.monotonic() + _DISCARD_SECONDS
            while not self._ended:
                await self._next(deadline - time.monotonic())
        except (BadForm, Busy):
            pass

    async def _next(self, seconds: float) -> bytes:
        """Return the next piece of the body; give up after that time, or when the server stops."""
        receiving = asyncio.ensure_future(self._request.receive())
        closing = asyncio.ensure_future(self._queue.closing.wait())
        try:
            await asyncio.wait(
                {receiving, closing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if receiving.done():
                return self._take(receiving.result())
            self._queue.check_open()
            raise BadForm(
                f"The upload took longer than {self._limits.upload_seconds:g} seconds.", 408
            )
        finally:
            receiving.cancel()
            closing.cancel()

    def _take(self, message: Message) -> bytes:
        if message["type"] == "http.disconnect":
            self._ended = True
            raise ClientGone
        self._ended = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    def _too_large(self) -> BadForm:
        megabytes = math.floor(self._limits.upload_bytes / 2**20 * 10) / 10
        return BadForm(f"The upload is larger than {megabytes:g} MB, the most that is taken.", 413)
