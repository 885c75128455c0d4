"""Security headers of every response, and checks of every request."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""The names under which a server on the loopback interface may be called."""

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """ASGI middleware: security headers out; no foreign names and no foreign pages in; HEAD.

    Parameters
    ----------
    app : ASGI application
        What it guards.
    hosts : collection of str, optional
        Host names the server answers to; any by default. On the loopback interface this keeps
        pages from reaching the server through a name that they let resolve to it.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        head = scope["method"] == "HEAD"

        async def send_with_headers(message: Message) -> None:
            if head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        app = self._app if refusal is None else refusal
        # What GET would answer, without the body.
        await app({**scope, "method": "GET"} if head else scope, receive, send_with_headers)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            return _refuse(f"This server does not answer to the name {host[:80]!r}.")
        # Browsers send it along with uploads, and other programs need not.
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _refuse(f"This server takes no requests from pages of {origin[:80]!r}.")
        return None


def _name(host: str) -> str | None:
    """Return the name in a Host header, without its port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _refuse(message: str) -> JSONResponse:
    return JSONResponse({"detail": message}, status_code=403)
