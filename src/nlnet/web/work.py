"""The work on one upload: bytes of a file in, bytes of a file out. It knows nothing of HTTP."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np

from nlnet import images
from nlnet.arrays import Array
from nlnet.denoising import NO_NOISE, denoise
from nlnet.errors import InputError
from nlnet.file_denoising import white_of
from nlnet.images import ImageFile
from nlnet.noise.white import estimate_sigma
from nlnet.web.catalog import Catalog

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".tif": "image/tiff",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".pgm": "image/x-portable-graymap",
    ".ppm": "image/x-portable-pixmap",
    ".npy": "application/octet-stream",
}
"""The formats that come back, each by the suffix of its files."""

NO_MODEL = "none"
"""Stands for a model's name where no noise was found, and so none removed."""


@dataclasses.dataclass(frozen=True)
class Denoised:
    """A denoised file, and what is to be said about it.

    Sigmas are on the 0-255 scale; the estimate is None if the image is too small for one.
    """

    data: bytes
    filename: str
    media_type: str
    description: str
    notes: tuple[str, ...]
    model: str
    sigma: float
    estimate: float | None
    seconds: float


def denoise_file(
    data: bytes,
    filename: str,
    *,
    sigma: float | None,
    model: str,
    catalog: Catalog,
    max_pixels: int,
    progress: Callable[[float], bool],
) -> Denoised:
    """Denoise an image file; format, depth, transparency and metadata are kept.

    Parameters
    ----------
    data, filename : bytes, str
        The file and what messages call it.
    sigma : float or None
        Standard deviation of the noise on the 0-255 scale; None to take what is estimated.
    model : str
        One of the catalog's names.
    catalog : Catalog
        The models to choose from.
    max_pixels : int
        Larger images are refused before they are decoded.
    progress : callable
        Called with the share done; returns False to stop the work.
    """
    start = time.perf_counter()
    suffix = images.suffix_of(data, filename)
    noisy = images.decode(data, filename, max_pixels=max_pixels)
    progress(0.0)
    white = white_of(noisy, None)
    unit = white / 255
    estimate = _estimate(noisy.pixels, unit, needed=sigma is None)
    noise = sigma or estimate or 0.0
    if sigma is None and noise < NO_NOISE:
        encoded, used, noise = data, NO_MODEL, 0.0
    else:
        chosen = catalog.choose(model, noisy.channels, noise)
        pixels = denoise(
            noisy.pixels,
            noise * unit,
            model=chosen,
            data_range=white,
            clip=noisy.pixels.dtype.kind == "u",  # floating values may lie beyond white
            progress=progress,
        )
        encoded = images.encode(dataclasses.replace(noisy, pixels=pixels), suffix)
        used = chosen.name
    return Denoised(
        data=encoded,
        filename=f"{_stem(filename)}-denoised{suffix}",
        media_type=MEDIA_TYPES[suffix],
        description=_describe(noisy, suffix),
        notes=noisy.notes + images.losses(f"image{suffix}", noisy),
        model=used,
        sigma=noise,
        estimate=estimate,
        seconds=time.perf_counter() - start,
    )


def to_png(data: bytes, filename: str, *, max_pixels: int) -> bytes:
    """Return an image file as a PNG file of 8 bits, for programs that show it."""
    image = images.decode(data, filename, max_pixels=max_pixels)
    white = white_of(image, None)
    pixels = _to_8_bits(image.pixels, white)
    alpha = None if image.alpha is None else _to_8_bits(image.alpha, white)
    return images.encode(dataclasses.replace(image, pixels=pixels, alpha=alpha), ".png")


def _estimate(pixels: Array, unit: float, *, needed: bool) -> float | None:
    """Estimate sigma in that unit; None if it cannot be, and is not needed either."""
    try:
        return estimate_sigma(pixels) / unit
    except InputError:
        if needed:
            raise
        return None


def _to_8_bits(values: Array, white: float) -> Array:
    scaled = np.multiply(np.nan_to_num(values), 255 / white, dtype=np.float32)
    shown: Array = np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)
    return shown


def _stem(filename: str) -> str:
    # Some browsers send a whole path, with the separators of their system.
    stem = PurePosixPath(PureWindowsPath(filename).name).stem
    return "".join(letter for letter in stem if letter.isprintable())[:100] or "image"


def _describe(image: ImageFile, suffix: str) -> str:
    height, width = image.pixels.shape[:2]
    depth = f"{8 * image.pixels.itemsize}-bit"
    if image.pixels.dtype.kind == "f":
        depth += " float"
    kind = "gray" if image.channels == 1 else "color"
    return f"{width} x {height}, {depth} {kind} {suffix.removeprefix('.').upper()}"
