from __future__ import annotations

import numpy as np
import pytest
from cases import denoise_planes

import nlnet
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical

# Any sigma


@pytest.mark.parametrize("sigma", [0.3, 2.0, 25.0, 40.0, 255.0])
def test_the_image_is_scaled_to_the_noise_of_the_model(
    noisy_gray: np.ndarray, gray_model: Model, sigma: float
) -> None:
    scale = gray_model.sigma / sigma
    scaled = (noisy_gray * scale)[np.newaxis]
    expected = denoise_planes(scaled, gray_model.config, gray_model.stages, box=(0.0, 255 * scale))
    result = nlnet.denoise(noisy_gray, sigma, model=gray_model, data_range=255)
    np.testing.assert_allclose(result, expected[0] / scale, atol=1e-3)


def test_more_noise_is_removed_if_there_is_more(noisy_gray: np.ndarray, gray_model: Model) -> None:
    removed = [
        (nlnet.denoise(noisy_gray, sigma, model=gray_model, data_range=255) - noisy_gray).std()
        for sigma in (0.1, 1, 5, 20, 60)
    ]
    assert removed == sorted(removed)
    assert removed[0] < 0.2


@pytest.mark.parametrize("sigma", [1e-9, 1e-30, 5e-324])
def test_less_noise_than_float32_can_tell(
    noisy_gray: np.ndarray, gray_model: Model, sigma: float
) -> None:
    image = np.clip(noisy_gray, 0, 255).astype(np.float64)
    shares: list[float] = []
    result = nlnet.denoise(image, sigma, model=gray_model, data_range=255, progress=shares.append)
    np.testing.assert_array_equal(result, image)
    assert result is not image
    assert shares == [1.0]


@pytest.mark.parametrize(("value", "sigma"), [(1e33, 1e-5), (0.0, 5e-324)])
def test_noise_that_float32_cannot_tell_is_none(
    gray_model: Model, value: float, sigma: float
) -> None:
    image = np.full((16, 16), value)
    result = nlnet.denoise(image, sigma, model=gray_model, clip=False)
    np.testing.assert_array_equal(result, image)


# Unknown sigma


@pytest.mark.parametrize("unit", [1.0, 1 / 255, 257.0])
def test_without_sigma_it_is_estimated(
    noisy_gray: np.ndarray, gray_model: Model, unit: float
) -> None:
    image, white = np.clip(noisy_gray, 0, 255) * unit, 255 * unit
    found = nlnet.estimate_sigma(image)
    assert found == pytest.approx(20 * unit, rel=0.25)
    expected = nlnet.denoise(image, found, model=gray_model, data_range=white)
    result = nlnet.denoise(image, model=gray_model, data_range=white)
    np.testing.assert_array_equal(result, expected)


def test_without_noise_the_image_comes_back_as_it_is(gray_model: Model) -> None:
    image = np.tile(np.linspace(0, 1, 64), (64, 1))
    with pytest.warns(UserWarning, match=r"comes back as it is.*too little"):
        result = nlnet.denoise(image, model=gray_model)
    np.testing.assert_array_equal(result, image)
    assert not np.shares_memory(result, image)


def test_an_estimate_above_the_data_range_of_the_dtype(gray_model: Model) -> None:
    """Nothing is refused because of a range that nobody gave."""
    counts = np.random.default_rng(0).normal(3000, 200, (64, 64))
    with pytest.warns(UserWarning, match="nothing is clipped"):
        result = nlnet.denoise(counts, model=gray_model)
    assert (result - 3000).std() < 100
