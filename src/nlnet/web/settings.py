"""The fields of a form: pydantic checks them, and describes them in the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from nlnet.errors import InputError
from nlnet.files.pages import FileRequest, check_per_page
from nlnet.images.writing import PLAIN
from nlnet.model.loading import AUTO, check_quality
from nlnet.web.catalog import Catalog

OUTPUTS = {"png": ".png", "jpeg": ".jpg", "webp": ".webp", "tiff": ".tif", "npy": ".npy"}
"""The formats that may be asked for, and the suffix of each."""

SAME_FORMAT = "same"
KEY_PATTERN = "^[A-Za-z0-9-]{8,64}$"
"""What a client may call its job."""

_NoiseKind = Literal["auto", "white", "poisson", "camera"]
NOISES: tuple[str, ...] = get_args(_NoiseKind)
"""The kinds of noise that may be asked for."""

_LEAST_WHITE, _MOST_WHITE = 1e-9, 1e12  # between them, single precision has room on both sides
_Switch = Literal["no", "yes"]
_Sigma = Annotated[float, Field(gt=0, le=255)]
_Share = Annotated[float, Field(ge=0, le=2)]
_White = Annotated[float, Field(gt=_LEAST_WHITE, le=_MOST_WHITE)]
_SIGMA = "(0?[.]0*[1-9][0-9]*|([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-4])([.][0-9]+)?|255)"


def _split(text: str) -> list[str] | None:
    """Return the numbers between commas, None for ``auto``."""
    return None if text == AUTO else text.split(",")


def _number_or_auto(least: float, most: float, *more: dict[str, str]) -> WithJsonSchema:
    """Describe a field that pydantic cannot, as it does not know that ``auto`` is None."""
    number = {"type": "number", "exclusiveMinimum": least, "maximum": most}
    return WithJsonSchema({"anyOf": [number, {"type": "string", "enum": [AUTO]}, *more]})


class PreviewSettings(BaseModel):
    """How to show an upload: the form of ``/api/preview``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data_range: Annotated[
        _White | None,
        BeforeValidator(lambda text: None if text == AUTO else text),
        _number_or_auto(_LEAST_WHITE, _MOST_WHITE),
    ] = Field(
        None, description="The value of white, such as 4095 for 12 bits; 'auto': as the file says."
    )
    job: Annotated[str, Field(pattern=KEY_PATTERN)] | SkipJsonSchema[None] = Field(
        None, description="A name of your choice, to ask at /api/jobs how far the work is."
    )


class FormSettings(PreviewSettings):
    """How to denoise an upload, and how to return it: the form of ``/api/denoise``.

    `sigma` is None where it is to be estimated; one number is for all pages of a stack. `strength`
    has one number, or two, for luma and chroma.
    """

    sigma: Annotated[
        tuple[_Sigma, ...] | None,
        BeforeValidator(_split),
        _number_or_auto(0, 255, {"type": "string", "pattern": f"^{_SIGMA}(,{_SIGMA})+$"}),
    ] = Field(
        None,
        description="Standard deviation of the noise, where white is 255 whatever the depth of the "
        "file; 'auto' measures it in the image. With noise 'poisson' it is always measured. The "
        "pages of a stack may have one each, with commas between.",
    )
    noise: _NoiseKind = Field("auto", description="The kind of noise; 'auto' finds out.")
    per_page: _Switch = Field(
        "no",
        description="Whether noise that is not given is measured in each page of a stack, not in "
        "all together.",
    )
    strength: Annotated[
        tuple[_Share, ...],
        Field(max_length=2),
        BeforeValidator(_split),
        WithJsonSchema(
            {"type": "string", "pattern": r"^([012]|[01]?\.[0-9]+)(,([012]|[01]?\.[0-9]+))?$"},
        ),
    ] = Field(
        (1.0,),
        json_schema_extra={"default": "1"},
        description="How much of the noise to remove, from 0 to 2, where 1 is what was found; or "
        "two numbers with a comma, for "
        "luma (grain) and chroma (color blotches).",
    )
    model: str = Field(
        AUTO,
        description="A model; a family, of which the model with the nearest sigma is taken; or "
        "'auto' for what fits the image.",
    )
    quality: Literal["fast", "best"] | SkipJsonSchema[None] = Field(
        None,
        description="Which model 'auto' is, if the server was not started with one of its own: "
        "'fast', the default, or 'best', which takes longer. Not together with another model.",
    )
    format: Literal["same", "png", "jpeg", "webp", "tiff", "npy"] = Field(
        "same", description="The format of the result."
    )
    jpeg_quality: int = Field(PLAIN.jpeg_quality, ge=1, le=100, description="Of a result in JPEG.")
    preview: _Switch = Field(
        "no",
        description="With 'yes' the answer is a form of two files: 'file', the result, and "
        "'preview', its first page as an 8-bit PNG.",
    )

    def request(self) -> FileRequest:
        """Return what is asked for all pages of the upload."""
        luma, chroma = self.strength[0], self.strength[-1]
        return FileRequest(
            self.sigma[0] if self.sigma is not None and len(self.sigma) == 1 else self.sigma,
            None if self.noise == AUTO else self.noise,
            self.data_range,
            luma if luma == chroma else (luma, chroma),
            per_page=self.per_page == "yes",
        )


Form = TypeVar("Form", bound=BaseModel)


def parse_form(form: type[Form], fields: Mapping[str, str]) -> Form:
    """Return the fields of a form as what they stand for.

    Raises
    ------
    InputError
        If a field is unknown, or holds something else than it may.
    """
    try:
        return form.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if name not in form.model_fields:
            known = ", ".join(("file", *form.model_fields))
            raise InputError(
                f"The form has a field {name[:40]!r}, but may only have {known}."
            ) from error
        wanted = re.sub(r"^\w+ should", "must", first["msg"])
        raise InputError(f"{name} is {fields[name][:80]!r}, but {wanted}.") from error


def parse_settings(fields: Mapping[str, str], catalog: Catalog) -> FormSettings:
    """Return the settings of a form, which must fit together.

    Raises
    ------
    InputError, ModelError
        If a field holds something else than it may, or does not go with another.
    """
    settings = parse_form(FormSettings, fields)
    catalog.check(settings.model)
    check_quality(settings.quality, settings.model)
    if settings.sigma is not None and settings.noise == "poisson":
        raise InputError(
            "sigma is given together with noise 'poisson', whose strength grows with brightness; "
            "leave sigma out, or choose another noise."
        )
    if settings.per_page == "yes":
        check_per_page(given=settings.sigma is not None)
    return settings
