from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plain_white
import pytest

import nlnet
from nlnet.errors import InputError
from nlnet.evaluation.datasets import read_clean
from nlnet.noise import add_noise
from nlnet.noise.estimation import find_sigma
from nlnet.noise.sample import Sample

pytestmark = pytest.mark.numerical


def scene(height: int = 160, width: int = 200, channels: int = 1) -> np.ndarray:
    """Smooth areas, edges and a textured corner, from 40 to 210."""
    y, x = np.mgrid[:height, :width]
    image = 90 + 40 * np.sin(x / 31) + 40 * (x + y > 170)
    image[: height // 3, : width // 3] += (
        30 * np.sign(np.sin(1.3 * (x + 2 * y)))[: height // 3, : width // 3]
    )
    return image if channels == 1 else np.dstack([image, 250 - image, image[::-1]])


@pytest.mark.parametrize("sigma", [2, 5, 15, 25, 50])
@pytest.mark.parametrize("channels", [1, 3])
def test_noise_of_known_strength(sigma: float, channels: int) -> None:
    noisy = add_noise(scene(channels=channels), sigma)
    assert nlnet.estimate_sigma(noisy) == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_the_answer_is_in_the_units_of_the_image(dtype: type) -> None:
    noisy = np.clip(add_noise(scene(), 12), 0, 255)
    unit = {np.uint8: 1, np.uint16: 257}.get(dtype, 1 / 255)
    given = (np.rint(noisy * unit) if unit >= 1 else noisy * unit).astype(dtype)
    found = nlnet.estimate_sigma(given)
    assert type(found) is float
    assert found / unit == pytest.approx(12, rel=0.05)


@pytest.mark.parametrize("offset", [0.0, -1e3, 1e6])
def test_an_offset_does_not_matter(offset: float) -> None:
    noisy = add_noise(scene(), 10)
    expected = nlnet.estimate_sigma(noisy)
    assert nlnet.estimate_sigma(noisy + offset) == pytest.approx(expected, rel=1e-3)


def test_clipped_noise_is_not_taken_for_less_noise() -> None:
    """Half of the image is black and white, with its noise cut off as in an 8-bit file."""
    image = scene()
    image[:, :50], image[:, 150:] = 0, 255
    noisy = np.rint(np.clip(add_noise(image, 20), 0, 255)).astype(np.uint8)
    assert nlnet.estimate_sigma(noisy) == pytest.approx(20, rel=0.05)


def test_black_bars_do_not_matter() -> None:
    noisy = np.clip(add_noise(scene(), 10), 1, 255)
    framed = np.pad(noisy, 40)
    assert nlnet.estimate_sigma(framed) == pytest.approx(10, rel=0.05)


def test_no_noise() -> None:
    steps = np.repeat(np.arange(0, 250, 25, dtype=np.uint8), 20)
    for image in (np.full((64, 64), 7, np.uint8), np.tile(steps, (64, 1)), np.zeros((9, 9))):
        assert nlnet.estimate_sigma(image) == pytest.approx(0, abs=0.1)


def test_channel_axis() -> None:
    noisy = add_noise(scene(channels=3), 10)
    expected = nlnet.estimate_sigma(noisy)
    assert nlnet.estimate_sigma(np.moveaxis(noisy, -1, 0), channel_axis=0) == expected
    single = nlnet.estimate_sigma(noisy[..., :1], channel_axis=-1)
    assert single == nlnet.estimate_sigma(noisy[..., 0])


@pytest.mark.parametrize(("side", "error"), [(8, 0.5), (16, 0.35), (32, 0.2), (64, 0.1)])
def test_small_images(side: int, error: float) -> None:
    estimates = [
        nlnet.estimate_sigma(add_noise(np.full((side, side), 100.0), 10, seed)) for seed in range(9)
    ]
    assert np.mean(estimates) == pytest.approx(10, rel=error)


def test_large_images_are_sampled() -> None:
    noisy = np.tile(add_noise(scene(400, 500), 10), (6, 6))
    assert nlnet.estimate_sigma(noisy.astype(np.float32)) == pytest.approx(10, rel=0.05)


def test_the_quantile_is_near_that_of_the_gamma_distribution() -> None:
    stats = pytest.importorskip("scipy.stats")
    for size in (3, 5, 7):
        degrees, trace = size**2 - 4, size * (size - 2)
        exact = stats.gamma.ppf(1 - 1e-6, degrees / 2, scale=2 * trace / degrees)
        assert plain_white.texture_of_noise(size) == pytest.approx(exact, rel=0.05)


PATCHES = {(160, 200, 1): (7, 1), (150, 120, 1): (5, 1), (40, 60, 1): (3, 1), (321, 481, 3): (7, 2)}
"""Sides of patches, and the steps between them, that fit the shapes of images."""


@pytest.mark.parametrize("shape", PATCHES)
@pytest.mark.parametrize("sigma", [1, 5, 25, 50])
def test_the_plain_statement_of_the_method(shape: tuple[int, int, int], sigma: float) -> None:
    """In the same patches, the engine finds the same."""
    noisy = np.clip(add_noise(scene(*shape), sigma), 20, 235)
    sample = Sample.of(np.moveaxis(np.atleast_3d(noisy), -1, 0))
    expected = plain_white.estimate_white(sample, *PATCHES[shape])
    assert find_sigma(sample) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((7, 100)), "100x7 pixels, but estimating its noise takes at least 8x8"),
        (np.full((16, 16), np.nan), "256 of the image's 256 pixels are masked or NaN"),
        (np.zeros((16, 16), np.int64), "dtype is int64"),
        (np.zeros((16, 16, 4)), "last of three axes must be 3"),
        (np.zeros(16), "has shape"),
    ],
)
def test_bad_images(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nlnet.estimate_sigma(image)


@pytest.mark.parametrize("sigma", [5, 25])
@pytest.mark.parametrize("channels", [1, 3])
def test_photographs(shared: Path, sigma: float, channels: int) -> None:
    paths = sorted((shared / "data" / "bsds500" / "val").iterdir())[::12]
    errors = [
        abs(nlnet.estimate_sigma(add_noise(read_clean(path, channels), sigma, seed)) / sigma - 1)
        for seed, path in enumerate(paths)
    ]
    assert np.mean(errors) < 0.05


def test_pixels_that_are_left_out() -> None:
    """By a mask, by that of a masked array, or as NaN: what is there has no influence."""
    noisy = add_noise(scene(), 10)
    mask = np.zeros(noisy.shape, bool)
    mask[20:50, 30:60] = True
    expected = nlnet.estimate_sigma(noisy, mask=mask)
    assert expected == pytest.approx(10, rel=0.1)
    spoilt = np.where(mask, 200.0, noisy)
    assert nlnet.estimate_sigma(spoilt, mask=mask) == expected
    assert nlnet.estimate_sigma(np.ma.MaskedArray(spoilt, mask=mask)) == expected
    assert nlnet.estimate_sigma(np.where(mask, np.nan, noisy)) == expected
    found = nlnet.estimate_noise(spoilt, mask=mask, data_range=255)
    assert found == nlnet.estimate_noise(np.where(mask, np.nan, noisy), data_range=255)
