"""The work on one upload: bytes of a file in, bytes of a file out, without HTTP."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from nlnet import images
from nlnet.denoising.image import stoppable
from nlnet.errors import Cancelled, InputError, NLNetError
from nlnet.files.data_range import Range, display_range, white_of
from nlnet.files.pages import denoise_pages, notes_of
from nlnet.files.rewriting import rewriting
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, WritingOptions
from nlnet.images.content import Source
from nlnet.images.formats import read_source
from nlnet.progress import Progress
from nlnet.web import display, output
from nlnet.web.catalog import Catalog
from nlnet.web.forms import OUTPUTS, SAME_FORMAT, DenoiseForm
from nlnet.web.pages import in_words, network_for

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """An image as an 8-bit PNG, and whether its contrast was stretched for it."""

    data: bytes
    stretched: bool


@dataclasses.dataclass(frozen=True)
class Denoised:
    """A denoised file, and what there is to say about it.

    Parameters
    ----------
    data, filename, media_type : bytes, str, str
        The file.
    preview : Shown or None
        Its first page for a browser, if it was wanted.
    headers : dict
        What was found, done and converted, as the headers of the response.
    """

    data: bytes
    filename: str
    media_type: str
    preview: Shown | None
    headers: dict[str, str]


def denoise_upload(
    data: bytes,
    filename: str,
    form: DenoiseForm,
    settings: Settings,
    catalog: Catalog,
    progress: Progress,
) -> Denoised:
    """Denoise an image file, page by page; depth, transparency and metadata are kept.

    Parameters
    ----------
    data, filename : bytes, str
        The file and what messages call it.
    form : DenoiseForm
        How to return it.
    settings : Settings
        How to denoise it, of the same form. Larger images than it says, all pages together, are
        refused before they are decoded.
    catalog : Catalog
        The models to choose from.
    progress : callable
        As for `nlnet.denoise`.
    """
    start = time.perf_counter()
    pages = _read(data, filename, settings.max_pixels)
    first = pages[0]
    white = white_of(first, settings.data_range)
    shown = display_range(first, white)
    if progress(0.0) is False:
        raise Cancelled("The client does not wait for the result any more.")
    results, found = denoise_pages(
        pages, settings, network_for(first, settings, catalog), stoppable(progress), name=filename
    )
    own = images.suffix_of(data, filename)
    same = form.format == SAME_FORMAT
    suffix = images.result_suffix(own) if same else OUTPUTS[form.format]
    notes = first.notes + notes_of(found, "data_range")
    writing: WritingOptions | None = settings.writing
    if suffix == own:
        writing, said = rewriting(first, results, found, settings)
        notes += said
    if writing is None:
        encoded = data
    else:
        encoded, losses = output.encode(results, suffix, writing, white)
        notes += losses
    if isinstance(settings.strength, tuple) and first.channels == 1:
        notes += ("the strength of color is left out, for the image is gray",)
    preview = _preview(results[0], shown, white) if form.preview == "yes" else None
    strongest = max(found, key=lambda page: page.plan.sigma)
    plan = strongest.plan
    headers = {
        "Nlnet-Noise": in_words(plan),
        "Nlnet-Noise-Kind": plan.noise.kind,
        "Nlnet-Sigma": f"{plan.sigma:.2f}",
        "Nlnet-Model": strongest.models[-1] if strongest.models else NO_MODEL,
        "Nlnet-Image": output.describe(first, len(pages), own),
        "Nlnet-Channels": str(first.channels),
        "Nlnet-Pages": str(len(pages)),
    }
    if settings.sigma is None:
        headers["Nlnet-Noise-Estimate"] = f"{plan.average * 255 / plan.white:.2f}"
    if notes:
        headers["Nlnet-Notes"] = "; ".join(notes)
    headers["Nlnet-Seconds"] = f"{time.perf_counter() - start:.3f}"
    name = output.result_name(filename, suffix)
    return Denoised(encoded, name, output.MEDIA_TYPES[suffix], preview, headers)


def show_file(data: bytes, filename: str, data_range: float | None, max_pixels: int) -> Shown:
    """Return the first page of an image file as a PNG file of 8 bits, for programs that show it."""
    first = _read(data, filename, max_pixels)[0]
    white = white_of(first, data_range)
    shown = display_range(first, white)
    return Shown(display.to_png(first, shown, white), shown.stretched)


def _preview(image: ImageFile, shown: Range, white: float) -> Shown | None:
    try:
        return Shown(display.to_png(image, shown, white), shown.stretched)
    except (MemoryError, NLNetError):
        return None  # the result itself is there, and is worth more


def _read(data: bytes, filename: str, max_pixels: int) -> Sequence[ImageFile]:
    """Check a file and return its pages, which are decoded when they are asked for."""
    source = Source(filename, data=data)
    pages = read_source(source, max_pixels)
    if len(pages) > 1:
        height, width = pages[0].pixels.shape[:2]
        if len(pages) * height * width > max_pixels:
            raise InputError(
                f"{filename!r} has {len(pages)} pages of {width}x{height} pixels, but all pages "
                f"together may have {max_pixels / 1e6:g} million at most."
            )
    return pages
