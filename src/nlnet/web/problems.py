"""Errors as responses: a sentence for people, a status for programs."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from nlnet.errors import NLNetError
from nlnet.web.queue import Busy, ClientGone, TimedOut
from nlnet.web.uploads import BadForm

_CLIENT_CLOSED_REQUEST = 499
"""What nginx logs when nobody waits for the answer any more."""


def answer(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the answer that tells a problem."""
    return JSONResponse({"detail": " ".join(sentence.split())}, status, headers)


def handle_problems(app: FastAPI) -> None:
    """Let every error that can be foreseen become an answer."""

    @app.exception_handler(NLNetError)
    async def unusable(request: Request, error: NLNetError) -> Response:
        return answer(422, str(error))

    @app.exception_handler(BadForm)
    async def bad_form(request: Request, error: BadForm) -> Response:
        # The rest of what the client wanted to send is not read.
        return answer(error.status, str(error), {"Connection": "close"})

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> Response:
        return answer(503, str(error), {"Retry-After": str(error.retry_after)})

    @app.exception_handler(TimedOut)
    async def timed_out(request: Request, error: TimedOut) -> Response:
        return answer(504, str(error))

    @app.exception_handler(MemoryError)
    async def out_of_memory(request: Request, error: MemoryError) -> Response:
        return answer(413, "The image needs more memory than this server has.")

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=_CLIENT_CLOSED_REQUEST)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return answer(422, f"{first['loc'][-1]}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        return answer(error.status_code, _sentence(request, error), headers)

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        return answer(500, "The server made a mistake; its log says more.")


def _sentence(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"There is nothing at {request.url.path[:80]!r}."
    if error.status_code == 405:
        return f"{request.url.path[:80]!r} does not take {request.method}."
    return str(error.detail)
