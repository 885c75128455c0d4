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

_FORESEEN = (NLNetError, BadForm, Busy, TimedOut, MemoryError, ClientGone)


def handle_problems(app: FastAPI) -> None:
    """Let every error become an answer."""
    for kind in (*_FORESEEN, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    """Return the answer that tells a problem."""
    status, sentence, headers = 500, "The server made a mistake; its log says more.", {}
    match error:
        case ClientGone():
            return Response(status_code=_CLIENT_CLOSED_REQUEST)
        case NLNetError():
            status, sentence = 422, str(error)
        case BadForm():
            # The rest of what the client wanted to send is not read.
            status, sentence, headers = error.status, str(error), {"Connection": "close"}
        case Busy():
            status, sentence = 503, str(error)
            headers = {"Retry-After": str(error.retry_after)}
        case TimedOut():
            status, sentence = 504, str(error)
        case MemoryError():
            status, sentence = 413, "The image needs more memory than this server has."
        case RequestValidationError():
            first = error.errors()[0]
            status, sentence = 422, f"{first['loc'][-1]}: {first['msg']}."
        case HTTPException():
            status, sentence = error.status_code, _sentence(request, error)
            headers = dict(error.headers or {})
    return JSONResponse({"detail": " ".join(sentence.split())}, status, headers)


def _sentence(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"There is nothing at {request.url.path[:80]!r}."
    if error.status_code == 405:
        return f"{request.url.path[:80]!r} does not take {request.method}."
    return str(error.detail)
