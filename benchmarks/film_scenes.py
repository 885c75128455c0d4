"""Films whose truth is known, made of photos: what `benchmarks.films` measures on.

Every film is a square window of a photo that moves, rendered at twice the size and averaged down:
frames are sharp and moved by fractions of a pixel. The noise is added with a fixed seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from nlnet.arrays import Array, FloatArray

FRAMES = 10
SIDE = 192

Place = Callable[[int, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Where the pixels of a frame are in the photo: (frame, x, y) from -1 to 1, to x, y in pixels."""


@dataclasses.dataclass(frozen=True)
class Film:
    """How a film is made.

    Parameters
    ----------
    name : str
        What moves, and the noise.
    scene : callable
        Renders the frames of a gray photo, (T, H, W) from 0 to 255.
    sigma : float
        Of white noise, or 0.
    photons : float
        At white, for photon noise, or 0.
    kind : str
        "slow", "fast" or "photons": the mean of each is reported.
    """

    name: str
    scene: Callable[[FloatArray], FloatArray]
    sigma: float = 0.0
    photons: float = 0.0
    kind: str = "slow"

    def render(self, photo: Path, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the true frames from 0 to 255, and the noisy ones: photon noise in photons."""
        picture = read_gray(photo)
        clean = self.scene(picture)
        random = np.random.default_rng(seed)
        if self.photons:
            return clean, random.poisson(clean * (self.photons / 255)).astype(np.float32)
        noise = random.standard_normal(clean.shape, np.float32)
        return clean, clean + np.float32(self.sigma) * noise


def read_gray(photo: Path) -> FloatArray:
    """Return a photo in gray, from 0 to 255."""
    picture = cv2.imread(str(photo), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise SystemExit(f"{photo} cannot be read as an image.")
    return picture.astype(np.float32)


def moving(
    step: float, turn: float = 0.0, zoom: float = 1.0, wave: float = 0.0
) -> Callable[[FloatArray], FloatArray]:
    """Return a scene: pixels, degrees and factor per frame; and a wave that deforms, in pixels."""

    def scene(photo: FloatArray) -> FloatArray:
        return np.stack([_window(photo, t, step, turn, zoom, wave) for t in range(FRAMES)])

    return scene


def layers(step: float) -> Callable[[FloatArray], FloatArray]:
    """Return a scene in which things pass before a background that goes the other way."""

    def scene(photo: FloatArray) -> FloatArray:
        behind = moving(-step / 3)(photo)
        front = moving(step)(photo[:, ::-1])
        shapes = _blobs(photo.shape, seed=5)
        cover = moving(step)(shapes[:, ::-1])
        return behind + (front - behind) * cover

    return scene


def bleaching(
    scene: Callable[[FloatArray], FloatArray], rate: float
) -> Callable[[FloatArray], FloatArray]:
    """Return a scene that gets darker by a factor per frame."""
    return lambda photo: scene(photo) * (rate ** np.arange(FRAMES, dtype=np.float32))[:, None, None]


def slices(photo: FloatArray) -> FloatArray:
    """Return a stack through a volume: structures get into focus one after another."""
    depth = 3 * moving(1.0)(_blobs(photo.shape, seed=8, sharp=0.1) * 255) / 255
    here = _window(photo, 0, 0.0, 0.0, 1.0, 0.0)
    blurred = [here, *(cv2.GaussianBlur(here, (0, 0), 1.5 * 2**k) for k in range(4))]
    pages = []
    for t in range(FRAMES):
        level = np.clip(np.abs(depth[0] * 3 - t) / 2, 0, 3.999)
        low = np.floor(level).astype(int)
        stack = np.stack(blurred)
        rows, columns = np.indices(here.shape)
        share = level - low
        pages.append(
            stack[low, rows, columns] * (1 - share) + stack[low + 1, rows, columns] * share
        )
    return np.stack(pages).astype(np.float32)


def surface(photo: FloatArray) -> FloatArray:
    """Return a confocal stack through a surface: each page shows what is near its depth."""
    here = _window(photo, 0, 0.0, 0.0, 1.0, 0.0)
    height = cv2.GaussianBlur(here, (0, 0), 4)
    low, high = np.percentile(height, (5, 95))
    height = (height - low) / (high - low) * (FRAMES - 1)
    depths = np.arange(FRAMES, dtype=np.float32)[:, None, None]
    return np.asarray(here * np.exp(-((height - depths) ** 2) / 8), np.float32)


def _window(
    photo: FloatArray, t: int, step: float, turn: float, zoom: float, wave: float
) -> FloatArray:
    """Return one frame: the photo has four pixels for one of it."""
    height, width = photo.shape
    axis = np.arange(2 * SIDE, dtype=np.float32) - SIDE + 0.5
    x, y = np.meshgrid(axis, axis)
    angle, scale = np.deg2rad(turn * (t - FRAMES / 2)), zoom ** (t - FRAMES / 2)
    far = 2 * step * (t - FRAMES / 2)
    u = scale * (np.cos(angle) * x - np.sin(angle) * y) + 0.93 * far + width / 2
    v = scale * (np.sin(angle) * x + np.cos(angle) * y) + 0.37 * far + height / 2
    if wave:
        u = u + 2 * wave * np.sin(y / 33 + 0.55 * t)
        v = v + 2 * wave * np.sin(x / 41 + 0.45 * t)
    large = cv2.remap(
        photo,
        u.astype(np.float32),
        v.astype(np.float32),
        cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REFLECT,
    )
    return np.clip(cv2.resize(large, (SIDE, SIDE), interpolation=cv2.INTER_AREA), 0, 255)


def _blobs(shape: tuple[int, ...], seed: int, sharp: float = 8.0) -> FloatArray:
    """Return smooth random shapes, from 0 to 1."""
    noise = np.random.default_rng(seed).standard_normal(shape, np.float32)
    smooth: Array = cv2.GaussianBlur(noise, (0, 0), 28)
    return (1 / (1 + np.exp(-sharp * smooth / smooth.std()))).astype(np.float32)


FILMS = (
    Film("pan and turn, 0.4 pixels, white 20", moving(0.4, 0.15), sigma=20),
    Film("pan and turn, 0.4 pixels, white 50", moving(0.4, 0.15), sigma=50),
    Film("pan and zoom, 2.5 pixels, white 20", moving(2.5, 0.3, 0.995), sigma=20),
    Film("pan and turn, 2.5 pixels, white 50", moving(2.5, 0.5), sigma=50),
    Film("deforming, white 30", moving(0.6, 0.0, 1.0, 2.0), sigma=30),
    Film("pan, 7 pixels, white 10", moving(7.0, 0.2), sigma=10, kind="fast"),
    Film("layers, 4 pixels, white 25", layers(4.0), sigma=25, kind="fast"),
    Film("pan, 12 pixels, white 40", moving(12.0), sigma=40, kind="fast"),
    Film("stack, white 30", slices, sigma=30),
    Film(
        "bleaching, 1 pixel, 20 photons",
        bleaching(moving(1.0, 0.2), 0.93),
        photons=20,
        kind="photons",
    ),
    Film("deforming, 100 photons", moving(0.5, 0.0, 1.0, 1.5), photons=100, kind="photons"),
    Film("stack, 10 photons", slices, photons=10, kind="photons"),
    Film("surface, white 20", surface, sigma=20),
    Film("surface, 50 photons", surface, photons=50, kind="photons"),
)
