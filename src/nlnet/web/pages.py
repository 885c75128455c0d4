"""Denoising one page of an upload."""

from __future__ import annotations

import dataclasses
import os

from nlnet.errors import InputError
from nlnet.files.one_page import find_page_noise, left_out_note, remove_page_noise
from nlnet.images import ImageFile
from nlnet.model.loading import AUTO
from nlnet.model.model import Model
from nlnet.network.recursion import least_memory
from nlnet.progress import Progress
from nlnet.web.catalog import Catalog
from nlnet.web.settings import FormSettings

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


@dataclasses.dataclass(frozen=True, eq=False)
class Page:
    """A denoised page, and how it became so.

    Parameters
    ----------
    image : ImageFile
        The page.
    model : str
        What was used, or `NO_MODEL`.
    kind, noise : str
        What the noise is: as `nlnet.Noise` calls it, and in words.
    sigma : float
        Its standard deviation on average over the page, if white is 255.
    estimate : float or None
        The same as it was measured, None if it was given.
    notes : tuple of str
        What there is to say about it.
    """

    image: ImageFile
    model: str
    kind: str
    noise: str
    sigma: float
    estimate: float | None
    notes: tuple[str, ...] = ()


def denoise_page(
    page: ImageFile, settings: FormSettings, catalog: Catalog, progress: Progress
) -> Page:
    """Denoise a page as the settings say.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    noise = None if settings.noise == AUTO else settings.noise
    found = find_page_noise(page, settings.sigma, noise, settings.data_range)
    kind, sigma = found.record.kind, found.sigma
    estimate = sigma if settings.sigma is None else None
    words = _in_words(kind, sigma)
    left_out = left_out_note(found.left_out)
    if kind == "none":
        return Page(page, NO_MODEL, kind, words, 0.0, estimate, left_out)
    model = catalog.choose(settings.model, page.channels, sigma, settings.quality)
    _check_width(page, model)
    request = catalog.request(settings.model, page.channels, sigma)
    pixels, notes = remove_page_noise(
        page,
        found,
        strength=settings.strength,
        model=request,
        quality=settings.quality if request == AUTO else None,
        data_range=settings.data_range,
        max_memory=_MAX_MEMORY,
        progress=progress,
    )
    image = dataclasses.replace(page, pixels=pixels)
    return Page(image, model.name, kind, words, sigma, estimate, notes + left_out)


def _in_words(kind: str, sigma: float) -> str:
    """Say what the noise is, and how strong if white is 255."""
    about = "" if kind == "none" else f", about {sigma:.2g}"
    return f"{_WORDS[kind]}{about}"


def _check_width(page: ImageFile, model: Model) -> None:
    """Refuse images that are too wide: the network needs memory for whole rows."""
    height, width = page.pixels.shape[:2]
    shape = (model.config.channels, height, width)
    threads = os.cpu_count() or 1
    if least_memory(shape, model.config, threads) > _MAX_MEMORY:
        raise InputError(
            f"The image is {width} pixels wide, which takes more memory than this server gives; "
            "turn it by 90 degrees, or cut it into parts."
        )
