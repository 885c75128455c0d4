"""How to denoise files: the settings of commands, clusters and programs, and files they name."""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.devices import CPU
from nlnet.denoising.network import Network, check_machine
from nlnet.denoising.plan import check_request
from nlnet.errors import InputError
from nlnet.images import MAX_PIXELS, ImageFile, WritingOptions, read_pages
from nlnet.images.writing import PLAIN
from nlnet.inputs import Strength
from nlnet.masks import Mask
from nlnet.model.loading import AUTO, ModelLike, check_quality, select_model
from nlnet.noise.record import Noise
from nlnet.raw.development import DEFAULT, Development

Path: TypeAlias = str | os.PathLike[str]

FileSigma: TypeAlias = float | tuple[float, ...] | None
"""Standard deviation of the noise if white is 255: one for all pages, one for each, or None."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to denoise files.

    Parameters
    ----------
    sigma : float, tuple of float or None
        Standard deviation of the noise, if white is 255: one for all pages, or one for each; None
        to estimate it.
    sigma_map : path or None
        An image with the sigma of every pixel, if white is 255, for white noise that varies; of one
        page, or of as many as the files have.
    noise : str, Noise or None
        What the noise is, as for `nlnet.denoise`; None to find it out for every page.
    data_range : float or None
        The value of white; None for what the file says, or its dtype stands for.
    strength : float or pair of floats
        Share of the noise that is removed, from 0 to 1; of a pair the second is for chroma, and
        gray images take the first alone.
    max_pixels : int
        Larger pages are refused before they are decoded.
    writing : WritingOptions
        Quality, depth and background of the files that are written.
    development : Development
        How LibRaw makes pictures of raw files.
    model, quality, threads, max_memory, device
        As for `nlnet.denoise`.
    per_page : bool
        Whether noise that is not given is estimated for each page of a file, not for all together.
    noise_axis : int or None
        The axis of pages, in files that have several, whose pages differ in their noise, such as
        channels: noise that is not given is estimated for each of its indices.
    along : str, int or None
        The axis along which pages are neighbors, for pages that show nearly the same: a name that
        files have, such as ``"t"``; the number of an axis; ``"pages"`` for all pages of a file; or
        ``"files"`` for all images of a folder. By default, each page is denoised by itself.
    mask : path or None
        An image whose pixels other than 0 are left out of every file; of one page, or of as many
        as the files have. NaN is left out in any case.
    hot_pixels : bool or None
        Whether hot and dead pixels are filled first; None for those of raw files alone.
    error : path or None
        Where to write the standard deviation of the error of every pixel, for a single file.
    """

    sigma: FileSigma = None
    noise: str | Noise | None = None
    model: str | os.PathLike[str] = AUTO
    quality: str | None = None
    data_range: float | None = None
    strength: Strength = 1.0
    threads: int | None = None
    max_memory: int | None = None
    device: str = CPU
    max_pixels: int = MAX_PIXELS
    writing: WritingOptions = PLAIN
    development: Development = DEFAULT
    mask: os.PathLike[str] | None = None
    per_page: bool = False
    sigma_map: os.PathLike[str] | None = None
    hot_pixels: bool | None = None
    noise_axis: int | None = None
    along: str | int | None = None
    error: os.PathLike[str] | None = None

    @property
    def estimates(self) -> bool:
        """Whether the noise, or a part of it, is not given."""
        given = self.sigma is not None or self.sigma_map is not None
        return not given and not isinstance(self.noise, Noise)

    def network(self, channels: int, model: ModelLike | None = None) -> Network:
        """Return what removes noise from images of so many channels, maybe with another model."""
        machine = self.threads, self.max_memory, self.device
        strength = self.strength_for(channels)
        return Network.of(model or self.model, channels, self.quality, *machine, strength)

    def strength_for(self, channels: int) -> Strength:
        """Return the strength for images of so many channels; gray ones take the first of two."""
        if channels == 1 and isinstance(self.strength, Sequence):
            return self.strength[0]
        return self.strength

    def check(self) -> None:
        """Raise what would go wrong with every file, before the first one is read.

        Raises
        ------
        FileError, InputError, ModelError
            If the device, the model, the mask or the map of sigma cannot be used.
        """
        check_machine(self.threads, self.max_memory, self.device)
        self.check_noise()
        for path in (self.mask, self.sigma_map):
            if path is not None:
                read_side_file(path, self.max_pixels)
        if self.model != AUTO:
            select_model(self.model, 25.0)

    def check_noise(self) -> None:
        """Raise InputError if what is said about noise and quality does not go together."""
        for sigma in self.sigma if isinstance(self.sigma, tuple) else (self.sigma,):
            check_request(sigma, self.noise, 255.0)
        if self.sigma_map is not None:
            check_request(None, self.noise, 255.0, mapped=True)
        if self.per_page and not self.estimates:
            raise InputError(
                "The noise is given, by sigma or as a record, so it cannot be estimated per page."
            )
        if self.error is not None and self.along is not None:
            raise InputError("Errors (--error) are known of single pages, but not along an axis.")
        check_quality(self.quality, self.model)


def read_side_file(path: Path, max_pixels: int) -> Sequence[ImageFile]:
    """Open a mask or a map, of one page or several; what has been read is kept for the next image.

    Raises
    ------
    FileError, InputError
        As `nlnet.images.read_pages`.
    """
    name = os.path.abspath(path)
    try:
        modified = os.stat(name).st_mtime_ns
    except OSError:
        modified = 0  # reading it says what is wrong
    return _read(name, modified, max_pixels)


@functools.lru_cache(maxsize=2)  # a mask and a map
def _read(name: str, modified: int, max_pixels: int) -> Sequence[ImageFile]:
    pages = read_pages(name, max_pixels=max_pixels)
    return [pages[0]] if len(pages) == 1 else pages


def page_mask(path: Path | None, number: int, count: int, max_pixels: int) -> Mask | None:
    """Return which pixels of a page a mask leaves out: those where it is not 0.

    Parameters
    ----------
    path : path or None
        The mask, if there is one.
    number, count : int
        Which page of how many it is for. A mask of one page is for all of them.
    max_pixels : int
        As for `nlnet.images.read_pages`.

    Raises
    ------
    InputError
        If it has another number of pages.
    """
    if path is None:
        return None
    pixels = _page("mask", path, number, count, max_pixels)
    return np.asarray((pixels != 0).any(axis=2) if pixels.ndim == 3 else pixels != 0)


def page_sigmas(path: Path | None, number: int, count: int, max_pixels: int) -> Array | None:
    """Return the map of sigma of a page; parameters are those of `page_mask`.

    Raises
    ------
    InputError
        If it has another number of pages, or colors.
    """
    if path is None:
        return None
    pixels = _page("sigma map", path, number, count, max_pixels)
    if pixels.ndim != 2:
        raise InputError(
            f"The sigma map {os.fspath(path)!r} has {pixels.shape[2]} channels, but must have one."
        )
    return pixels


def _page(what: str, path: Path, number: int, count: int, max_pixels: int) -> Array:
    pages = read_side_file(path, max_pixels)
    if len(pages) not in (1, count):
        wanted = "1 page" if count == 1 else f"1 page or {count}"
        raise InputError(
            f"The {what} {os.fspath(path)!r} has {len(pages)} pages, but must have {wanted}."
        )
    return pages[number if len(pages) > 1 else 0].pixels
