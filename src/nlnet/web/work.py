"""The work on one upload: bytes of a file in, bytes of a file out, without HTTP."""

import contextlib
import dataclasses
import importlib.util
import io
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nlnet import images
from nlnet.defaults import FAMILIES, FAST
from nlnet.denoising.image import stoppable
from nlnet.denoising.network import Network, least_memory
from nlnet.denoising.plan import Plan
from nlnet.errors import Cancelled, InputError, NLNetError
from nlnet.files.data_range import Range, display_range, white_of
from nlnet.files.findings import notes_of
from nlnet.files.one_file import rewriting
from nlnet.files.pages import denoise_pages
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, WritingOptions
from nlnet.images.content import Source, TooLargeError
from nlnet.images.formats import read_source
from nlnet.images.raw_files import raw_kind
from nlnet.inputs import check_strength
from nlnet.model.model import Model
from nlnet.progress import Progress
from nlnet.web import output
from nlnet.web.forms import OUTPUTS, SAME_FORMAT, DenoiseForm
from nlnet.web.schema import Catalog

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""

_MAX_MEMORY = 1280 * 2**20
"""Bytes that the network may use besides the image and the result: enough for 50 megapixels of a
usual shape to be computed just as by the command line."""

_WORDS = {
    "none": "no noise worth removing",
    "white": "white noise",
    "poisson": "photon noise",
    "curve": "noise that depends on the brightness",
    "camera": "camera noise, correlated",
}


class Answer(NamedTuple):
    """A file that answers a request, and what there is to say about it, as headers."""

    data: bytes
    media_type: str
    filename: str
    headers: dict[str, str]


