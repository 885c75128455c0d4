"""Raw files: read by rawpy, denoised as mosaics, and written as DNG, or developed by LibRaw."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlnet.arrays import Array, Float32Array
from nlnet.atomic import write_atomically
from nlnet.errors import InputError
from nlnet.files.findings import Findings, Outcome
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, WritingOptions, check_format, losses, write_image
from nlnet.images.content import Source
from nlnet.images.formats import format_of
from nlnet.images.writing import PLAIN
from nlnet.model.loading import AUTO
from nlnet.noise.record import Noise, Photon
from nlnet.progress import Progress
from nlnet.raw.development import Development
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


def denoise_raw_file(
    source: Path,
    target: Path,
    settings: Settings,
    progress: Progress | None = None,
    *,
    keep_before: bool = False,
) -> Outcome:
    """Denoise the mosaic of a raw file, and write it as DNG, or develop it and write the picture.

    Parameters
    ----------
    source, target : Path
        The raw file, and the file to write: a DNG, or a picture of 16 bits if the format its
        suffix names has them.
    settings : Settings
        How to do it. Noise that is given must be photon noise, in the numbers of the sensor, black
        being 0.
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
        If the sensor is of a kind that is not supported, rawpy is missing, something is given that
        is found in the file, or as for `nlnet.denoise`.
    """
    as_dng = is_dng(target)
    bits = 16 if not as_dng and "uint16" in format_of(target).depths else 8
    with _opened(Source.of_path(source), settings, bits) as picture:
        _check_target(target, picture.sensor, bits, settings.writing)
        # For a preview it is enough; but from there LibRaw does not go back to the full size.
        picture.parameters["half_size"] = as_dng and not keep_before
        before = picture.develop() if keep_before else None
        mosaic, findings = picture.denoise(settings, progress)
        after = picture.develop()
        if as_dng:
            write_atomically(target, picture.as_dng(mosaic, after.pixels))
    if not as_dng:
        write_image(target, after, settings.writing)
        lost = losses(target, after, settings.writing)
        findings = dataclasses.replace(findings, notes=findings.notes + lost)
    return Outcome(before, after, findings)


def denoise_raw(source: Source, settings: Settings, progress: Progress | None = None) -> Outcome:
    """Denoise the mosaic of a raw file and develop it: a picture of 16 bits, which is not written.

    Parameters, and errors that may be raised, are those of `denoise_raw_file`.
    """
    with _opened(source, settings, 16) as picture:
        _, findings = picture.denoise(settings, progress)
        return Outcome(None, picture.develop(), findings)


def develop_raw(source: Source, settings: Settings) -> ImageFile:
    """Develop a raw file as it is, in 8 bits."""
    with _opened(source, settings, 8) as picture:
        return picture.develop()


@contextlib.contextmanager
def _opened(source: Source, settings: Settings, bits: int) -> Iterator[_Picture]:
    """Open a raw file of which a picture of so many bits is made."""
    _check_settings(source.name, settings)
    with opened(source, settings.max_pixels) as raw:
        yield _Picture(source, raw, settings.development, bits)


def _check_settings(name: str, settings: Settings) -> None:
    refused = {
        "sigma (--sigma)": settings.sigma is not None or settings.sigma_map is not None,
        "a model (--model)": settings.model != AUTO,
        "a data range (--data-range)": settings.data_range is not None,
        "noise other than poisson (--noise)": settings.noise in ("white", "camera"),
        "a mask (--mask)": settings.mask is not None,
        "an axis (--along)": settings.along is not None,
        "a file for errors (--error)": settings.error is not None,
    }
    for part, given in refused.items():
        if given:
            raise InputError(
                f"{name!r} is a raw file, whose noise and white are found in the file, so "
                f"{part} cannot be given; a strength (--strength) can."
            )


class _Picture:
    """A raw file that can be developed, as it is or denoised."""

    def __init__(
        self, source: Source, raw: rawpy.RawPy, development: Development, bits: int
    ) -> None:
        self._source, self._raw = source, raw
        self.sensor = sensor = Sensor.of(source, raw)
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
        self._exif = read_exif(source, raw)
        self._metadata = metadata_of(self._exif, color)

    def develop(self) -> ImageFile:
        """Let LibRaw make the picture, upright."""
        with errors_of(self._source):
            pixels: Array = self._raw.postprocess(**self.parameters)
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        return ImageFile(np.array(pixels), metadata=self._metadata)

    def denoise(
        self, settings: Settings, progress: Progress | None
    ) -> tuple[Float32Array, Findings]:
        """Replace the mosaic by a denoised one; return that, and what there is to say."""
        sensor = self.sensor
        noise = _given(settings.noise) or estimate_mosaic_noise(
            sensor.mosaic, sensor.pattern, sensor.white
        )
        mosaic, notes = _denoised(sensor, noise, settings, progress)
        self._put_back(mosaic)
        sigma = sensor.sigma(noise) * 255 / sensor.white
        words = "photon noise, gain {:.3g}, read noise {:.3g}".format(*noise)
        return mosaic, Findings((sigma,), True, notes, (words,))

    def as_dng(self, mosaic: Float32Array, preview: Array) -> bytes:
        """Return a DNG of a mosaic, with a picture of it."""
        numbers = self.sensor.numbers_of(mosaic, self._raw)
        return encode_dng(self._raw, self.sensor, self._exif, numbers, preview)

    def _put_back(self, mosaic: Float32Array) -> None:
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


def _denoised(
    sensor: Sensor, noise: tuple[float, float], settings: Settings, progress: Progress | None
) -> tuple[Float32Array, tuple[str, ...]]:
    """Return the mosaic without hot pixels and noise, and what there is to say."""
    if sensor.sigma(noise) < _QUANTIZATION:
        return sensor.mosaic, ("left as it is, with noise below the steps of its values",)
    gain, read = noise
    # Noise that does not grow with the light has no gain, but the transform needs one: so small
    # that it changes little, and not so small that float32 is too coarse for it.
    gain = max(gain, 0.1 * read**2 / sensor.white)
    mosaic, count = sensor.mosaic, 0
    if settings.hot_pixels is not False:
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


def _given(noise: str | Noise | None) -> tuple[float, float] | None:
    """Return gain and read noise that were given, if a sensor can have them."""
    if not isinstance(noise, Noise):
        return None
    if not isinstance(noise, Photon) or len(noise.levels) > 1 or noise.levels[0].black:
        raise InputError(
            f"The noise is given as {noise}, but that of a raw file is photon noise with a gain "
            "and a read noise, black being 0."
        )
    return noise.levels[0].gain, noise.levels[0].read


def _check_target(target: Path, sensor: Sensor, bits: int, writing: WritingOptions) -> None:
    """Raise what would go wrong on writing, before the work."""
    if is_dng(target):
        if writing != PLAIN:
            raise InputError("A DNG holds a mosaic, so options for writing pictures do not apply.")
        return
    shape = (*sensor.mosaic.shape, 3) if sensor.pattern is not None else sensor.mosaic.shape
    depth = np.uint16 if bits == 16 else np.uint8
    check_format(target, ImageFile(np.broadcast_to(depth(0), shape)), 1, writing)
