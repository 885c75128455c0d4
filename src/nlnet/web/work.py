"""The work on one upload: bytes of a file in, bytes of a file out, without HTTP."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from nlnet import images
from nlnet.errors import Cancelled, InputError, NLNetError
from nlnet.files.data_range import Range, display_range, white_of
from nlnet.files.one_page import left_out_note, unclipped_note
from nlnet.files.page_noise import find_stack_noise, sigmas_of_pages
from nlnet.images import ImageFile
from nlnet.images.content import Source
from nlnet.images.formats import recognize
from nlnet.model.loading import AUTO
from nlnet.noise.record import Noise
from nlnet.progress import Progress, one_of
from nlnet.web import display, output
from nlnet.web.catalog import Catalog
from nlnet.web.pages import NO_MODEL, denoise_page
from nlnet.web.settings import OUTPUTS, SAME_FORMAT, FormSettings


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
    description : str
        What the upload was.
    channels, pages : int
        Of the upload.
    notes : tuple of str
        What was converted or left out.
    model : str
        What was used.
    kind, noise : str
        What noise was found or given: as `nlnet.Noise` calls it, and in words.
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
    kind: str
    noise: str
    sigma: float
    estimate: float | None
    seconds: float


def denoise_upload(
    data: bytes,
    filename: str,
    settings: FormSettings,
    *,
    catalog: Catalog,
    max_pixels: int,
    progress: Progress,
) -> Denoised:
    """Denoise an image file, page by page; depth, transparency and metadata are kept.

    Parameters
    ----------
    data, filename : bytes, str
        The file and what messages call it.
    settings : FormSettings
        How to denoise it.
    catalog : Catalog
        The models to choose from.
    max_pixels : int
        Larger images, all pages together, are refused before they are decoded.
    progress : callable
        As for `nlnet.denoise`.
    """
    start = time.perf_counter()
    pages = _read(data, filename, max_pixels)
    first = pages[0]
    white = white_of(first, settings.data_range)
    shown = display_range(first, white)
    if progress(0.0) is False:
        raise Cancelled("The client does not wait for the result any more.")
    kind = None if settings.noise == AUTO else settings.noise
    noise: str | Noise | None = kind
    if settings.per_stack and len(pages) > 1:
        noise = find_stack_noise(pages, kind, settings.data_range, name=filename)
    results = [
        denoise_page(
            pages[number] if number else first,
            sigma,
            noise,
            settings,
            catalog=catalog,
            progress=one_of(progress, number, len(pages)),
        )
        for number, sigma in enumerate(sigmas_of_pages(settings.sigma, len(pages)))
    ]
    own = images.suffix_of(data, filename)
    suffix = own if settings.format == SAME_FORMAT else OUTPUTS[settings.format]
    untouched = all(result.model == NO_MODEL for result in results)
    notes = first.notes + tuple(dict.fromkeys(note for page in results for note in page.notes))
    unclipped = sum(page.unclipped for page in results)
    notes += unclipped_note(unclipped, len(results), results[0].white, "data_range")
    notes += left_out_note(sum(page.left_out for page in results))
    if untouched and suffix == own:
        encoded = data
    else:
        encoded, losses = output.encode(
            [result.image for result in results], suffix, settings.jpeg_quality, white
        )
        notes += losses
    if isinstance(settings.strength, tuple) and first.channels == 1:
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
        kind=strongest.kind,
        sigma=strongest.sigma,
        estimate=strongest.estimate,
        seconds=time.perf_counter() - start,
    )


def show_file(data: bytes, filename: str, *, data_range: float | None, max_pixels: int) -> Shown:
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
    pages = recognize(source).codec.read(source, max_pixels)
    if len(pages) > 1:
        height, width = pages[0].pixels.shape[:2]
        if len(pages) * height * width > max_pixels:
            raise InputError(
                f"{filename!r} has {len(pages)} pages of {width}x{height} pixels, but all pages "
                f"together may have {max_pixels / 1e6:g} million at most."
            )
    return pages
