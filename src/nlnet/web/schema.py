"""The API as OpenAPI describes it, where FastAPI cannot tell from the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from nlnet.web.catalog import AUTOMATIC
from nlnet.web.work import MEDIA_TYPES


class ModelInfo(BaseModel):
    """A model on offer."""

    name: str
    family: str | None
    channels: int
    sigma: float
    patch_size: int
    stages: int
    parameters: int
    bsd68_psnr: float | None


class LimitsInfo(BaseModel):
    """What the server takes."""

    formats: list[str]
    upload_bytes: int
    pixels: int
    job_seconds: float


class Offers(BaseModel):
    """The models on offer, and the server's limits."""

    models: list[ModelInfo]
    limits: LimitsInfo


class Health(BaseModel):
    """How the server is doing."""

    status: Literal["ok"] = "ok"
    version: str
    jobs: int = Field(description="Images that are worked on or wait.")


class Problem(BaseModel):
    """What went wrong, in one sentence."""

    detail: str


_PROBLEMS = {
    400: "The form cannot be read.",
    403: "The request comes from a page of another site, or calls the server by a wrong name.",
    408: "The upload took too long.",
    413: "The upload is too large, or the image for the memory there is.",
    415: "The request is no multipart/form-data form.",
    422: "The image or a field cannot be used.",
    503: "The server is busy or stopping.",
    504: "The work took too long.",
}
_FILE = {"type": "string", "format": "binary", "description": "The image file."}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors with these statuses; by default those of requests that upload a file."""
    described: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": _PROBLEMS[status]}
        for status in statuses or _PROBLEMS
    }
    if 503 in described:
        retry_after = _header("integer", "Seconds after which to try again.")
        described[503]["headers"] = {"Retry-After": retry_after}
    return described


def denoise_form(models: Sequence[str]) -> dict[str, Any]:
    """Return the form of ``/api/denoise``."""
    sigma = {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 255},
            {"type": "string", "enum": [AUTOMATIC]},
        ],
        "default": AUTOMATIC,
        "description": "Standard deviation of the noise, where white is 255 whatever the depth of "
        "the file; 'auto' measures it in the image.",
    }
    model = {
        "type": "string",
        "enum": list(models),
        "default": AUTOMATIC,
        "description": "A model; a family, of which the model with the nearest sigma is taken; or "
        "'auto' for what fits the image.",
    }
    return _form(file=_FILE, sigma=sigma, model=model)


def preview_form() -> dict[str, Any]:
    """Return the form of ``/api/preview``."""
    return _form(file=_FILE)


def denoised() -> dict[str, Any]:
    """Return the result of ``/api/denoise``."""
    return {
        "description": "The denoised image, in the format and depth of the upload.",
        "content": {media_type: _binary() for media_type in MEDIA_TYPES.values()},
        "headers": {
            "Nlnet-Noise-Estimate": _header("number", "The noise measured in the image."),
            "Nlnet-Sigma": _header("number", "The sigma that was used."),
            "Nlnet-Model": _header("string", "The model that was used."),
            "Nlnet-Seconds": _header("number", "The time the work took, waiting left out."),
            "Nlnet-Image": _header("string", "Size, depth and format of the image."),
            "Nlnet-Notes": _header("string", "What was converted, or could not be kept."),
            "Content-Disposition": _header("string", "A name to save the file under."),
        },
    }


def png() -> dict[str, Any]:
    """Return the result of ``/api/preview``."""
    return {"description": "The image as an 8-bit PNG.", "content": {"image/png": _binary()}}


def _form(**properties: dict[str, Any]) -> dict[str, Any]:
    form = {
        "type": "object",
        "properties": properties,
        "required": ["file"],
        "additionalProperties": False,
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}}


def _binary() -> dict[str, Any]:
    return {"schema": {"type": "string", "format": "binary"}}


def _header(kind: str, description: str) -> dict[str, Any]:
    return {"schema": {"type": kind}, "description": description}
