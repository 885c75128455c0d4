"""A simulated camera, from pictures to noisy mosaics and back to pictures."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import PIL.Image

from nlnet.raw.demosaicing import PHASES, Pattern, interpolate, pad
from nlnet.raw.mosaic import scale_sites

Floats = npt.NDArray[np.floating]

PATTERN: Pattern = ((0, 1), (1, 2))
WHITE_BALANCE = (2.0, 1.0, 1.5)
"""What red, green and blue of a sensor are multiplied with in daylight, about."""

# From the sensor's colors to those of sRGB: of a Canon camera, as LibRaw has it, rounded.
_MATRIX = np.array([[1.82, -0.97, 0.15], [-0.23, 1.77, -0.54], [-0.02, -0.47, 1.49]])
_POWER = 2.4


@dataclasses.dataclass(frozen=True)
class RawCamera:
    """A sensor that counts `photons` at a white pixel behind the green filter."""

    photons: float
    read: float = 3.0
    """Standard deviation of the read noise, in photons."""

    def expose(self, picture: npt.NDArray[np.uint8]) -> Floats:
        """Return the mosaic of a picture without noise, in photons."""
        light = _to_linear(picture / 255) @ np.linalg.inv(_MATRIX).T / WHITE_BALANCE
        mosaic = np.empty(light.shape[:2])
        for row, column in PHASES:
            color = PATTERN[row][column]
            mosaic[row::2, column::2] = light[row::2, column::2, color]
        return np.asarray(self.photons * np.maximum(mosaic, 0))

    def add_noise(self, mosaic: Floats, seed: int) -> npt.NDArray[np.float32]:
        """Return what the sensor counts instead."""
        random = np.random.default_rng(seed)
        counts = random.poisson(mosaic) + self.read * random.standard_normal(mosaic.shape)
        return counts.astype(np.float32)

    def develop(self, mosaic: npt.NDArray[np.floating]) -> Floats:
        """Return the picture of a mosaic, from 0 to 255, neither rounded nor denoised."""
        balanced = mosaic / self.photons
        scale_sites(balanced, PATTERN, WHITE_BALANCE)
        padded = pad(balanced)
        colors = np.empty((*mosaic.shape, 3))
        for row, column in PHASES:
            phase = interpolate(padded, PATTERN, (row, column))
            colors[row::2, column::2] = np.moveaxis(phase, 0, -1)
        return np.asarray(255 * _to_srgb(np.clip(colors @ _MATRIX.T, 0, 1)))


def read_picture(path: str) -> npt.NDArray[np.uint8]:
    """Return an RGB picture of even height and width."""
    with PIL.Image.open(path) as image:
        picture = np.asarray(image.convert("RGB"))
    height, width = (size // 2 * 2 for size in picture.shape[:2])
    return picture[:height, :width]


def _to_linear(values: Floats) -> Floats:
    curve = ((values + 0.055) / 1.055) ** _POWER
    return np.where(values <= 0.04045, values / 12.92, curve)


def _to_srgb(light: Floats) -> Floats:
    curve = 1.055 * light ** (1 / _POWER) - 0.055
    return np.where(light <= 0.0031308, 12.92 * light, curve)
