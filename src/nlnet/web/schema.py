"""What the API answers, and the parts of its description that FastAPI cannot derive."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from nlnet.errors import ModelError
from nlnet.model import loading
from nlnet.model.family import Family
from nlnet.model.loading import AUTO
from nlnet.model.model import Model
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


_SENTENCES = {
    400: "The form cannot be read, or the server is called by a wrong name.",
    403: "The request comes from a page of another site.",
    408: "The upload took too long.",
    413: "The upload is too large, or the image for the memory there is.",
    415: "The request is no multipart/form-data form.",
    422: "The image or a field cannot be used.",
    503: "The server is busy or stopping.",
    504: "The work took too long.",
}


def _header(kind: str, description: str) -> dict[str, Any]:
    return {"schema": {"type": kind}, "description": description}


_BINARY = {"schema": {"type": "string", "format": "binary"}}
DENOISED: dict[str, Any] = {
    "description": "The denoised image, or with preview=yes a form that holds it.",
    "content": dict.fromkeys((*MEDIA_TYPES.values(), "multipart/form-data"), _BINARY),
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
"""The result of ``/api/denoise``."""

_STRETCHED = _header("string", "'yes' if its contrast is stretched, or it would be black.")
PNG: dict[str, Any] = {
    "description": "The image as an 8-bit PNG.",
    "content": {"image/png": _BINARY},
    "headers": {"Nlnet-Stretched": _STRETCHED},
}
"""The result of ``/api/preview``."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": sentence} for status, sentence in _SENTENCES.items()
}
"""The errors that requests may be answered with."""

PROBLEMS[503]["headers"] = {"Retry-After": _header("integer", "Seconds after which to try again.")}


class Catalog:
    """The shipped models, and those the server was started with.

    Parameters
    ----------
    own : sequence of Model or Family
        Models to offer beside the shipped ones; ``auto`` means them where they fit the image.

    Attributes
    ----------
    models : dict
        All of them, by their names.
    """

    def __init__(self, own: Sequence[Model | Family] = ()) -> None:
        self.models = {name: loading.load_model(name) for name in loading.shipped_models()}
        self._families = {name: loading.family_of(name) for name in self.models}
        # Of two that are equally near, the one for less noise.
        self._own = sorted(own, key=lambda model: model.at(25.0).sigma)
        for model in own:
            name = model.name
            if name in self.models:
                raise ModelError(f"Two models are called {name!r}; the names must differ.")
            if not (name.isascii() and name.isprintable()):
                raise ModelError(f"The name {name!r} must be plain ASCII: it is sent in a header.")
            self.models[name] = model

    def family(self, name: str) -> str | None:
        """Return the family of a shipped model for one sigma; None for other models."""
        family = self._families.get(name)
        return None if family == name else family

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that may be asked for: ``auto``, families, models."""
        families = dict.fromkeys(filter(None, map(self.family, self.models)))
        return (AUTO, *families, *self.models)

    def choose(self, name: str, channels: int, sigma: float, quality: str | None = None) -> Model:
        """Return the model that a request means.

        Parameters
        ----------
        name : str
            One of `names`.
        channels : int
            Those of the image: 1 or 3.
        sigma : float
            Standard deviation of its noise on the 0-255 scale.
        quality : str, optional
            Which shipped model ``auto`` is, if none of the server's own fits the image.
        """
        own = [model for model in self._own if name in (model.name, AUTO)]
        if name == AUTO:
            own = [model for model in own if model.config.channels == channels]
        nearest = min(own, key=lambda model: loading.distance_from(model, sigma), default=name)
        return loading.choose_model(nearest, channels, sigma, quality)
