"""No scale but the data's own: counts, stars, scans with nothing around, negative backgrounds."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import nlnet
from nlnet.noise.sample import Sample

pytestmark = pytest.mark.numerical


def cells(peak: float, height: int = 160, width: int = 200) -> np.ndarray:
    """Bright discs on a dark background, from a twentieth of the peak on."""
    y, x = np.mgrid[:height, :width]
    image = np.full((height, width), peak / 20)
    rng = np.random.default_rng(7)
    for _ in range(25):
        cy, cx, radius = rng.uniform(0, height), rng.uniform(0, width), rng.uniform(6, 20)
        image += peak * rng.uniform(0.2, 0.6) * (np.hypot(y - cy, x - cx) < radius)
    return np.asarray(np.minimum(image, peak))


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    error = np.mean((image.astype(np.float64) - clean) ** 2)
    return 10 * math.log10(float(np.ptp(clean)) ** 2 / float(error))


def denoise(image: np.ndarray, **options: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The image has values")  # that nothing is clipped
        return nlnet.denoise(image, **options)


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
@pytest.mark.parametrize("offset", [0, 100])
@pytest.mark.parametrize("peak", [20, 200, 1000])
def test_counts_of_photons(peak: float, offset: float, dtype: type) -> None:
    clean = cells(peak) + offset
    noisy = (np.random.default_rng(0).poisson(clean - offset) + offset).astype(dtype)
    known = denoise(noisy, noise=nlnet.Noise.poisson(1.0, 0.0, offset))
    found = denoise(noisy)
    assert psnr(found, clean) > psnr(noisy, clean) + 3
    assert psnr(found, clean) > psnr(known, clean) - 0.6


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_photon_noise_that_is_asked_for_is_what_is_removed(dtype: type) -> None:
    """Gain 20 without an offset: most values are 0, 20, 40, and nothing lies below 0."""
    clean = cells(400.0)
    noisy = (20 * np.random.default_rng(0).poisson(clean / 20)).astype(dtype)
    for kind in ("poisson", None):
        noise = nlnet.estimate_noise(noisy, kind=kind)
        assert noise.kind == "poisson"
        level = noise.levels[0]
        assert isinstance(level, nlnet.noise.levels.Level)
        assert level.gain == pytest.approx(20, rel=0.15)
    known = denoise(noisy, noise=nlnet.Noise.poisson(20.0))
    assert psnr(denoise(noisy, noise="poisson"), clean) > psnr(known, clean) - 0.5


@pytest.mark.parametrize("sigma", [2.0, 20.0])
def test_white_noise_asked_for_as_photon_noise_is_a_line_without_slope(sigma: float) -> None:
    image = 100 + np.random.default_rng(0).normal(0, sigma, (128, 128))
    noise = nlnet.estimate_noise(image, kind="poisson")
    assert noise.kind == "poisson"
    assert noise.sigma_at(100.0) == pytest.approx(sigma, rel=0.1)


def test_stars_are_not_white() -> None:
    """A sky of 100 with noise of 5, and stars up to 1000 times above it."""
    rng = np.random.default_rng(0)
    sky = np.full((200, 240), 100.0)
    y, x = np.mgrid[:200, :240]
    for _ in range(30):
        cy, cx, flux = rng.uniform(5, 195), rng.uniform(5, 235), 10 ** rng.uniform(3, 5)
        sky += flux * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / 2)
    noisy = (sky + rng.normal(0, 5, sky.shape)).astype(np.float32)
    assert nlnet.estimate_noise(noisy).sigma_at(100) == pytest.approx(5, rel=0.3)
    restored = denoise(noisy)
    dark = sky < 101
    assert np.std(restored[dark] - sky[dark]) < 1.5
    assert abs(float(np.sum(restored - sky))) < 0.01 * float(np.sum(sky - 100))


@pytest.mark.parametrize("outside", [0.0, -1000.0])
def test_a_scan_with_nothing_around(outside: float) -> None:
    """A circle of noise in an image of which four tenths are constant."""
    y, x = np.mgrid[:256, :256]
    inside = np.hypot(y - 128, x - 128) < 110
    clean = np.where(inside, 60 + 40 * (np.hypot(y - 100, x - 150) < 40), outside)
    assert 0.4 < np.mean(~inside) < 0.45
    noise = np.random.default_rng(0).normal(0, 12, clean.shape)
    noisy = np.where(inside, clean + noise, outside).astype(np.float32)
    assert nlnet.estimate_sigma(noisy) == pytest.approx(12, rel=0.08)
    assert nlnet.estimate_noise(noisy).sigma_at(60.0) == pytest.approx(12, rel=0.15)
    restored = denoise(noisy)
    assert np.std((restored - clean)[inside]) < 4


def test_a_drawing_has_no_noise() -> None:
    """Constant areas with sharp edges between them: what varies there is no noise."""
    rng = np.random.default_rng(0)
    image = np.full((128, 160), 255, np.uint8)
    for _ in range(60):
        top, left = rng.integers(0, 110), rng.integers(0, 140)
        image[top : top + rng.integers(1, 12), left : left + rng.integers(1, 20)] = rng.integers(99)
    assert nlnet.estimate_noise(image).kind == "none"


def test_a_negative_background() -> None:
    clean = cells(300.0) - 150
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    assert nlnet.estimate_noise(noisy).sigma == pytest.approx(20, rel=0.1)
    restored = denoise(noisy)
    assert np.std(restored - clean) < 7
    assert float(np.mean(restored - clean)) == pytest.approx(0, abs=0.5)


def test_the_data_range_does_not_change_what_a_record_removes() -> None:
    clean = cells(900.0)
    noisy = np.random.default_rng(0).poisson(clean).astype(np.uint16)
    for noise in (nlnet.Noise.poisson(1.0), nlnet.Noise.white(20.0)):
        one, two = (
            denoise(noisy, noise=noise, data_range=white, clip=False) for white in (2000, 65535)
        )
        np.testing.assert_array_equal(one, two)


def test_the_step_between_values_is_the_floor() -> None:
    """Noise below the steps of the values is not removed, whatever the values fill."""
    ramp = np.tile(np.linspace(0, 12, 160), (128, 1))
    image = np.rint(ramp).astype(np.uint16)
    assert Sample.of(image[np.newaxis]).measures.step == 1
    assert nlnet.estimate_noise(image).kind == "none"


@pytest.mark.parametrize("noise", ["white", "poisson"])
@pytest.mark.parametrize("base", [100.0, 20_000.0])
def test_best_keeps_the_brightness_of_a_narrow_range(base: float, noise: str) -> None:
    clean = np.broadcast_to(np.linspace(base, 1.5 * base, 128), (128, 128))
    sigma, gain = base / 50, base / 4000
    record = nlnet.Noise.white(sigma) if noise == "white" else nlnet.Noise.poisson(gain)
    noisy = clean + record.sigma_at(base) * np.random.default_rng(0).standard_normal(clean.shape)
    best = denoise(noisy, noise=record, quality="best", data_range=2 * base)
    assert abs(float((best - clean).mean())) < base / 1000
