"""Results on their way out: in pieces, so that a slow reader holds little and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nlnet.web.memory import Claim

_PIECE = 2**18


class FileResponse(Response):
    """The bytes of a file.

    Parameters
    ----------
    content : bytes
        The file.
    media_type : str
        Its type.
    filename : str
        The name to save it under.
    headers : mapping
        Further headers.
    claim : Claim
        Given back as soon as the file is sent.
    stall_seconds : float
        Time the client may take to read a piece; then the connection is dropped.
    """

    def __init__(
        self,
        content: bytes,
        media_type: str,
        filename: str,
        headers: Mapping[str, str],
        *,
        claim: Claim,
        stall_seconds: float,
    ) -> None:
        disposition = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
        super().__init__(
            content, media_type=media_type, headers={**headers, "Content-Disposition": disposition}
        )
        self._claim = claim
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        with self._claim:
            await send(start)
            for offset in range(0, len(self.body), _PIECE):
                body = bytes(self.body[offset : offset + _PIECE])
                more = offset + _PIECE < len(self.body)
                piece = {"type": "http.response.body", "body": body, "more_body": more}
                try:
                    await asyncio.wait_for(send(piece), self._stall_seconds)
                except asyncio.TimeoutError:
                    return  # an incomplete answer makes the server drop the connection
