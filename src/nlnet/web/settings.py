"""Parsing the fields of a form; errors are one sentence."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping

from nlnet.errors import InputError
from nlnet.files.page_noise import FileSigma, check_per_stack
from nlnet.model.defaults import QUALITIES
from nlnet.model.loading import AUTO, check_quality
from nlnet.web.catalog import Catalog

NOISES = (AUTO, "white", "poisson", "camera")
"""The kinds of noise that may be asked for."""

SAME_FORMAT = "same"
OUTPUTS = {"png": ".png", "jpeg": ".jpg", "webp": ".webp", "tiff": ".tif", "npy": ".npy"}
"""The formats that may be asked for, and the suffix of each."""

JPEG_QUALITY = 95
"""A lower quality would put new artefacts where the noise was."""

LEAST_WHITE, MOST_WHITE = 1e-9, 1e12
"""Between these, single precision has enough room on both sides."""

KEY_PATTERN = "^[A-Za-z0-9-]{8,64}$"
"""What a client may call its job."""


@dataclasses.dataclass(frozen=True)
class FormSettings:
    """How to denoise an upload, and how to return it.

    Parameters
    ----------
    sigma : float, tuple of float or None
        Standard deviation of the noise on the 0-255 scale: one for all pages, or one for each;
        None to take what is estimated.
    noise : str
        One of `NOISES`.
    per_stack : bool
        Whether noise that is not given is estimated once for all pages, not for each.
    strength : float or pair of floats
        Share of the noise to remove: of all of it, or of luma and chroma.
    model : str
        One of the catalog's names.
    quality : str or None
        One of `nlnet.model.defaults.QUALITIES`, if it is to choose the model.
    data_range : float or None
        The value of white; None for what the file says, or its dtype stands for.
    format : str
        One of `OUTPUTS`, or `SAME_FORMAT` for that of the upload.
    jpeg_quality : int
        Of JPEG files, 1 to 100.
    preview : bool
        Whether the result is to come with a PNG of 8 bits, which every browser shows.
    job : str or None
        The name by which the client asks how far it is.
    """

    sigma: FileSigma = None
    noise: str = AUTO
    per_stack: bool = False
    strength: float | tuple[float, float] = 1.0
    model: str = AUTO
    quality: str | None = None
    data_range: float | None = None
    format: str = SAME_FORMAT
    jpeg_quality: int = JPEG_QUALITY
    preview: bool = False
    job: str | None = None


FIELDS = tuple(field.name for field in dataclasses.fields(FormSettings))
PREVIEW_FIELDS = ("data_range", "job")


def parse_settings(fields: Mapping[str, str], catalog: Catalog) -> FormSettings:
    """Return the settings of a form.

    Raises
    ------
    InputError, ModelError
        If a field holds something else than it may.
    """
    settings = FormSettings(
        sigma=_sigma(fields),
        noise=_choice(fields, "noise", NOISES),
        per_stack=_yes(fields, "per_stack"),
        strength=_strength(fields.get("strength", "1")),
        model=fields.get("model", AUTO),
        quality=_quality(fields.get("quality")),
        data_range=parse_data_range(fields),
        format=_choice(fields, "format", (SAME_FORMAT, *OUTPUTS)),
        jpeg_quality=_jpeg_quality(fields.get("jpeg_quality", str(JPEG_QUALITY))),
        preview=_yes(fields, "preview"),
        job=parse_key(fields),
    )
    catalog.check(settings.model)
    check_quality(settings.quality, settings.model)
    if settings.sigma is not None and settings.noise == "poisson":
        raise InputError(
            "sigma is given together with noise 'poisson', whose strength grows with brightness; "
            "leave sigma out, or choose another noise."
        )
    if settings.per_stack:
        check_per_stack(given=settings.sigma is not None)
    return settings


def parse_data_range(fields: Mapping[str, str]) -> float | None:
    """Return the value of white that a form names, if it does."""
    text = fields.get("data_range", AUTO)
    if text == AUTO:
        return None
    return _number(text, LEAST_WHITE, MOST_WHITE, f"data_range is {text[:40]!r}")


def parse_key(fields: Mapping[str, str]) -> str | None:
    """Return the name that a client gave its job, if it did."""
    key = fields.get("job")
    if key is not None and not re.fullmatch(KEY_PATTERN, key):
        raise InputError(
            f"job is {key[:80]!r}, but must be 8 to 64 plain letters, digits or hyphens."
        )
    return key


def _sigma(fields: Mapping[str, str]) -> FileSigma:
    """Return the sigma of a form: one, several with commas between, or None for ``auto``."""
    text = fields.get("sigma", AUTO)
    if text == AUTO:
        return None
    given = f"sigma is {text[:40]!r}"
    sigmas = tuple(_number(part, 0.0, 255, given) for part in text.split(","))
    return sigmas if len(sigmas) > 1 else sigmas[0]


def _number(text: str, least: float, most: float, given: str) -> float:
    """Return a number above `least`; the error begins with what was given."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Written so that NaN does not pass.
    if not least < number <= most:
        raise InputError(
            f"{given}, but must be {AUTO!r} or a number above {least:g} and at most {most:g}."
        )
    return number


def _yes(fields: Mapping[str, str], name: str) -> bool:
    return _choice(fields, name, ("no", "yes")) == "yes"


def _choice(fields: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    text = fields.get(name, allowed[0])
    if text not in allowed:
        raise InputError(f"{name} is {text[:40]!r}, but must be one of {', '.join(allowed)}.")
    return text


def _strength(text: str) -> float | tuple[float, float]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError:
        shares = ()
    if len(shares) not in (1, 2) or not all(0 <= share <= 1 for share in shares):
        raise InputError(
            f"strength is {text[:40]!r}, but must be a number from 0 to 1, or two of them with a "
            "comma between (luma, chroma)."
        )
    return shares[0] if len(shares) == 1 else (shares[0], shares[1])


def _quality(text: str | None) -> str | None:
    if text is not None and text not in QUALITIES:
        raise InputError(
            f"quality is {text[:40]!r}, but must be one of {', '.join(QUALITIES)}; that of JPEG "
            "files is called jpeg_quality."
        )
    return text


def _jpeg_quality(text: str) -> int:
    # isascii: other digits of Unicode are digits to Python too.
    quality = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
    if not 1 <= quality <= 100:
        raise InputError(
            f"jpeg_quality is {text[:40]!r}, but must be a whole number from 1 to 100."
        )
    return quality
