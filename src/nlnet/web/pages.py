"""Denoising one page of an upload."""

from __future__ import annotations

import dataclasses
import os

from nlnet.errors import InputError
from nlnet.files.one_page import find_page_noise, remove_page_noise
from nlnet.images import ImageFile
from nlnet.model.loading import AUTO
from nlnet.model.model import Model
from nlnet.network.recursion import least_memory
from nlnet.noise.record import Noise
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
    white : float
        Its value of white.
    left_out : int
        Number of pixels that are NaN.
    unclipped : bool
        Whether nothing was clipped.
    notes : tuple of str
        What else there is to say about it.
    """

    image: ImageFile
    model: str
    kind: str
    noise: str
    sigma: float
    estimate: float | None
    white: float
    left_out: int
    unclipped: bool = False
    notes: tuple[str, ...] = ()


def denoise_page(
    page: ImageFile,
    sigma: float | None,
    noise: str | Noise | None,
    settings: FormSettings,
    *,
    catalog: Catalog,
    progress: Progress,
) -> Page:
    """Denoise a page as the settings say.

    Parameters
    ----------
    page : ImageFile
        The page.
    sigma, noise
        What is known of the page's noise, as for `nlnet.files.one_page.find_page_noise`.
    settings : FormSettings
        What was asked for, for all pages.
    catalog, progress
        As for `nlnet.web.work.denoise_upload`.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    found = find_page_noise(page, sigma, noise, settings.data_range)
    estimate = found.sigma if sigma is None else None
    kind, sigma = found.record.kind, found.sigma
    words = _in_words(kind, sigma)
    if kind == "none":
        return Page(page, NO_MODEL, kind, words, 0.0, estimate, found.white, found.left_out)
    model = catalog.choose(settings.model, page.channels, sigma, settings.quality)
    _check_width(page, model)
    request = catalog.request(settings.model, page.channels, sigma)
    clean = remove_page_noise(
        page,
        found,
        strength=settings.strength,
        model=request,
        quality=settings.quality if request == AUTO else None,
        data_range=settings.data_range,
        max_memory=_MAX_MEMORY,
        progress=progress,
    )
    return Page(
        dataclasses.replace(page, pixels=clean.pixels),
        model.name,
        kind,
        words,
        sigma,
        estimate,
        found.white,
        found.left_out,
        clean.unclipped,
        clean.notes,
    )


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
