"""One page of an upload: what its noise is, and the page without it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import numpy as np

from nlnet import color
from nlnet.arrays import Array
from nlnet.denoising import NO_NOISE, check_estimate, denoise
from nlnet.errors import InputError
from nlnet.estimation import estimate_sigma
from nlnet.file_denoising import white_of
from nlnet.images import ImageFile
from nlnet.model import Model
from nlnet.sweep_memory import least_memory
from nlnet.web.catalog import Catalog
from nlnet.web.settings import Settings

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""

_MAX_MEMORY = 1280 * 2**20
"""Bytes that the network may use besides the image and the result: enough for 50 megapixels of a
usual shape to be computed just as by the command line."""


@dataclasses.dataclass(frozen=True, eq=False)
class Page:
    """A denoised page, and how it became so."""

    image: ImageFile
    model: str
    noise: str
    sigma: float
    estimate: float | None


def denoise_page(
    page: ImageFile, settings: Settings, catalog: Catalog, progress: Callable[[float], object]
) -> Page:
    """Denoise a page as the settings say."""
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
            return Page(page, NO_MODEL, "no noise", 0.0, estimate)
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
    return Page(dataclasses.replace(page, pixels=blended), model.name, words, sigma, estimate)


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
