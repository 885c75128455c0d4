"""The application: its pages and its HTTP API."""

from __future__ import annotations

import gc
import importlib.resources
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp

import nlnet
from nlnet.web import schema
from nlnet.web.forms import DenoiseForm, form_for
from nlnet.web.problems import handle_problems
from nlnet.web.security import guarded
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
    )
    app.state.service = service
    handle_problems(app)
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
        responses={200: schema.denoised(), **schema.problems()},
    )(denoise)
    uploads.post(
        "/api/preview",
        summary="Show an image",
        response_class=Response,
        responses={200: schema.png(), **schema.problems()},
    )(service.preview)
    app.include_router(uploads)
    app.get(
        "/api/jobs/{job}",
        summary="Tell how far the work on an image is",
        tags=["Images"],
        responses=schema.problems(400, 403, 422),
    )(service.standing)
    app.get("/api/models", tags=["Server"], responses=schema.problems(400, 403))(service.models)
    app.get("/healthz", tags=["Server"], responses=schema.problems(400, 403, 503))(service.health)


def _add_pages(app: FastAPI) -> None:
    assets = importlib.resources.files(fastapi_offline) / "static"
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    app.mount("/docs/assets", StaticFiles(directory=str(assets)), name="docs-assets")

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(_STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(_STATIC / "docs.html")
