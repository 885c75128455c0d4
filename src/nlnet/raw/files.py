"""Raw files: read by rawpy, denoised as mosaics, and written as DNG, or developed by LibRaw."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.denoising.devices import CPU
from nlnet.errors import InputError
from nlnet.images import MAX_PIXELS, ImageFile, WritingOptions, check_format, losses, write_image
from nlnet.images.content import Source
from nlnet.images.formats import format_of
from nlnet.images.writing import PLAIN
from nlnet.noise.record import Noise, Photon
from nlnet.progress import Progress
from nlnet.raw.development import DEFAULT, Development
from nlnet.raw.dng import encode_dng, is_dng
from nlnet.raw.estimation import estimate_mosaic_noise
from nlnet.raw.metadata import metadata_of, read_exif
from nlnet.raw.mosaic import by_bands, denoise_mosaic, without_hot_pixels
from nlnet.raw.sensors import LARGEST, Sensor, errors_of, opened

if TYPE_CHECKING:
    import rawpy

_STILL_WHITE = 0.995
"""Pixels at white stay there, if they have this part of it when denoised; others are noisy."""

_ADJUSTED = 0.75
"""LibRaw takes the largest value for white if it is above this part of the nominal white."""

_QUANTIZATION = 0.3
"""Noise below the steps of the sensor's numbers: a tenth of their square is their own noise."""


@dataclasses.dataclass(frozen=True)
class RawSettings:
    """How to denoise raw files; the parts are as for `nlnet.denoise` and `Development`.

    Noise that is given must be photon noise, in the numbers of the sensor, black being 0.
    """

    strength: float | tuple[float, float] = 1.0
    quality: str | None = None
    noise: Noise | None = None
    hot_pixels: bool = True
    development: Development = DEFAULT
    threads: int | None = None
    max_memory: int | None = None
    device: str = CPU
    max_pixels: int = MAX_PIXELS
    writing: WritingOptions = PLAIN


@dataclasses.dataclass(frozen=True, eq=False)
class RawOutcome:
    """What was done to a raw file.

    Parameters
    ----------
    before : ImageFile or None
        The picture without denoising, if it was asked for.
    after : ImageFile
        The picture as it was written; the preview of a DNG may be smaller than its mosaic.
    gain, read : float
        The noise, in the numbers of the sensor: its variance is ``gain * x + read**2``.
    sigma : float
        Its standard deviation at a quarter of white, if white is 255.
    notes : tuple of str
        What else there is to say.
    """

    before: ImageFile | None
    after: ImageFile
    gain: float
    read: float
    sigma: float
    notes: tuple[str, ...]


def denoise_raw_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    settings: RawSettings,
    progress: Progress | None = None,
    *,
    keep_before: bool = False,
) -> RawOutcome:
    """Denoise the mosaic of a raw file, and write it as DNG, or develop it and write the picture.

    Parameters
    ----------
    source, target : path
        The raw file, and the file to write: a DNG, or a picture of 16 bits if the format its
        suffix names has them.
    settings : RawSettings
        How to do it.
    progress : callable, optional
        As for `nlnet.denoise`.
    keep_before : bool
        Also develop the noisy mosaic.

    Raises
    ------
    FileError
        If the file is damaged, cut short, or of a sensor that LibRaw does not know; or if the
        target cannot be written. Nothing is written then.
    InputError
        If the sensor is of a kind that is not supported, rawpy is missing, or as for
        `nlnet.denoise`.
    """
    origin = Source.of_path(source)
    as_dng = is_dng(target)
    bits = 16 if not as_dng and "uint16" in format_of(target).depths else 8
    with opened(source, settings.max_pixels) as raw:
        sensor = Sensor.of(origin, raw)
        _check_target(target, sensor, bits, settings.writing)
        picture = _Picture(origin, raw, sensor, settings.development, bits)
        # For a preview it is enough; but from there LibRaw does not go back to the full size.
        picture.parameters["half_size"] = as_dng and not keep_before
        before = picture.develop() if keep_before else None
        noise = _given(settings.noise) or estimate_mosaic_noise(
            sensor.mosaic, sensor.pattern, sensor.white
        )
        mosaic, notes = _denoised(sensor, noise, settings, progress)
        numbers = sensor.numbers_of(mosaic, raw) if as_dng else None
        picture.put_back(mosaic)
        after = picture.develop()
        if numbers is not None:
            dng = encode_dng(raw, sensor, picture.exif, numbers, after.pixels)
            write_atomically(target, dng)
        else:
            write_image(target, after, settings.writing)
            notes += losses(target, after, settings.writing)
    sigma = sensor.sigma(noise) * 255 / sensor.white
    return RawOutcome(before, after, *noise, sigma, notes)


