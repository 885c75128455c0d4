"""Parts of the OpenAPI description that FastAPI cannot derive from the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from nlnet.model.defaults import QUALITIES
from nlnet.model.loading import AUTO
from nlnet.web.output import MEDIA_TYPES
from nlnet.web.settings import (
    JPEG_QUALITY,
    KEY_PATTERN,
    LEAST_WHITE,
    MOST_WHITE,
    NOISES,
    OUTPUTS,
    SAME_FORMAT,
)


class ModelInfo(BaseModel):
    """A model on offer."""

    name: str
    family: str | None
    channels: int
    sigma: float | None = Field(description="The noise it is for; null: every noise.")
    patch_size: int
    stages: int
    parameters: int
    bsd68_psnr: dict[str, float] = Field(description="Mean PSNR on BSD68 in dB, by sigma.")
    relative_time: float | None = Field(description="In times of the fast model for such images.")


class LimitsInfo(BaseModel):
    """What the server takes."""

    formats: list[str]
    upload_bytes: int
    pixels: int
    job_seconds: float


class Offers(BaseModel):
    """The models on offer, the kinds of noise to choose from, and the server's limits."""

    models: list[ModelInfo]
    noises: list[str]
    limits: LimitsInfo


class Health(BaseModel):
    """How the server is doing."""

    status: Literal["ok"] = "ok"
    version: str
    jobs: int = Field(description="Images that are worked on or wait.")


class JobInfo(BaseModel):
    """How far the work on an image is."""

    state: Literal["absent", "waiting", "running"] = Field(
        description="'absent' before the upload has arrived, and when the work has ended."
    )
    ahead: int = Field(description="Images that come before it.")
    share: float = Field(description="How much of the work is done, from 0 to 1.")


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
_SIGMA = "(0?[.]0*[1-9][0-9]*|([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-4])([.][0-9]+)?|255)"
SIGMAS = f"^{_SIGMA}(,{_SIGMA})+$"
"""A sigma for each page."""
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
    sigma = _number_or_auto(
        0,
        255,
        "Standard deviation of the noise, where white is 255 whatever the depth of the file; "
        "'auto' measures it in the image. With noise 'poisson' it is always measured. The pages of "
        "a stack may have one each, with commas between.",
    )
    sigma["anyOf"].append({"type": "string", "pattern": SIGMAS})
    per_stack = _choice(
        ("no", "yes"),
        "Whether noise that is not given is measured once for all pages of a stack, not for each.",
    )
    noise = _choice(NOISES, "The kind of noise; 'auto' finds out.")
    strength = {
        "type": "string",
        "pattern": "^(0|1|0?\\.[0-9]+)(,(0|1|0?\\.[0-9]+))?$",
        "default": "1",
        "description": "Share of the noise to remove, from 0 to 1; or two shares with a comma, of "
        "luma (grain) and chroma (color blotches).",
    }
    model = _choice(
        models,
        "A model; a family, of which the model with the nearest sigma is taken; or 'auto' for "
        "what fits the image.",
    )
    formats = _choice((SAME_FORMAT, *OUTPUTS), "The format of the result.")
    quality = {
        "type": "string",
        "enum": list(QUALITIES),
        "description": "Which model 'auto' is, if the server was not started with one of its own: "
        "'fast', the default, or 'best', which takes longer. Not together with another model.",
    }
    jpeg_quality = {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": JPEG_QUALITY,
        "description": "Of a result in JPEG.",
    }
    preview = _choice(
        ("no", "yes"),
        "With 'yes' the answer is a form of two files: 'file', the result, and 'preview', its "
        "first page as an 8-bit PNG.",
    )
    return _form(
        file=_FILE,
        sigma=sigma,
        noise=noise,
        per_stack=per_stack,
        strength=strength,
        model=model,
        quality=quality,
        data_range=_DATA_RANGE,
        format=formats,
        jpeg_quality=jpeg_quality,
        preview=preview,
        job=_JOB,
    )


def preview_form() -> dict[str, Any]:
    """Return the form of ``/api/preview``."""
    return _form(file=_FILE, data_range=_DATA_RANGE, job=_JOB)


def denoised() -> dict[str, Any]:
    """Return the result of ``/api/denoise``."""
    return {
        "description": "The denoised image, or with preview=yes a form that holds it.",
        "content": {
            media_type: _binary() for media_type in (*MEDIA_TYPES.values(), "multipart/form-data")
        },
        "headers": {
            "Nlnet-Noise": _header("string", "What the noise is, in words."),
            "Nlnet-Noise-Kind": _header("string", "none, white, poisson, curve or camera."),
            "Nlnet-Noise-Estimate": _header("number", "Its sigma, if it was measured."),
            "Nlnet-Sigma": _header("number", "The sigma that was used, 0 if none was removed."),
            "Nlnet-Channels": _header("integer", "1 for a gray image, 3 for a color one."),
            "Nlnet-Pages": _header("integer", "Pages of the file."),
            "Nlnet-Model": _header("string", "The model that was used."),
            "Nlnet-Seconds": _header("number", "The time the work took, waiting left out."),
            "Nlnet-Image": _header("string", "Size, depth and format of the image."),
            "Nlnet-Notes": _header("string", "What was converted, or could not be kept."),
            "Content-Disposition": _header("string", "A name to save the file under."),
        },
    }


def png() -> dict[str, Any]:
    """Return the result of ``/api/preview``."""
    stretched = _header("string", "'yes' if its contrast is stretched, or it would be black.")
    return {
        "description": "The image as an 8-bit PNG.",
        "content": {"image/png": _binary()},
        "headers": {"Nlnet-Stretched": stretched},
    }


def _number_or_auto(least: float, most: float, description: str) -> dict[str, Any]:
    return {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": least, "maximum": most},
            {"type": "string", "enum": [AUTO]},
        ],
        "default": AUTO,
        "description": description,
    }


def _choice(names: Sequence[str], description: str) -> dict[str, Any]:
    return {
        "type": "string",
        "enum": list(names),
        "default": names[0],
        "description": description,
    }


_DATA_RANGE = _number_or_auto(
    LEAST_WHITE,
    MOST_WHITE,
    "The value of white, such as 4095 for 12 bits; 'auto' takes it from the file.",
)
_JOB = {
    "type": "string",
    "pattern": KEY_PATTERN,
    "description": "A name of your choice, to ask at /api/jobs how far the work is.",
}


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
