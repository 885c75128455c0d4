"""One page of an upload: what its noise is, and the page without it."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.image import denoise
from nlnet.errors import InputError
from nlnet.files.data_range import white_of
from nlnet.files.one_page import left_out_note
from nlnet.images import ImageFile
from nlnet.inputs import check_finite
from nlnet.masks import fill_hidden
from nlnet.model.loading import AUTO
from nlnet.model.model import Model
from nlnet.network.recursion import least_memory
from nlnet.noise.deciding import decide_noise
from nlnet.noise.record import Noise
from nlnet.web.catalog import Catalog
from nlnet.web.settings import Settings

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""

_MAX_MEMORY = 1280 * 2**20
"""Bytes that the network may use besides the image and the result: enough for 50 megapixels of a
usual shape to be computed just as by the command line."""

_SAMPLES = 100_000

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
    page: ImageFile, settings: Settings, catalog: Catalog, progress: Callable[[float], object]
) -> Page:
    """Denoise a page as the settings say.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    white = white_of(page, settings.data_range)
    planes, hidden = fill_hidden(page.pixels, None, None if page.channels == 1 else -1)
    noise = _find_noise(planes, settings, white)
    sigma = _mean_sigma(planes, noise) * 255 / white
    estimate = sigma if settings.sigma is None else None
    words = _in_words(noise, sigma)
    left_out = left_out_note(0 if hidden is None else int(np.count_nonzero(hidden)))
    if noise.kind == "none":
        return Page(page, NO_MODEL, noise.kind, words, 0.0, estimate, left_out)
    model = catalog.choose(settings.model, page.channels, sigma)
    _check_width(page, model)
    # Gray images have no color to blend; `work` says so.
    pair = len(settings.strength) == 2 and page.channels == 3
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pixels = denoise(
            page.pixels,
            noise=noise,
            strength=settings.strength if pair else settings.strength[0],
            model=catalog.request(settings.model, page.channels, sigma),
            # None, not the usual one: then values beyond white are no mistake.
            data_range=settings.data_range or page.data_range,
            max_memory=_MAX_MEMORY,
            progress=progress,
        )
    notes = tuple(dict.fromkeys(str(warning.message).rstrip(".") for warning in told)) + left_out
    image = dataclasses.replace(page, pixels=pixels)
    return Page(image, model.name, noise.kind, words, sigma, estimate, notes)


def _find_noise(planes: Array, settings: Settings, white: float) -> Noise:
    check_finite(planes)
    sigma = None if settings.sigma is None else settings.sigma * white / 255
    return decide_noise(planes, white, sigma, None if settings.noise == AUTO else settings.noise)


def _mean_sigma(planes: Array, noise: Noise) -> float:
    """Return the standard deviation over the page, from a sample if the record has none."""
    if noise.sigma is not None:
        return noise.sigma
    step = max(1, int(np.sqrt(planes.size / _SAMPLES)))
    sigmas = noise.levels[0].sigma(planes[:, ::step, ::step])
    return float(np.sqrt(np.mean(sigmas**2)))


def _in_words(noise: Noise, sigma: float) -> str:
    """Say what the noise is, and how strong if white is 255."""
    about = "" if noise.kind == "none" else f", about {sigma:.2g}"
    return f"{_WORDS[noise.kind]}{about}"


def _check_width(page: ImageFile, model: Model) -> None:
    """Refuse what takes too much memory: rows of the image are held, however few they are."""
    height, width = page.pixels.shape[:2]
    shape = (model.config.channels, height, width)
    threads = os.cpu_count() or 1
    if least_memory(shape, model.config, threads) > _MAX_MEMORY:
        raise InputError(
            f"The image is {width} pixels wide, which takes more memory than this server gives; "
            "turn it by 90 degrees, or cut it into parts."
        )
