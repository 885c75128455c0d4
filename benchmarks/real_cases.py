"""What `benchmarks.real_noise` measures: noisy images with their truth, and ways to denoise."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

import nlnet
from benchmarks.pictures import CHANNELS, bsd68_paths
from nlnet.arrays import Array
from nlnet.evaluation.datasets import read_clean
from nlnet.images import read_image
from nlnet.noise import add_noise
from nlnet.noise.stabilisation import Stabiliser

SIGMAS = (5, 15, 25, 50)
MIDDLE = 256
"""Side of the square that slow peers see."""

EVERY = 5
"""Of the photos, slow peers see every fifth."""

BM3D_PHOTOS = (7.0, 11.0, 16.0, 22.0)
CAMERA_PHOTOS = (2.0, 3.0, 4.0, 5.0, 6.0)
BM3D_MICROSCOPY = (12.0, 20.0, 30.0, 42.0)
OPENCV_PHOTOS = (3.0, 5.0, 7.0, 10.0)
OPENCV_MICROSCOPY = (12.0, 17.0, 25.0, 35.0)
"""Strengths that are tried for peers that cannot estimate them; the best for a whole set counts."""

Denoise = Callable[[Array], Array]
Ways = Mapping[tuple[str, float | None], Denoise]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A noisy image, and what it should look like; both from 0 to 255."""

    name: str
    load: Callable[[], tuple[Array, Array]]


@dataclasses.dataclass(frozen=True, eq=False)
class Set:
    """Images that are denoised in the same ways.

    Parameters
    ----------
    part, name : str
        What `--only` names, and which images of it.
    cases : list of Case
        The images.
    ways : mapping
        Ways to denoise them, by a name, and a strength or None.
    """

    part: str
    name: str
    cases: list[Case]
    ways: Ways


def ours(noisy: Array, quality: str | None = None) -> Array:
    """Denoise with defaults, but for the quality."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that no noise was found
        return nlnet.denoise(noisy, quality=quality, data_range=255)


def told(noisy: Array, sigma: float) -> Array:
    """Denoise as camera noise of this strength."""
    return nlnet.denoise(noisy, sigma, noise="camera", data_range=255)


def one_sigma(noisy: Array) -> Array:
    """Denoise as if the noise were white, with an estimate of sigma."""
    if nlnet.estimate_sigma(noisy) == 0:
        return noisy
    return nlnet.denoise(noisy, noise="white", data_range=255)


def bm3d(noisy: Array, sigma: float) -> Array:
    """Denoise with the authors' BM3D, or CBM3D."""
    from bm3d import bm3d, bm3d_rgb  # type: ignore[import-untyped]

    run = bm3d if noisy.ndim == 2 else bm3d_rgb
    return np.asarray(run(noisy.astype(np.float64), sigma))


def opencv(noisy: Array, h: float) -> Array:
    """Denoise with OpenCV's non-local means, with its default patches and window."""
    import cv2

    if noisy.ndim == 2:
        return np.asarray(cv2.fastNlMeansDenoising(noisy, None, h))
    swapped = np.ascontiguousarray(noisy[..., ::-1])
    return np.asarray(cv2.fastNlMeansDenoisingColored(swapped, None, h, h))[..., ::-1]


def stabilised_bm3d(noisy: Array) -> Array:
    """Even photon noise out with the gain and read noise that nlnet finds, then BM3D."""
    noise = nlnet.estimate_noise(noisy, kind="poisson", data_range=255)
    if not noise.gain:
        return bm3d(noisy, noise.sigma_at(0.0))
    transform = Stabiliser(noise.levels[0])
    evened = transform.forward(noisy.astype(np.float64))
    scale = 255 / (evened.max() - evened.min())  # BM3D is given what it is mostly given
    denoised = bm3d((evened - evened.min()) * scale, scale) / scale + evened.min()
    return transform.inverse(denoised)


OURS: Ways = {
    ("noisy", None): lambda noisy: noisy,
    ("white", None): one_sigma,
    ("nlnet", None): ours,
}


