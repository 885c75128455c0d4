"""What happens to a picture between the scene and the file, one small class per step.

A step takes an image, float32 from 0 to 255, (H, W) or (H, W, 3), and returns the next one. Random
steps take their numbers from `rng`; without one they do what the mean of many exposures would show.
A step that is not `faithful` changes the picture itself (a mosaic, an encoder): it is left out of
the truth that a denoised file is compared with.
"""

import dataclasses
from typing import ClassVar, Literal

import cv2
import numpy as np
import numpy.typing as npt

from nlnet.training.simulation.demosaicing import demosaic, to_mosaic

Image = npt.NDArray[np.float32]
Random = np.random.Generator | None

_SENSOR_TO_SRGB = np.array(
    [[1.75, -0.60, -0.15], [-0.20, 1.55, -0.35], [0.05, -0.55, 1.50]], np.float32
)
"""From the colors of a typical sensor to sRGB; its rows add up to 1, so that gray stays gray."""


_TABLE = 1 << 15
"""Entries of a tone curve: the steps between them are below a tenth of a gray level in the dark."""


class Step:
    """One step on the way from the scene to the file."""

    faithful: ClassVar[bool] = True

    def apply(self, image: Image, rng: Random) -> Image:
        """Return the image after this step."""
        raise NotImplementedError


def blur(image: Image, std: float) -> Image:
    """Return the image after a Gaussian blur; the border is mirrored."""
    if std <= 0:
        return image
    return np.asarray(
        cv2.GaussianBlur(image, (0, 0), std, borderType=cv2.BORDER_REFLECT), np.float32
    )


@dataclasses.dataclass(frozen=True)
class White(Step):
    """White Gaussian noise, blurred by `softness` pixels and brought back to its strength."""

    sigma: float
    softness: float = 0.0

    def apply(self, image: Image, rng: Random) -> Image:
        """Add the noise."""
        if rng is None:
            return image
        noise = blur(rng.standard_normal(image.shape, np.float32), self.softness)
        return image + np.float32(self.sigma / max(float(noise.std()), 1e-6)) * noise


@dataclasses.dataclass(frozen=True)
class Photons(Step):
    """Photon and read noise of a linear sensor, such as a microscope's.

    `peak` photons are 255; `read` is in photons, `offset` in gray levels.
    """

    peak: float
    read: float = 0.0
    offset: float = 0.0
    softness: float = 0.0

    def apply(self, image: Image, rng: Random) -> Image:
        """Count the photons."""
        if rng is None:
            return image + np.float32(self.offset)
        light = np.maximum(image, 0) * np.float32(self.peak / 255)
        counts = rng.poisson(light).astype(np.float32)
        counts += np.float32(self.read) * rng.standard_normal(image.shape, np.float32)
        noisy = counts * np.float32(255 / self.peak) + np.float32(self.offset)
        if self.softness > 0:
            clean = image + np.float32(self.offset)
            noise = blur(noisy - clean, self.softness)
            # Interpolation and binning weaken noise, but less than a blur alone would.
            noisy = clean + np.float32(1 + self.softness) * noise
        return noisy


@dataclasses.dataclass(frozen=True)
class Grain(Step):
    """Film grain: blurred noise, strongest in the midtones, gray or of each color its own."""

    sigma: float
    size: float
    colored: bool = False
    midtones: float = 0.7

    def apply(self, image: Image, rng: Random) -> Image:
        """Add the grain."""
        if rng is None:
            return image
        shape = image.shape if self.colored else image.shape[:2]
        noise = blur(rng.standard_normal(shape, np.float32), self.size)
        noise *= np.float32(self.sigma / max(float(noise.std()), 1e-6))
        if noise.ndim < image.ndim:
            noise = noise[..., np.newaxis]
        place = np.clip(image / 255, 0, 1)
        weight = 1 - self.midtones + self.midtones * 4 * place * (1 - place)
        return np.asarray(image + weight * noise, np.float32)