class _Picture:
    """A raw file that can be developed, as it is or with another mosaic."""

    def __init__(
        self, source: Source, raw: rawpy.RawPy, sensor: Sensor, development: Development, bits: int
    ) -> None:
        self._source = source
        self._raw = raw
        # LibRaw would look at the largest value of the mosaic it develops; with less noise that
        # is smaller, and the picture would come out brighter than the noisy one.
        largest = float(sensor.mosaic.max())
        adjusted = _ADJUSTED * sensor.white < largest < sensor.white
        self._white = largest if adjusted else sensor.white
        self.parameters: dict[str, Any] = {
            **development.parameters(),
            "output_bps": bits,
            "adjust_maximum_thr": 0.0,
            "user_sat": round(self._white),
        }
        color = None if sensor.pattern is None else development.output_color
        self.exif = read_exif(source, raw)
        self._metadata = metadata_of(self.exif, color)

    def put_back(self, mosaic: npt.NDArray[np.float32]) -> None:
        """Replace the mosaic, on a scale that uses all 16 bits: rounding must not make steps."""
        low = min(0.0, float(mosaic.min()))
        scale = LARGEST / (max(self._white, float(mosaic.max())) - low)
        black = round(-low * scale)
        scaled = by_bands(mosaic, lambda rows: np.rint(rows * scale + black))
        self._raw.raw_image_visible[:] = scaled.clip(0, LARGEST, out=scaled)
        self.parameters |= {
            "user_black": black,
            "user_cblack": [0, 0, 0, 0],
            # LibRaw takes black away before it looks at this.
            "user_sat": round(self._white * scale),
        }

    def develop(self) -> ImageFile:
        """Let LibRaw make the picture, upright."""
        with errors_of(self._source):
            pixels: Array = self._raw.postprocess(**self.parameters)
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        return ImageFile(np.array(pixels), metadata=self._metadata)


def _denoised(
    sensor: Sensor,
    noise: tuple[float, float],
    settings: RawSettings,
    progress: Progress | None,
) -> tuple[npt.NDArray[np.float32], tuple[str, ...]]:
    """Return the mosaic without hot pixels and noise, and what there is to say."""
    if sensor.sigma(noise) < _QUANTIZATION:
        return sensor.mosaic, ("left as it is, with noise below the steps of its values",)
    gain, read = noise
    # Noise that does not grow with the light has no gain, but the transform needs one: so small
    # that it changes little, and not so small that float32 is too coarse for it.
    gain = max(gain, 0.1 * read**2 / sensor.white)
    mosaic, count = sensor.mosaic, 0
    if settings.hot_pixels:
        mosaic, count = without_hot_pixels(mosaic, sensor.pattern, gain, read)
    denoised = denoise_mosaic(
        mosaic,
        sensor.pattern,
        gain,
        read,
        white_balance=sensor.white_balance,
        strength=settings.strength,
        quality=settings.quality,
        threads=settings.threads,
        max_memory=settings.max_memory,
        device=settings.device,
        progress=progress,
    ).astype(np.float32, copy=False)
    # What is white stays white, so that developers still tell highlights that were clipped.
    white = sensor.white - float(np.ptp(sensor.black))
    clipped = (mosaic >= white) & (denoised > _STILL_WHITE * white)
    denoised[clipped] = mosaic[clipped]
    return denoised, (f"hot or dead pixels that were filled: {count}",) if count else ()


def _given(noise: Noise | None) -> tuple[float, float] | None:
    """Return gain and read noise that were given, if a sensor can have them."""
    if noise is None:
        return None
    if not isinstance(noise, Photon) or len(noise.levels) > 1 or noise.levels[0].black:
        raise InputError(
            f"The noise is given as {noise}, but that of a raw file is photon noise with a gain "
            "and a read noise, black being 0."
        )
    return noise.levels[0].gain, noise.levels[0].read


def _check_target(
    target: str | os.PathLike[str], sensor: Sensor, bits: int, writing: WritingOptions
) -> None:
    """Raise what would go wrong on writing, before the work."""
    if is_dng(target):
        if writing != PLAIN:
            raise InputError("A DNG holds a mosaic, so options for writing pictures do not apply.")
        return
    shape = (*sensor.mosaic.shape, 3) if sensor.pattern is not None else sensor.mosaic.shape
    depth = np.uint16 if bits == 16 else np.uint8
    check_format(target, ImageFile(np.broadcast_to(depth(0), shape)), 1, writing)
