from __future__ import annotations

import math

import numpy as np
import pytest

import nlnet
from nlnet.denoising.hot_pixels import fill_hot_pixels, find_hot_pixels

SPACING, COUNT = 24, 12
PLACES = np.s_[SPACING // 2 :: SPACING]
TINTS = {1: np.ones((2, 2)), 2: np.array([[0.6, 1.0], [1.0, 0.5]])}


def night(seed: int = 0) -> np.ndarray:
    side = SPACING * COUNT
    return np.random.default_rng(seed).normal(20.0, 1.0, (1, side, side))


def light_of_stars(width: float) -> np.ndarray:
    """Stars of this full width at half maximum, integrated over pixels, with the peak 1."""
    rng = np.random.default_rng(1)
    edges = np.arange(SPACING + 1) - SPACING / 2 - 0.5
    scale = width / math.sqrt(16 * math.log(2)) * 2

    def profile(shift: float) -> np.ndarray:
        return np.diff([math.erf((edge - shift) / scale) for edge in edges])

    def star() -> np.ndarray:
        return np.outer(*(profile(shift) for shift in rng.uniform(-0.5, 0.5, 2)))

    field = np.block([[star() for _ in range(COUNT)] for _ in range(COUNT)])
    return np.asarray(field / profile(0.0).max() ** 2)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("width", "lost"), [(1.0, 0.05), (1.5, 0.01), (2.355, 0.0), (4.0, 0.0)])
def test_stars_stay(width: float, lost: float, step: int) -> None:
    tint = np.tile(TINTS[step], (SPACING * COUNT // 2, SPACING * COUNT // 2))
    stars = light_of_stars(width) * tint
    for peak in (10, 15, 30, 100, 1000, 30_000):
        assert find_hot_pixels(night() + peak * stars, 1.0, step).sum() <= lost * COUNT**2


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_hot_and_dead_pixels_are_found(sign: int, step: int) -> None:
    for height, share in ((10, 0.6), (15, 0.9), (25, 0.98), (500, 1.0)):
        shot = night()
        shot[0, PLACES, PLACES] += sign * height
        hot = find_hot_pixels(shot, 1.0, step)
        assert hot[0, PLACES, PLACES].mean() >= share
        assert hot.sum() == hot[0, PLACES, PLACES].sum()


def test_they_are_found_at_edges_and_corners() -> None:
    for step in (1, 2):
        shot = night()[:, :9, :8]
        places = [(0, 0), (0, 7), (8, 0), (8, 7), (4, 3)]
        for y, x in places:
            shot[0, y, x] = 200.0
        assert [tuple(place) for place in np.argwhere(find_hot_pixels(shot, 1.0, step)[0])] == (
            sorted(places)
        )


def test_noise_edges_lines_and_texture_are_not_hot() -> None:
    clean = np.zeros((1, 96, 96))
    clean[:, 20:, 30:] = 200.0
    clean[:, 50] = 400.0
    clean[0, range(96), range(96)] = 300.0
    clean[:, 60:, ::2] += 100.0
    for sigma in (0.1, 1.0, 30.0):
        noise = np.random.default_rng(0).normal(0, sigma, clean.shape)
        assert not find_hot_pixels(clean + noise, sigma).any()


def test_sigma_may_vary() -> None:
    shot = night()
    shot[0, PLACES, PLACES] += 25.0
    sigma = np.ones(shot.shape[1:])
    sigma[: len(sigma) // 2] = 10.0
    found = find_hot_pixels(shot, sigma)[0, PLACES, PLACES]
    assert not found[: COUNT // 2].any()
    assert found[COUNT // 2 :].all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_they_are_filled_with_their_own_color(dtype: type) -> None:
    mosaic = np.tile([[10, 60], [80, 30]], (16, 16))[np.newaxis].astype(dtype)
    shot = mosaic.copy()
    shot[0, 0, 0], shot[0, 9, 13], shot[0, 20, 31] = 250, 255, 0
    filled = fill_hot_pixels(shot, find_hot_pixels(shot, 1.0, step=2), step=2)
    assert filled.dtype == dtype
    np.testing.assert_array_equal(filled, mosaic)


@pytest.mark.numerical
@pytest.mark.parametrize("along", [None, 0])
def test_denoising_fills_them_if_asked(along: int | None) -> None:
    clean = np.full((3, 64, 64), 100.0)
    noisy = np.random.default_rng(2).normal(clean, 5.0)
    noisy[:, 30, 20] = 1000.0
    options = {"data_range": 255.0, "clip": False, "along": along}
    kept = nlnet.denoise_stack(noisy, 5.0, **options)
    filled = nlnet.denoise_stack(noisy, 5.0, hot_pixels=True, **options)
    assert np.abs(kept - clean)[:, 30, 20].min() > 100
    assert np.abs(filled - clean).max() < 10


@pytest.mark.numerical
def test_stars_keep_their_flux() -> None:
    """Photon noise: hot pixels go, and the light of stars beside them stays."""
    stars = 400 * light_of_stars(2.5) + 20
    noisy = np.random.default_rng(3).poisson(stars).astype(np.float32)
    noisy[5::SPACING, 5::SPACING] = 3000
    denoised = nlnet.denoise(noisy, noise=nlnet.Noise.poisson(1.0), clip=False, hot_pixels=True)
    assert denoised[5::SPACING, 5::SPACING].max() < 100
    assert (denoised - 20).sum() == pytest.approx((stars - 20).sum(), rel=0.02)
