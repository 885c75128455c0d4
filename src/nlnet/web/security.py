"""Security headers of every response, and checks of every request."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names under which a server on the loopback interface may be called."""

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def guarded(app: ASGIApp) -> ASGIApp:
    """Return an application with security headers, which refuses other sites and answers HEAD."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = app
        headers = Headers(scope=scope)
        # Browsers send it along with uploads, and other programs need not.
        origin = headers.get("origin")
        host = headers.get("host", "")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            detail = f"This server takes no requests from pages of {origin[:80]!r}."
            answer = JSONResponse({"detail": detail}, status_code=403)
        # HEAD is what GET would answer; uvicorn leaves the body out.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await answer({**scope, "method": method}, receive, send_with_headers)

    return serve
