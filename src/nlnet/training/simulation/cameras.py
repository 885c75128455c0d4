"""What cameras do against noise before they save a file: denoisers of several kinds.

They are simple and fast, as those in cameras are, and leave noise that is correlated, blotchy, or
there only beside edges.
"""

import dataclasses
from typing import ClassVar, Literal

import cv2
import numpy as np

from nlnet.training.simulation.steps import Image, Random, Step, blur

Method = Literal["bilateral", "median", "guided", "shrinkage", "smoothing", "nonlocal"]


@dataclasses.dataclass(frozen=True)
class InCamera(Step):
    """An in-camera denoiser of luma, and a blur or median of chroma.

    Parameters
    ----------
    method : str
        What denoises the luminance. "shrinkage" thresholds wavelets; "smoothing" is a blur that
        spares detail; "nonlocal" is non-local means.
    sigma : float
        The noise that it expects in the luminance, in gray levels.
    share : float
        How much of the result is used, the rest being the noisy picture.
    chroma : float
        Standard deviation in pixels of the blur of chroma.
    chroma_median : int
        Side of a median of chroma; 0 for none.
    spared : float
        Share of the luminance's noise that is left beside detail, for fear of losing it.
    """

    method: Method
    sigma: float
    share: float = 1.0
    chroma: float = 1.0
    chroma_median: int = 0
    spared: float = 0.0
    faithful: ClassVar[bool] = False

    def apply(self, image: Image, rng: Random) -> Image:
        """Denoise it."""
        if image.ndim == 2:
            return self._luma(image)
        planes = cv2.cvtColor(image / np.float32(255), cv2.COLOR_RGB2YCrCb) * np.float32(255)
        luma = self._luma(np.ascontiguousarray(planes[..., 0]))
        chroma = np.ascontiguousarray(planes[..., 1:])
        if self.chroma_median:
            for channel in range(2):
                one = np.ascontiguousarray(chroma[..., channel])
                chroma[..., channel] = cv2.medianBlur(one, self.chroma_median)
        chroma = blur(chroma, self.chroma)
        merged = np.concatenate([luma[..., np.newaxis], chroma], axis=2) / np.float32(255)
        return np.asarray(cv2.cvtColor(merged, cv2.COLOR_YCrCb2RGB) * np.float32(255))

    def _luma(self, luma: Image) -> Image:
        cleaned = {
            "bilateral": _bilateral,
            "median": _median,
            "guided": _guided,
            "shrinkage": _shrinkage,
            "smoothing": _smoothing,
            "nonlocal": _nonlocal,
        }[self.method](luma, self.sigma)
        removed = np.float32(self.share) * (cleaned - luma)
        if self.spared:
            removed *= 1 - np.float32(self.spared) * _busy(cleaned)
        return np.asarray(luma + removed, np.float32)


@dataclasses.dataclass(frozen=True)
class Residue(Step):
    """What in-camera denoising leaves of the noise, of any spectrum: grain and blotches.

    Parameters
    ----------
    luma, chroma : tuple of float
        Standard deviations in white, in gray levels, of blurs of `size`, twice and four times that:
        in all colors alike, and between them.
    size : float
        Standard deviation in pixels of the finest blur.
    growth : float
        Exponent of the brightness by which it grows.
    flat : float
        Share that is left where the picture is flat: denoisers spare what has detail.
    """

    luma: tuple[float, ...]
    chroma: tuple[float, ...]
    size: float
    growth: float
    flat: float

    def apply(self, image: Image, rng: Random) -> Image:
        """Add it."""
        if rng is None:
            return image
        gray = image if image.ndim == 2 else image.mean(axis=2)
        weight = (self.flat + (1 - self.flat) * _busy(gray)) * np.clip(
            gray / 255, 0.02, 1
        ) ** self.growth
        noise = self._bands(self.luma, (*gray.shape, 1), rng)
        if image.ndim == 2:
            return np.asarray(image + weight * noise[..., 0], np.float32)
        colors = self._bands(self.chroma, (*gray.shape, 3), rng)
        noise = noise + colors - colors.mean(axis=2, keepdims=True)
        return np.asarray(image + weight[..., np.newaxis] * noise, np.float32)

    def _bands(
        self, sigmas: tuple[float, ...], shape: tuple[int, ...], rng: np.random.Generator
    ) -> Image:
        total = np.zeros(shape, np.float32)
        for octave, sigma in enumerate(sigmas):
            noise = blur(rng.standard_normal(shape, np.float32), self.size * 2**octave)
            total += np.float32(sigma / max(float(noise.std()), 1e-6)) * noise.reshape(shape)
        return total


_DETAIL = 6.0
"""Standard deviation of detail, in gray levels, of which a denoiser spares half."""


def _busy(gray: Image) -> Image:
    """Return how much detail there is at every place, from 0 to 1."""
    detail = blur((gray - blur(gray, 1.5)) ** 2, 3.0)
    return np.asarray(detail / (detail + np.float32(_DETAIL**2)))


def _bilateral(luma: Image, sigma: float) -> Image:
    return np.asarray(cv2.bilateralFilter(luma, 5, 2.5 * sigma, 1.5))


def _median(luma: Image, sigma: float) -> Image:
    middle = np.asarray(cv2.medianBlur(luma, 3))
    # Only where it differs by no more than noise does.
    return np.where(np.abs(middle - luma) < 2.5 * sigma, middle, luma)


def _guided(luma: Image, sigma: float) -> Image:
    """Filter, guided by the picture itself: flat areas become their mean."""
    side = (5, 5)
    mean = cv2.boxFilter(luma, -1, side)
    variance = cv2.boxFilter(luma * luma, -1, side) - mean * mean
    slope = variance / (variance + np.float32(2 * sigma**2) + np.float32(1e-6))
    slope_mean = cv2.boxFilter(slope, -1, side)
    offset_mean = cv2.boxFilter(mean - slope * mean, -1, side)
    return np.asarray(slope_mean * luma + offset_mean)


def _shrinkage(luma: Image, sigma: float) -> Image:
    """Apply soft thresholds to three bands of an undecimated wavelet transform."""
    kernel = np.array([1, 4, 6, 4, 1], np.float32) / 16
    rest, result = luma, np.zeros_like(luma)
    for band, expected in enumerate((0.89, 0.2, 0.086)):  # of white noise, in each band
        spread = np.zeros(4 * 2**band + 1, np.float32)
        spread[:: 2**band] = kernel
        smooth = cv2.sepFilter2D(rest, -1, spread, spread, borderType=cv2.BORDER_REFLECT)
        detail = rest - smooth
        limit = np.float32(2 * expected * sigma)
        result += np.sign(detail) * np.maximum(np.abs(detail) - limit, 0)
        rest = np.asarray(smooth, np.float32)
    return result + rest


def _smoothing(luma: Image, sigma: float) -> Image:
    """Blur, by how little detail there is around."""
    smooth = blur(luma, 1.0)
    detail = blur((luma - blur(luma, 2.0)) ** 2, 3.0)
    flat = np.float32((1.5 * sigma) ** 2) / (detail + np.float32((1.5 * sigma) ** 2))
    return luma + flat * (smooth - luma)


def _nonlocal(luma: Image, sigma: float) -> Image:
    pixels = np.clip(np.rint(luma), 0, 255).astype(np.uint8)
    cleaned = cv2.fastNlMeansDenoising(pixels, None, float(0.8 * sigma), 5, 13)
    return np.asarray(cleaned, np.float32)
