"""The work on one upload: bytes of a file in, bytes of a file out. It knows nothing of HTTP."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from nlnet import color, images
from nlnet.arrays import Array
from nlnet.denoising import NO_NOISE, check_estimate, denoise
from nlnet.errors import Cancelled, InputError, NLNetError
from nlnet.estimation import estimate_sigma
from nlnet.file_denoising import white_of
from nlnet.images import ImageFile
from nlnet.images.content import Source
from nlnet.images.formats import recognize
from nlnet.model import Model
from nlnet.sweep_memory import least_memory
from nlnet.web import display, output
from nlnet.web.catalog import Catalog
from nlnet.web.settings import OUTPUTS, SAME_FORMAT, Settings

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""

_MAX_MEMORY = 1280 * 2**20
"""Bytes that the network may use besides the image and the result: enough for 50 megapixels of a
usual shape to be computed just as by the command line."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """An image as an 8-bit PNG, and whether its contrast was stretched for it."""

    data: bytes
    stretched: bool


@dataclasses.dataclass(frozen=True)
class Denoised:
    """A denoised file, and what is to be said about it.

    Parameters
    ----------
    data, filename, media_type : bytes, str, str
        The file.
    preview : Shown or None
        Its first page for a browser, if it was wanted.
    description : str
        What the upload was.
    channels, pages : int
        Of the upload.
    notes : tuple of str
        What was converted or left out.
    model : str
        What was used.
    noise : str
        What noise was found or given, in words.
    sigma : float
        Standard deviation of what was removed, on the 0-255 scale.
    estimate : float or None
        The same as it was measured, None if it was not.
    seconds : float
        Time the work took.
    """

    data: bytes
    filename: str
    media_type: str
    preview: Shown | None
    description: str
    channels: int
    pages: int
    notes: tuple[str, ...]
    model: str
    noise: str
    sigma: float
    estimate: float | None
    seconds: float


@dataclasses.dataclass(frozen=True, eq=False)
class _Page:
    """A denoised page, and how it became so."""

    image: ImageFile
    model: str
    noise: str
    sigma: float
    estimate: float | None


def denoise_file(
    data: bytes,
    filename: str,
    settings: Settings,
    *,
    catalog: Catalog,
    max_pixels: int,
    progress: Callable[[float], bool],
) -> Denoised:
    """Denoise an image file, page by page; depth, transparency and metadata are kept.

    Parameters
    ----------
    data, filename : bytes, str
        The file and what messages call it.
    settings : Settings
        How to denoise it.
    catalog : Catalog
        The models to choose from.
    max_pixels : int
        Larger images, all pages together, are refused before they are decoded.
    progress : callable
        Called with the share done; returns False to stop the work.
    """
    start = time.perf_counter()
    pages = _read(data, filename, max_pixels)
    first = pages[0]
    white = white_of(first, settings.data_range)
    shown = display.display_range(first, white)
    if not progress(0.0):
        raise Cancelled("The client does not wait for the result any more.")
    results = [
        _denoise_page(
            pages[number] if number else first,
            settings,
            catalog,
            _part(progress, number, len(pages)),
        )
        for number in range(len(pages))
    ]
    own = images.suffix_of(data, filename)
    suffix = own if settings.format == SAME_FORMAT else OUTPUTS[settings.format]
    untouched = all(result.model == NO_MODEL for result in results)
    notes = first.notes
    if untouched and suffix == own:
        encoded = data
    else:
        encoded, losses = output.encode(
            [result.image for result in results], suffix, settings.quality, white
        )
        notes += losses
    if len(settings.strength) == 2 and first.channels == 1:
        notes += ("the strength of color is left out, for the image is gray",)
    preview = _preview(results[0].image, shown, white) if settings.preview else None
    strongest = max(results, key=lambda result: result.sigma)
    return Denoised(
        data=encoded,
        filename=output.result_name(filename, suffix),
        media_type=output.MEDIA_TYPES[suffix],
        preview=preview,
        description=output.describe(first, len(pages), own),
        channels=first.channels,
        pages=len(pages),
        notes=notes,
        model=strongest.model,
        noise=strongest.noise,
        sigma=strongest.sigma,
        estimate=strongest.estimate,
        seconds=time.perf_counter() - start,
    )


def show_file(data: bytes, filename: str, *, data_range: float | None, max_pixels: int) -> Shown:
    """Return the first page of an image file as a PNG file of 8 bits, for programs that show it."""
    first = _read(data, filename, max_pixels)[0]
    white = white_of(first, data_range)
    shown = display.display_range(first, white)
    return Shown(display.to_png(first, shown, white), shown.stretched)


def _preview(image: ImageFile, shown: display.Range, white: float) -> Shown | None:
    try:
        return Shown(display.to_png(image, shown, white), shown.stretched)
    except (MemoryError, NLNetError):
        return None  # the result itself is there, and is worth more


def _read(data: bytes, filename: str, max_pixels: int) -> Sequence[ImageFile]:
    """Check a file and return its pages, which are decoded when they are asked for."""
    source = Source(filename, data=data)
    pages = recognize(source).codec.read(source, max_pixels)
    if len(pages) > 1:
        height, width = pages[0].pixels.shape[:2]
        if len(pages) * height * width > max_pixels:
            raise InputError(
                f"{filename!r} has {len(pages)} pages of {width}x{height} pixels, but all pages "
                f"together may have {max_pixels / 1e6:g} million at most."
            )
    return pages


def _denoise_page(
    page: ImageFile, settings: Settings, catalog: Catalog, progress: Callable[[float], object]
) -> _Page:
    if settings.noise in ("poisson", "camera"):
        raise InputError(f"noise is {settings.noise!r}, which this version does not know yet.")
    white = white_of(page, settings.data_range)
    unit = white / 255
    sigma, estimate = settings.sigma, None
    if sigma is None:
        found = estimate_sigma(page.pixels)
        check_estimate(found, white)
        sigma = estimate = found / unit
        if sigma < NO_NOISE:
            return _Page(page, NO_MODEL, "no noise", 0.0, estimate)
    model = catalog.choose(settings.model, page.channels, sigma)
    _check_width(page, model)
    pixels = denoise(
        page.pixels,
        sigma * unit,
        model=model,
        data_range=white,
        clip=page.pixels.dtype.kind == "u",  # floating values may lie beyond white
        max_memory=_MAX_MEMORY,
        progress=progress,
    )
    blended = _blend(page.pixels, pixels, settings.strength)
    words = f"white noise, about {sigma:.2g}"
    return _Page(dataclasses.replace(page, pixels=blended), model.name, words, sigma, estimate)


def _check_width(page: ImageFile, model: Model) -> None:
    """Refuse what takes too much memory: rows of the image are held, however few they are."""
    height, width = page.pixels.shape[:2]
    shape = (model.config.channels, height, width)
    threads = os.cpu_count() or 1
    if least_memory(shape, model.config, threads, itemsize=4) > _MAX_MEMORY:
        raise InputError(
            f"The image is {width} pixels wide, which takes more memory than this server gives; "
            "turn it by 90 degrees, or cut it into parts."
        )


def _blend(noisy: Array, denoised: Array, strength: tuple[float, ...]) -> Array:
    """Put back what is not to be removed, in luma and chroma each."""
    if set(strength) == {1.0}:
        return denoised
    removed = denoised.astype(np.float32) - noisy
    if noisy.ndim == 2 or len(strength) == 1:
        removed *= np.float32(strength[0])
    else:
        luma, chroma = strength
        shares = color.RGB @ np.diag([luma, chroma, chroma]) @ color.OPPONENT
        removed = removed @ shares.T.astype(np.float32)
    mixed = noisy + removed
    if noisy.dtype.kind != "u":
        return mixed.astype(noisy.dtype)
    return np.rint(np.clip(mixed, 0, np.iinfo(noisy.dtype).max)).astype(noisy.dtype)


def _part(
    progress: Callable[[float], object], number: int, count: int
) -> Callable[[float], object]:
    """Progress of one page as a share of all."""
    return lambda share: progress((number + share) / count)