def _peers(opencv_strengths: tuple[float, ...], bm3d_strengths: tuple[float, ...]) -> Ways:
    ways: dict[tuple[str, float | None], Denoise] = dict(OURS)
    for h in opencv_strengths:
        ways["opencv", h] = functools.partial(opencv, h=h)
    for sigma in bm3d_strengths:
        ways["bm3d", sigma] = functools.partial(bm3d, sigma=sigma)
    return ways


def find_sets(data: Path, count: int | None = None) -> Iterator[Set]:
    """Yield what can be measured with the data that is there; `count` images of each at most."""
    photos, microscopy = (_pairs(data / "real" / part) for part in ("photos", "microscopy"))
    scenes = [path for path in microscopy if path.stem.endswith("_1")]  # the others: shot again
    vst: Ways = {("vst+bm3d", None): stabilised_bm3d}
    best: Ways = {("best", None): functools.partial(ours, quality="best")}
    camera: Ways = {("told", s): functools.partial(told, sigma=s) for s in CAMERA_PHOTOS}
    peers = {**_peers(OPENCV_PHOTOS, BM3D_PHOTOS), **camera}
    gray_peers = {**_peers(OPENCV_MICROSCOPY, BM3D_MICROSCOPY), **vst}
    sets = [
        Set("photos", "all", [_pair(path) for path in _spread(photos)], {**OURS, **best}),
        Set("microscopy", "all", [_pair(path) for path in microscopy], {**OURS, **vst, **best}),
        *_white_sets(data),
        *_clean_sets(data),
        Set("microscopy", "few", [_pair(path, MIDDLE) for path in scenes], gray_peers),
        Set("photos", "few", [_pair(path, MIDDLE) for path in _spread(photos[::EVERY])], peers),
    ]
    for each in sets:
        if each.cases:
            yield dataclasses.replace(each, cases=each.cases[:count])


def _spread(paths: list[Path]) -> list[Path]:
    """Return them in an order in which the first ones, of a run that was stopped, are varied."""
    return [path for start in range(EVERY) for path in paths[start::EVERY]]


def _pairs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "noisy").glob("*") if path.is_file())


def _pair(noisy: Path, side: int | None = None) -> Case:
    def load() -> tuple[Array, Array]:
        truth = noisy.parent.parent / "clean" / noisy.name
        images = [read_image(path).pixels for path in (noisy, truth)]
        if side is not None:
            top, left = ((size - side) // 2 for size in images[0].shape[:2])
            images = [each[top : top + side, left : left + side] for each in images]
        return images[0], images[1]

    return Case(noisy.stem, load)


def _white_sets(data: Path) -> Iterator[Set]:
    """Yield Gaussian noise of every strength; image i has the seed i."""
    for kind, sigma in itertools.product(CHANNELS, SIGMAS):
        cases = [
            Case(path.stem, functools.partial(_with_white_noise, path, kind, sigma, seed))
            for seed, path in enumerate(bsd68_paths(kind, data))
        ]
        known = functools.partial(_known, sigma=sigma)
        yield Set(
            "white", f"{kind} {sigma}", cases, {("known", None): known, ("nlnet", None): ours}
        )


def _with_white_noise(path: Path, kind: str, sigma: float, seed: int) -> tuple[Array, Array]:
    """Return an image with noise, neither clipped nor rounded, and without."""
    clean = read_clean(path, CHANNELS[kind])
    return add_noise(clean, sigma, seed).astype(np.float32), clean


def _clean_sets(data: Path) -> Iterator[Set]:
    """Yield images without any noise added, which should come back as they are."""
    for kind, channels in CHANNELS.items():

        def load(path: Path, channels: int = channels) -> tuple[Array, Array]:
            clean = read_clean(path, channels)
            return clean, clean

        cases = [Case(path.stem, functools.partial(load, path)) for path in bsd68_paths(kind, data)]
        yield Set("clean", kind, cases, {("nlnet", None): ours})


def _known(noisy: Array, sigma: float) -> Array:
    return nlnet.denoise(noisy, sigma, data_range=255)
