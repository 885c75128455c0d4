"""Responses with a file, sent in pieces; a client that stops reading is dropped."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nlnet.web.memory import Claim

_PIECE = 2**18


def disposition(filename: str, kind: str = "attachment") -> str:
    """Return a Content-Disposition that names a file, for old programs and for new ones.

    Examples
    --------
    >>> disposition("cat.png")
    'attachment; filename="cat.png"'
    >>> print(disposition("Käse.png"))
    attachment; filename="K_se.png"; filename*=UTF-8''K%C3%A4se.png
    """
    odd = set('"\\%')
    plain = "".join("_" if letter in odd or not letter.isascii() else letter for letter in filename)
    named = f'{kind}; filename="{plain}"'
    # Programs such as curl know the first name only.
    return named if plain == filename else f"{named}; filename*=UTF-8''{quote(filename, safe='')}"


def join_form(parts: Mapping[str, tuple[str, str, bytes]]) -> tuple[str, bytes]:
    """Return files as a form, as browsers read it with ``Response.formData()``.

    Parameters
    ----------
    parts : mapping
        For each field a name of a file, its media type, and its bytes.

    Returns
    -------
    tuple of str and bytes
        The form's media type, and the form.
    """
    boundary = secrets.token_hex(16)
    pieces = []
    for field, (filename, media_type, data) in parts.items():
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; '
            f'filename="{quote(filename)}"\r\nContent-Type: {media_type}\r\n\r\n'
        )
        pieces += [head.encode(), data, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(pieces)


class ResultResponse(Response):
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
        named = {"Content-Disposition": disposition(filename)}
        super().__init__(content, media_type=media_type, headers={**headers, **named})
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
