"""Errors as responses: a sentence for people, a status for programs."""

from __future__ import annotations

import re

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from nlnet.errors import NLNetError


def handle_problems(app: FastAPI) -> None:
    """Let every error become an answer."""
    for kind in (NLNetError, MemoryError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    """Return the answer that tells a problem."""
    status, sentence, headers = 500, "The server made a mistake; its log says more.", None
    match error:
        case NLNetError():
            status, sentence = 422, str(error)
        case MemoryError():
            status, sentence = 413, "The image needs more memory than this server has."
        case RequestValidationError():
            status, sentence = 422, _wrong_field(error)
        case HTTPException():
            status, headers = error.status_code, error.headers
            sentence = _sentence(request, error)
    return JSONResponse({"detail": " ".join(sentence.split())}, status, headers)


def _wrong_field(error: RequestValidationError) -> str:
    """Say what is wrong with the first wrong field, and what it holds."""
    first = error.errors()[0]
    name = str(first["loc"][1])
    if name == "file":
        return "The form has no file in its field 'file'."
    if first["type"] == "extra_forbidden":
        return f"The form has a field {name[:40]!r}, which is not known; /docs lists the fields."
    given = (error.body or {}).get(name, first["input"])
    return f"{name} is {str(given)[:80]!r}, but {re.sub(r'^.*? should', 'must', first['msg'])}."


def _sentence(request: Request, error: HTTPException) -> str:
    path = repr(request.url.path[:80])
    if error.status_code == 404:
        return f"There is nothing at {path}."
    if error.status_code == 405:
        return f"{path} does not take {request.method}."
    return error.detail.rstrip(".") + "."