def denoise_upload(
    data: bytes,
    filename: str,
    progress: Progress,
    form: DenoiseForm,
    settings: Settings,
    catalog: Catalog,
) -> Answer:
    """Denoise an image file, page by page; depth, transparency and metadata are kept.

    Parameters
    ----------
    data, filename : bytes, str
        The file and what messages call it.
    progress : callable
        As for `nlnet.denoise`.
    form : DenoiseForm
        How to return it.
    settings : Settings
        How to denoise it, of the same form. Larger images than it says, all pages together, are
        refused before they are decoded.
    catalog : Catalog
        The models to choose from.
    """
    start = time.perf_counter()
    if _is_raw(data):
        return _denoise_raw(Source(filename, data=data), form, settings, progress, start)
    pages = _read(data, filename, settings.max_pixels)
    first = pages[0]
    white = white_of(first, settings.data_range)
    shown = display_range(first, white)
    if progress(0.0) is False:
        raise Cancelled("The client does not wait for the result any more.")
    results, found = denoise_pages(
        pages, settings, _network_for(first, settings, catalog), stoppable(progress), name=filename
    )
    own = images.suffix_of(data, filename)
    same = form.format == SAME_FORMAT
    suffix = images.result_suffix(own) if same else OUTPUTS[form.format]
    # Without the options of commands that some notes end with.
    told = (note.partition(": --")[0] for note in notes_of(found, "data_range"))
    notes = (*first.notes, *told)
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
    strongest = max(found, key=lambda page: page.plan.sigma)
    plan = strongest.plan
    headers = {
        "Nlnet-Noise": _in_words(plan),
        "Nlnet-Noise-Kind": plan.noise.kind,
        "Nlnet-Certainty": f"{plan.noise.certainty:.2f}",
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
    result = Answer(encoded, output.MEDIA_TYPES[suffix], name, headers)
    return result if form.preview == "no" else _with_preview(result, results[0], shown, white)


def _with_preview(result: Answer, image: ImageFile, shown: Range, white: float) -> Answer:
    parts = {"file": (result.filename, result.media_type, result.data)}
    # The result itself is there, and is worth more.
    with contextlib.suppress(MemoryError, NLNetError):
        parts["preview"] = ("preview.png", "image/png", output.to_png(image, shown, white))
    media_type, form = output.join_form(parts)
    return Answer(form, media_type, "denoised.form", result.headers)


def _denoise_raw(
    source: Source, form: DenoiseForm, settings: Settings, progress: Progress, start: float
) -> Answer:
    """Denoise a camera's raw file, and return it developed: TIFF of 16 bits, unless asked."""
    from nlnet.files.raw_file import denoise_raw

    with _without_options():
        bounded = dataclasses.replace(settings, max_memory=_MAX_MEMORY)
        outcome = denoise_raw(source, bounded, progress)
    after, (sigma,) = outcome.after, outcome.findings.sigmas
    suffix = ".tif" if form.format == SAME_FORMAT else OUTPUTS[form.format]
    white = white_of(after, None)
    encoded, losses = output.encode([after], suffix, settings.writing, white)
    shown = display_range(after, white)
    kind = Path(source.name).suffix.lower()
    headers = {
        "Nlnet-Noise": f"photon noise of the sensor, about {sigma:.2g}",
        "Nlnet-Noise-Kind": "poisson",
        "Nlnet-Certainty": "1.00",
        "Nlnet-Noise-Estimate": f"{sigma:.2f}",
        "Nlnet-Sigma": f"{sigma:.2f}",
        "Nlnet-Model": FAMILIES[settings.quality or FAST][after.channels],
        "Nlnet-Image": output.describe(after, 1, kind or ".raw"),
        "Nlnet-Channels": str(after.channels),
        "Nlnet-Pages": "1",
        "Nlnet-Notes": "; ".join((*outcome.findings.notes, *losses, "it was developed")),
        "Nlnet-Seconds": f"{time.perf_counter() - start:.3f}",
    }
    name = output.result_name(source.name, suffix)
    result = Answer(encoded, output.MEDIA_TYPES[suffix], name, headers)
    return result if form.preview == "no" else _with_preview(result, after, shown, white)


def _is_raw(data: bytes) -> bool:
    """Tell whether a file is a camera's raw file that can be developed here."""
    if importlib.util.find_spec("rawpy") is None:
        return False
    return raw_kind(io.BytesIO(data)) is not None


@contextlib.contextmanager
def _without_options() -> Iterator[None]:
    """Let errors speak to people who have no command before them."""
    try:
        yield
    except TooLargeError as error:
        raise InputError(error.fact) from error
    except InputError as error:
        raise InputError(re.sub(r" \(--[a-z-]+\)", "", str(error))) from error


def show_file(
    data: bytes, filename: str, progress: Progress, data_range: float | None, max_pixels: int
) -> Answer:
    """Return the first page of an image file as a PNG file of 8 bits, for programs that show it."""
    if _is_raw(data):
        from nlnet.files.raw_file import develop_raw

        source = Source(filename, data=data)
        with _without_options():
            first = develop_raw(source, Settings(max_pixels=max_pixels))
    else:
        first = _read(data, filename, max_pixels)[0]
    white = white_of(first, data_range)
    shown = display_range(first, white)
    headers = {"Nlnet-Stretched": "yes" if shown.stretched else "no"}
    return Answer(output.to_png(first, shown, white), "image/png", "preview.png", headers)


def _read(data: bytes, filename: str, max_pixels: int) -> Sequence[ImageFile]:
    """Check a file and return its pages, which are decoded when they are asked for."""
    source = Source(filename, data=data)
    with _without_options():
        pages = read_source(source, max_pixels)
    if len(pages) > 1:
        height, width = pages[0].pixels.shape[:2]
        if len(pages) * height * width > max_pixels:
            raise InputError(
                f"{filename!r} has {len(pages)} pages of {width}x{height} pixels, but all pages "
                f"together may have {max_pixels / 1e6:g} million at most."
            )
    return pages


def _network_for(page: ImageFile, settings: Settings, catalog: Catalog) -> Network:
    """Return what removes the noise of pages like this one.

    Raises
    ------
    InputError
        If the page is so wide that whole rows of it take too much memory; when it runs, ModelError
        if the model is for other images.
    """
    height, width = page.pixels.shape[:2]
    threads = os.cpu_count() or 1

    def choose(sigma: float) -> Model:
        model = catalog.choose(str(settings.model), page.channels, sigma, settings.quality)
        shape = (page.channels, height, width)
        if least_memory(shape, model.config, threads) > _MAX_MEMORY:
            raise InputError(
                f"The image is {width} pixels wide, which takes more memory than this server "
                "gives; turn it by 90 degrees, or cut it into parts."
            )
        return model

    shares = check_strength(settings.strength_for(page.channels), page.channels)
    return Network(choose, max_memory=_MAX_MEMORY, strength=shares)


def _in_words(plan: Plan) -> str:
    """Say what the noise is, and how strong if white is 255."""
    about = "" if plan.noise.kind == "none" else f", about {plan.sigma:.2g}"
    return f"{_WORDS[plan.noise.kind]}{about}"
