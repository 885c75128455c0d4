"""A simulated camera: photon and read noise on a mosaic, then all that a camera does to it.

A clean picture is taken back to linear light and to the colors of a sensor, noise is added under a
Bayer pattern, and the mosaic is developed as cameras do: demosaicing, white balance, a color
matrix, a tone curve, smoothing of chroma more than of luma, sharpening, JPEG. Demosaicing and
smoothing correlate the noise between neighbors, the tone curve ties it to the brightness, and JPEG
takes the rest of its fine grain: the noise of photos as people have them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyvips

from nlnet.arrays import Array, FloatArray
from nlnet.network import color

Planes = npt.NDArray[np.float64]

_COLOR_MATRIX = np.array([[1.75, -0.60, -0.15], [-0.20, 1.55, -0.35], [0.05, -0.55, 1.50]])
"""From the colors of a typical sensor to sRGB; its rows add up to 1, so that gray stays gray."""

_DETAIL = 5.0
"""Standard deviation of detail that a camera takes half for detail and half for noise."""


@dataclasses.dataclass(frozen=True)
class Camera:
    """What a camera does to the light, and how it develops its picture.

    Parameters
    ----------
    photons : float
        Photons that a pixel in full light counts; the fewer, the noisier.
    read : float
        Read noise, in photons.
    red, blue : float
        White balance: how many times less sensitive the sensor is to red and blue than to green.
    saturation : float
        Share of a typical color matrix, 0 for none; it makes colors, and their noise, stronger.
    contrast : float
        Slope of the tone curve in the middle, beyond that of sRGB; 0 for sRGB itself.
    demosaicing : {"bilinear", "gradient"}
        Means of neighbors, or the same corrected by the gradient of the known color.
    luma_blur, chroma_blur : float
        Standard deviation in pixels of the smoothing of the picture, noise and detail alike.
    grain, blotch : float
        Noise reduction that spares the detail: share of the noise that stays as it is, and standard
        deviation in pixels of the smoothing of the rest. It turns fine grain into blotches.
    cleaning : float
        Noise reduction that looks at the picture: share of the noise that is removed where the
        picture is flat, and less the more detail there is.
    sharpening : float
        Share of the finest detail that is added once more.
    quality : int
        Quality of the JPEG file, 0 for none.
    subsampling : bool
        Whether JPEG stores the colors at half the size.
    """

    photons: float = 500.0
    read: float = 3.0
    red: float = 2.0
    blue: float = 1.6
    saturation: float = 0.7
    contrast: float = 0.2
    demosaicing: Literal["bilinear", "gradient"] = "gradient"
    luma_blur: float = 0.4
    chroma_blur: float = 1.0
    grain: float = 1.0
    blotch: float = 1.5
    cleaning: float = 0.0
    sharpening: float = 0.3
    quality: int = 92
    subsampling: bool = True

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Camera:
        """Draw one at random, from old telephones to large sensors."""
        photons = float(np.exp(rng.uniform(np.log(40), np.log(4000))))
        return cls(
            photons=photons,
            read=float(np.exp(rng.uniform(np.log(0.5), np.log(8)))),
            red=float(rng.uniform(1.3, 2.6)),
            blue=float(rng.uniform(1.2, 2.4)),
            saturation=float(rng.uniform(0, 1)),
            contrast=float(rng.uniform(0, 0.6)),
            demosaicing="bilinear" if rng.random() < 0.3 else "gradient",
            luma_blur=float(rng.uniform(0.3, 1.1)) if rng.random() < 0.8 else 0.0,
            chroma_blur=float(rng.uniform(0.3, 3.5)),
            grain=float(rng.uniform(0.05, 0.6)) if rng.random() < 0.8 else 1.0,
            blotch=float(np.exp(rng.uniform(np.log(0.7), np.log(4)))),
            sharpening=float(rng.uniform(0, 1.0)) if rng.random() < 0.6 else 0.0,
            quality=int(rng.integers(70, 100)) if rng.random() < 0.85 else 0,
            subsampling=bool(rng.random() < 0.6),
        )

    def shoot(self, picture: Array, rng: np.random.Generator) -> tuple[Planes, Planes]:
        """Take a picture of a picture: the noisy photo, and what it would be without noise.

        Parameters
        ----------
        picture : (3, H, W) array
            A clean picture in sRGB, from 0 to 255.
        rng : numpy.random.Generator
            Where the noise comes from.

        Returns
        -------
        noisy, clean : (3, H, W) float64 arrays
            From 0 to 255. The clean one went the same way, but without noise and JPEG: it is what
            the mean of many such photos comes to.

        Examples
        --------
        >>> picture = np.full((3, 32, 32), 100, np.uint8)
        >>> noisy, clean = Camera(photons=50).shoot(picture, np.random.default_rng(0))
        >>> bool(np.abs(clean - 100).max() < 1e-6), bool((noisy - clean).std() > 2)
        (True, True)
        """
        curve = self._tone_curve()
        light = np.interp(picture / 255.0, curve[1], curve[0])
        sensor = color.transform(light, self._to_sensor())
        mosaic = _mosaic(np.maximum(sensor, 0.0))
        counts = rng.poisson(mosaic * self.photons) + self.read * rng.standard_normal(mosaic.shape)
        developed = self._develop(mosaic, curve)
        noise = self._develop(counts / self.photons, curve) - developed
        noise *= 1 - self.cleaning * _flatness(developed)
        noise = self.grain * noise + (1 - self.grain) * _blur(noise, self.blotch)
        clean, noisy = (self._finish(planes) for planes in (developed, developed + noise))
        return (jpeg(noisy, self.quality, self.subsampling) if self.quality else noisy), clean

    def _to_sensor(self) -> FloatArray:
        gains = np.array([1 / self.red, 1.0, 1 / self.blue])
        return np.asarray(gains[:, np.newaxis] * np.linalg.inv(self._color_matrix()))

    def _color_matrix(self) -> FloatArray:
        return np.asarray(np.eye(3) + self.saturation * (_COLOR_MATRIX - np.eye(3)))

    def _tone_curve(self) -> tuple[FloatArray, FloatArray]:
        """Linear light, and the values of the file, both from 0 to 1."""
        values = np.linspace(0, 1, 1025)
        # An S through (0, 0), (1/2, 1/2) and (1, 1); its inverse is the table read the other way.
        curved = values + self.contrast * np.sin(2 * np.pi * (values - 0.5)) / (2 * np.pi)
        light = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        return light, curved

    def _develop(self, mosaic: FloatArray, curve: tuple[FloatArray, FloatArray]) -> Planes:
        """From a mosaic in linear light to sRGB from 0 to 255."""
        planes = _demosaic(mosaic, self.demosaicing)
        linear = color.transform(planes, np.linalg.inv(self._to_sensor()))
        return np.asarray(255 * np.interp(linear, *curve))  # clips to black and white, too

    def _finish(self, planes: Planes) -> Planes:
        """Smooth and sharpen."""
        opponent = color.transform(planes, color.OPPONENT)
        luma = _blur(opponent[:1], self.luma_blur)
        luma += self.sharpening * (luma - _blur(luma, 1.0))
        opponent = np.concatenate([luma, _blur(opponent[1:], self.chroma_blur)])
        return np.clip(color.transform(opponent, color.RGB), 0, 255)


def _flatness(planes: Planes) -> Planes:
    """Return where there is no detail, from 0 to 1: (1, H, W)."""
    luma = planes.mean(axis=0, keepdims=True)
    detail = np.sqrt(_blur((luma - _blur(luma, 2.0)) ** 2, 3.0))
    return np.asarray(_DETAIL / (detail + _DETAIL))


def _mosaic(planes: FloatArray) -> FloatArray:
    """Keep one color per pixel: red, green / green, blue."""
    mosaic: FloatArray = planes[1].copy()
    mosaic[::2, ::2] = planes[0, ::2, ::2]
    mosaic[1::2, 1::2] = planes[2, 1::2, 1::2]
    return mosaic


_CROSS = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4.0
_SQUARE = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4.0


def _demosaic(mosaic: FloatArray, method: str) -> Planes:
    """Fill in the missing colors: (3, H, W)."""
    masks = np.zeros((3, *mosaic.shape))
    masks[0, ::2, ::2] = masks[2, 1::2, 1::2] = 1.0
    masks[1] = 1.0 - masks[0] - masks[2]
    green = _convolve(masks[1] * mosaic, _CROSS)
    if method == "gradient":
        # What the cross makes of the red or blue at its own place tells how far it is off.
        own = mosaic - _convolve_own(mosaic)
        green = green + 0.5 * (1 - masks[1]) * own
        # Red and blue follow green: their difference to it is smooth.
        red, blue = (green + _convolve(masks[c] * (mosaic - green), _SQUARE) for c in (0, 2))
    else:
        red, blue = (_convolve(masks[c] * mosaic, _SQUARE) for c in (0, 2))
    return np.stack([red, green, blue])


def _convolve_own(mosaic: FloatArray) -> FloatArray:
    """Mean of the four nearest pixels of the same color in the same row and column."""
    padded = np.pad(mosaic, 2, mode="reflect")
    inner = slice(2, -2)
    return np.asarray(
        (padded[:-4, inner] + padded[4:, inner] + padded[inner, :-4] + padded[inner, 4:]) / 4
    )


def _convolve(plane: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolve with a symmetric 3x3 kernel; the border is mirrored so that colors stay in place."""
    padded = np.pad(plane, 1, mode="reflect")
    height, width = plane.shape
    total = np.zeros_like(plane)
    for i in range(3):
        for j in range(3):
            if kernel[i, j]:
                total += kernel[i, j] * padded[i : i + height, j : j + width]
    return total


