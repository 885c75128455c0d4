"""What the API answers, and the parts of its description that FastAPI cannot derive."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from nlnet.web.output import MEDIA_TYPES


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
    400: "The form cannot be read, or the server is called by a wrong name.",
    403: "The request comes from a page of another site.",
    408: "The upload took too long.",
    413: "The upload is too large, or the image for the memory there is.",
    415: "The request is no multipart/form-data form.",
    422: "The image or a field cannot be used.",
    503: "The server is busy or stopping.",
    504: "The work took too long.",
}


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
            "Nlnet-Certainty": _header("number", "How sure the kind is, 0 to 1."),
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


def _binary() -> dict[str, Any]:
    return {"schema": {"type": "string", "format": "binary"}}


def _header(kind: str, description: str) -> dict[str, Any]:
    return {"schema": {"type": kind}, "description": description}
