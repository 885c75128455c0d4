"""The forms that the API takes: pydantic checks their fields, and describes them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from fastapi import Form, UploadFile
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.json_schema import SkipJsonSchema

from nlnet.files.settings import Settings
from nlnet.images import WritingOptions
from nlnet.model.loading import AUTO

OUTPUTS = {"png": ".png", "jpeg": ".jpg", "webp": ".webp", "tiff": ".tif", "npy": ".npy"}
"""The formats that may be asked for, and the suffix of each."""

SAME_FORMAT = "same"
KEY_PATTERN = "^[A-Za-z0-9-]{8,64}$"
"""What a client may call its job."""

MULTIPART = Form(media_type="multipart/form-data")

_NoiseKind = Literal["auto", "white", "poisson", "camera"]
NOISES: tuple[str, ...] = get_args(_NoiseKind)
"""The kinds of noise that may be asked for."""

_LEAST, _MOST_WHITE = 1e-9, 1e12  # between them, single precision has room on both sides
_Switch = Literal["no", "yes"]
_Sigma = Annotated[float, Field(gt=_LEAST, le=255)]
_Share = Annotated[float, Field(ge=0, le=2)]
_White = Annotated[float, Field(gt=_LEAST, le=_MOST_WHITE)]
_SIGMA = "(0?[.]0*[1-9][0-9]*|([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-4])([.][0-9]+)?|255)"


def _split(texts: list[str]) -> list[str] | None:
    """Return the numbers between commas, None for ``auto``; FastAPI gives a list of one text."""
    (text,) = texts
    if not isinstance(text, str):
        raise ValueError("Value should be text, not a file")
    return None if text == AUTO else text.split(",")


def _number_or_auto(least: float, most: float, *more: dict[str, str]) -> WithJsonSchema:
    """Return the JSON schema of a number or ``auto``, which pydantic cannot derive."""
    number = {"type": "number", "exclusiveMinimum": least, "maximum": most}
    return WithJsonSchema({"anyOf": [number, {"type": "string", "enum": [AUTO]}, *more]})


class PreviewForm(BaseModel):
    """An image to show: the form of ``/api/preview``."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    file: Annotated[UploadFile, WithJsonSchema({"type": "string", "format": "binary"})]
    """The image file."""

    data_range: Annotated[
        _White | None,
        BeforeValidator(lambda text: None if text == AUTO else text),
        _number_or_auto(_LEAST, _MOST_WHITE),
    ] = None
    """The value of white, such as 4095 for 12 bits; 'auto': as the file says."""

    job: Annotated[str, Field(pattern=KEY_PATTERN)] | SkipJsonSchema[None] = None
    """A name of your choice, to ask at /api/jobs how far the work is."""


class DenoiseForm(PreviewForm):
    """An image to denoise, how, and how to return it: the form of ``/api/denoise``.

    `sigma` is None where it is to be estimated; one number is for all pages of a stack. `strength`
    has one number, or two, for luma and chroma.
    """

    sigma: Annotated[
        tuple[_Sigma, ...] | None,
        BeforeValidator(_split),
        _number_or_auto(_LEAST, 255, {"type": "string", "pattern": f"^{_SIGMA}(,{_SIGMA})+$"}),
    ] = None
    """Standard deviation of the noise, where white is 255 whatever the depth of the file; 'auto'
    measures it in the image. With noise 'poisson' it is always measured. The pages of a stack may
    have one each, with commas between."""

    noise: _NoiseKind = "auto"
    """The kind of noise; 'auto' finds out."""

    per_page: _Switch = "no"
    """Whether noise that is not given is measured in each page of a stack, not in all together."""

    strength: Annotated[
        tuple[_Share, ...],
        Field(max_length=2, json_schema_extra={"default": "1"}),
        BeforeValidator(_split),
        WithJsonSchema(
            {"type": "string", "pattern": r"^([012]|[01]?\.[0-9]+)(,([012]|[01]?\.[0-9]+))?$"},
        ),
    ] = (1.0,)
    """How much of the noise to remove, from 0 to 2, where 1 is what was found; or two numbers with
    a comma, for luma (grain) and chroma (color blotches)."""

    model: str = AUTO
    """A model; a family, of which the model with the nearest sigma is taken; or 'auto' for what
    fits the image."""

    quality: Literal["fast", "best"] | SkipJsonSchema[None] = None
    """Which model 'auto' is, if the server was not started with one of its own: 'fast', the
    default, or 'best', which takes longer. Not together with another model."""

    format: Literal["same", "png", "jpeg", "webp", "tiff", "npy"] = "same"
    """The format of the result."""

    jpeg_quality: Annotated[int, Field(ge=1, le=100)] | SkipJsonSchema[None] = None
    """Of a result in JPEG. By default that of a JPEG file, or better if too much would be lost, and
    95 for others."""

    preview: _Switch = "no"
    """With 'yes' the answer is a form of two files: 'file', the result, and 'preview', its first
    page as an 8-bit PNG."""

    def settings(self, max_pixels: int) -> Settings:
        """Return the form as settings, which commands have, too.

        Raises
        ------
        InputError
            If fields do not go together.
        """
        settings = Settings(
            sigma=self.sigma[0] if self.sigma is not None and len(self.sigma) == 1 else self.sigma,
            noise=None if self.noise == AUTO else self.noise,
            data_range=self.data_range,
            strength=self.strength[0] if len(self.strength) == 1 else self.strength,
            per_page=self.per_page == "yes",
            model=self.model,
            quality=self.quality,
            max_pixels=max_pixels,
            writing=WritingOptions(jpeg_quality=self.jpeg_quality),
        )
        settings.check_noise()
        return settings


def form_for(names: Sequence[str]) -> Any:
    """Return the type of the form of ``/api/denoise``, which takes these models only."""
    chosen: Any = Literal[tuple(names)], DenoiseForm.model_fields["model"]
    return Annotated[create_model("DenoiseForm", __base__=DenoiseForm, model=chosen), MULTIPART]