def _blur(planes: FloatArray, std: float) -> FloatArray:
    """Gaussian blur of (C, H, W) planes."""
    if std < 0.1:
        return planes.copy()
    radius = max(1, int(np.ceil(3 * std)))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / std) ** 2)
    weights /= weights.sum()
    for axis in (1, 2):
        padding = [(0, 0)] * 3
        padding[axis] = (radius, radius)
        padded = np.moveaxis(np.pad(planes, padding, mode="symmetric"), axis, 0)
        size = planes.shape[axis]
        total = weights[0] * padded[:size]
        for start in range(1, len(weights)):
            total += weights[start] * padded[start : start + size]
        planes = np.moveaxis(total, 0, axis)
    return planes


def jpeg(planes: FloatArray, quality: int, subsampling: bool) -> Planes:
    """Write a JPEG file into memory, and read it back."""
    pixels = np.ascontiguousarray(np.moveaxis(np.rint(planes), 0, -1).astype(np.uint8))
    image: Any = pyvips.Image.new_from_array(pixels).copy(interpretation="srgb")
    data = image.jpegsave_buffer(Q=quality, subsample_mode="on" if subsampling else "off")
    read = np.asarray(pyvips.Image.jpegload_buffer(data).numpy())
    return np.moveaxis(read, -1, 0).astype(np.float64)