@dataclasses.dataclass(frozen=True)
class Sensor(Step):
    """A camera's sensor and the development of its picture: color image in, color image out.

    Parameters
    ----------
    photons : float
        Photons that a pixel in full light counts.
    read : float
        Read noise, in photons.
    red, blue : float
        How many times less sensitive the sensor is to red and blue than to green.
    saturation : float
        Share of a typical color matrix, which makes colors and their noise stronger.
    contrast : float
        Slope of the tone curve in the middle, beyond that of sRGB.
    demosaicer : str
        How missing colors are filled in; "none": the sensor measures all colors everywhere.
    hot : float
        Share of pixels that are stuck at a high value.
    """

    photons: float
    read: float
    red: float = 2.0
    blue: float = 1.6
    saturation: float = 0.5
    contrast: float = 0.2
    demosaicer: Literal["none", "bilinear", "malvar", "edge", "vng"] = "malvar"
    hot: float = 0.0
    faithful: ClassVar[bool] = False  # but for mosaic and noise, it gives back what it took in

    def apply(self, image: Image, rng: Random) -> Image:
        """Expose and develop."""
        to_light, to_values = self._tone_curve()
        linear = _look_up(to_light, image / np.float32(255))
        to_srgb = np.eye(3, dtype=np.float32) + np.float32(self.saturation) * (
            _SENSOR_TO_SRGB - np.eye(3, dtype=np.float32)
        )
        gains = np.array([self.red, 1.0, self.blue], np.float32)
        sensor = np.maximum(linear @ np.linalg.inv(to_srgb).T / gains, 0)
        mosaic = sensor if self.demosaicer == "none" else to_mosaic(sensor)
        if rng is not None:
            mosaic = self._expose(mosaic, rng)
        planes = mosaic if self.demosaicer == "none" else demosaic(mosaic, self.demosaicer)
        developed = (planes * gains) @ to_srgb.T
        return 255 * _look_up(to_values, developed)

    def _expose(self, light: Image, rng: np.random.Generator) -> Image:
        counts = rng.poisson(light * self.photons).astype(np.float32)
        counts += np.float32(self.read) * rng.standard_normal(light.shape, np.float32)
        if self.hot > 0:
            counts[rng.random(light.shape) < self.hot] = np.float32(self.photons)
        return counts / np.float32(self.photons)

    def _tone_curve(self) -> tuple[Image, Image]:
        """Return tables from values of the file to linear light, and back, both from 0 to 1."""
        values = np.linspace(0, 1, _TABLE)
        curved = values + self.contrast * np.sin(2 * np.pi * (values - 0.5)) / (2 * np.pi)
        light = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        to_light, to_values = np.interp(values, curved, light), np.interp(values, light, curved)
        return to_light.astype(np.float32), to_values.astype(np.float32)


def _look_up(table: Image, values: Image) -> Image:
    """Return what a table over [0, 1] has nearest to the values."""
    places = np.clip(values, 0, 1) * np.float32(len(table) - 1) + np.float32(0.5)
    return np.asarray(table[places.astype(np.int32)])


@dataclasses.dataclass(frozen=True)
class Sharpen(Step):
    """Unsharp masking of the luminance; detail well below `coring` gray levels is not sharpened."""

    amount: float
    radius: float = 1.0
    coring: float = 0.0

    def apply(self, image: Image, rng: Random) -> Image:
        """Add detail once more."""
        luma = image if image.ndim == 2 else image.mean(axis=2)
        detail = np.float32(self.amount) * (luma - blur(luma, self.radius))
        if self.coring:
            power = blur(detail * detail, 2.0)
            detail = detail * (power / (power + np.float32(self.coring**2)))
        return image + (detail if image.ndim == 2 else detail[..., np.newaxis])


@dataclasses.dataclass(frozen=True)
class Scale(Step):
    """Scaling to a size in pixels, down by area or up by cubic interpolation."""

    height: int
    width: int

    def apply(self, image: Image, rng: Random) -> Image:
        """Scale it."""
        down = self.height < image.shape[0]
        way = cv2.INTER_AREA if down else cv2.INTER_CUBIC
        return np.asarray(cv2.resize(image, (self.width, self.height), interpolation=way))


@dataclasses.dataclass(frozen=True)
class Cut(Step):
    """Rows above and columns on the left that are left out."""

    top: int
    left: int

    def apply(self, image: Image, rng: Random) -> Image:
        """Cut it."""
        return image[self.top :, self.left :]


@dataclasses.dataclass(frozen=True)
class Quantise(Step):
    """Rounding to steps of `unit` gray levels, clipped from 0 to 255 unless `open_ended`."""

    unit: float = 1.0
    open_ended: bool = False
    faithful: ClassVar[bool] = False

    def apply(self, image: Image, rng: Random) -> Image:
        """Round it."""
        rounded = np.rint(image / np.float32(self.unit)) * np.float32(self.unit)
        return np.asarray(rounded if self.open_ended else np.clip(rounded, 0, 255), np.float32)


@dataclasses.dataclass(frozen=True)
class Encode(Step):
    """A lossy file, written and read again."""

    form: Literal["jpeg", "webp"]
    quality: int
    halved_chroma: bool = True
    faithful: ClassVar[bool] = False

    def apply(self, image: Image, rng: Random) -> Image:
        """Encode and decode."""
        pixels = np.clip(np.rint(image), 0, 255).astype(np.uint8)
        if self.form == "webp":
            settings = [cv2.IMWRITE_WEBP_QUALITY, self.quality]
        else:
            chroma = "420" if self.halved_chroma else "444"
            sampling = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{chroma}")
            settings = [cv2.IMWRITE_JPEG_QUALITY, self.quality]
            settings += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
        bgr = pixels if pixels.ndim == 2 else pixels[..., ::-1]
        _, data = cv2.imencode("." + self.form, bgr, settings)
        flag = cv2.IMREAD_GRAYSCALE if pixels.ndim == 2 else cv2.IMREAD_COLOR
        read = np.asarray(cv2.imdecode(data, flag))
        return np.asarray(read if pixels.ndim == 2 else read[..., ::-1], np.float32)
