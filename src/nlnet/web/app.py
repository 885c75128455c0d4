"""The application: its pages and its HTTP API, whose errors are sentences."""

import gc
import importlib.resources
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import nlnet
from nlnet.errors import NLNetError
from nlnet.web import schema
from nlnet.web.forms import DenoiseForm, form_for
from nlnet.web.service import Service
from nlnet.web.uploads import UploadRoute

_STATIC = Path(__file__).with_name("static")
_DESCRIPTION = "Removes noise from images. Nothing that is uploaded is stored."


def create_app(service: Service, hosts: Sequence[str] | None = None) -> ASGIApp:
    """Return the application that answers for a service.

    Parameters
    ----------
    service : Service
        What does the work.
    hosts : sequence of str, optional
        The names under which the server may be called; any by default. On the loopback interface
        they keep other sites from reaching the server through a name that resolves to it.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        # What exists now stays, and need not be looked at again by the garbage collector.
        gc.freeze()
        yield
        service.queue.close()
        await service.queue.finished()

    app = FastAPI(
        title="nlnet",
        version=nlnet.__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=schema.PROBLEMS,
        exception_handlers=dict.fromkeys(_PROBLEMS, _answer),
    )
    app.state.service = service
    _add_api(app, service)
    _add_pages(app)
    # Around all of it: FastAPI's own middleware would not see the answers to unforeseen errors.
    return guarded(TrustedHostMiddleware(app, hosts, www_redirect=False))


def _add_api(app: FastAPI, service: Service) -> None:
    """Add the methods of the service; what they say about themselves is their description."""
    uploads = APIRouter(route_class=UploadRoute, tags=["Images"])

    async def denoise(request: Request, form: DenoiseForm) -> Response:
        return await service.denoise(request, form)

    # A type that is not known before: it lists the models on offer.
    denoise.__annotations__ = {"request": Request, "form": form_for(service.catalog.names)}
    uploads.post(
        "/api/denoise",
        summary="Remove the noise from an image",
        description=service.denoise.__doc__,
        response_class=Response,
        responses={200: schema.DENOISED},
    )(denoise)
    uploads.post(
        "/api/preview",
        summary="Show an image",
        response_class=Response,
        responses={200: schema.PNG},
    )(service.preview)
    app.include_router(uploads)
    summary = "Tell how far the work on an image is"
    app.get("/api/jobs/{job}", summary=summary, tags=["Images"])(service.standing)
    app.get("/api/models", tags=["Server"])(service.models)
    app.get("/healthz", tags=["Server"])(service.health)


def _add_pages(app: FastAPI) -> None:
    assets = importlib.resources.files(fastapi_offline) / "static"
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    app.mount("/docs/assets", StaticFiles(directory=str(assets)), name="docs-assets")
    app.add_route("/", lambda _: FileResponse(_STATIC / "index.html"))
    app.add_route("/docs", lambda _: FileResponse(_STATIC / "docs.html"))


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


_PROBLEMS = (NLNetError, MemoryError, RequestValidationError, HTTPException, Exception)
"""Errors that become answers."""


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
