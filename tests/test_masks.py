from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import refused

import nlnet
from nlnet.errors import InputError
from nlnet.masks import fill
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical


def noisy(height: int = 48, width: int = 56, channels: int = 1) -> np.ndarray:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(0).normal(0.5, 0.08, shape)


def blobs(height: int = 48, width: int = 56) -> np.ndarray:
    """A bar, a square at the border and single pixels: a quarter of the image."""
    mask = np.random.default_rng(1).random((height, width)) < 0.03
    mask[10:15] = True
    mask[30:, :12] = True
    return mask


@pytest.fixture(params=[1, 3], ids=["gray", "color"])
def model(request: pytest.FixtureRequest, gray_model: Model, color_model: Model) -> Model:
    return gray_model if request.param == 1 else color_model


# What is under the mask


@pytest.mark.parametrize("junk", [0.0, 1e30, np.nan, np.inf])
@pytest.mark.parametrize("sigma", [0.08, None])
def test_it_changes_nothing_else_and_comes_back(
    model: Model, junk: float, sigma: float | None
) -> None:
    image, mask = noisy(channels=model.config.channels), blobs()
    expected = nlnet.denoise(image, sigma, mask=mask, model=model)
    spoilt = image.copy()
    spoilt[mask] = junk
    before = spoilt.copy()
    result = nlnet.denoise(spoilt, sigma, mask=mask, model=model)
    np.testing.assert_array_equal(result[~mask], expected[~mask])
    np.testing.assert_array_equal(result[mask], spoilt[mask])
    np.testing.assert_array_equal(spoilt, before)
    assert result[~mask].std() < 0.8 * image[~mask].std()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32])
def test_integers(gray_model: Model, dtype: type) -> None:
    """For dtypes without a range of their own it is taken from what is not masked."""
    image, mask = np.rint(100 * noisy()).astype(dtype), blobs()
    expected = nlnet.denoise(image, 8, mask=mask, model=gray_model)
    image[mask] = np.iinfo(dtype).max
    result = nlnet.denoise(image, 8, mask=mask, model=gray_model)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result[~mask], expected[~mask])
    np.testing.assert_array_equal(result[mask], np.iinfo(dtype).max)


def test_far_from_the_mask_nothing_changes(gray_model: Model) -> None:
    image, mask = noisy(96, 64), np.zeros((96, 64), bool)
    mask[:4, :4] = True
    plain = nlnet.denoise(image, 0.08, model=gray_model)
    masked = nlnet.denoise(image, 0.08, mask=mask, model=gray_model)
    np.testing.assert_allclose(masked[48:], plain[48:], atol=1e-5)
    assert not np.allclose(masked[4:8, :8], plain[4:8, :8], atol=1e-5)


def test_an_empty_mask_is_none(gray_model: Model) -> None:
    image = noisy()
    masked = nlnet.denoise(image, 0.08, mask=np.zeros(image.shape, bool), model=gray_model)
    np.testing.assert_array_equal(masked, nlnet.denoise(image, 0.08, model=gray_model))


# Where masks come from


def test_masked_arrays_bring_theirs(model: Model) -> None:
    image, mask = noisy(channels=model.config.channels), blobs()
    expected = nlnet.denoise(image, 0.08, mask=mask, model=model)
    full = mask if image.ndim == 2 else np.repeat(mask[..., np.newaxis], 3, axis=-1)
    masked = np.ma.MaskedArray(image, mask=full, fill_value=7.0)
    result = nlnet.denoise(masked, 0.08, model=model)
    assert isinstance(result, np.ma.MaskedArray)
    assert result.fill_value == 7.0
    np.testing.assert_array_equal(np.ma.getmaskarray(result), full)
    np.testing.assert_array_equal(result.data, expected)
    result[0, 0] = np.ma.masked  # is no longer the mask of the input
    assert np.array_equal(masked.mask, full)


def test_all_sources_together(gray_model: Model) -> None:
    image, mask = noisy(), blobs()
    top, middle = mask.copy(), mask.copy()
    top[12:], middle[:12], middle[30:] = False, False, False
    rest = mask & ~top & ~middle
    spoilt = image.copy()
    spoilt[rest] = np.nan
    masked = np.ma.MaskedArray(spoilt, mask=middle)
    result = nlnet.denoise(masked, 0.08, mask=top, model=gray_model)
    expected = nlnet.denoise(image, 0.08, mask=mask, model=gray_model)
    np.testing.assert_array_equal(np.asarray(result)[~mask], expected[~mask])


def test_one_masked_channel_masks_the_pixel(color_model: Model) -> None:
    image = noisy(channels=3)
    flat = np.zeros((48, 56), bool)
    flat[20, 30] = True
    full = np.zeros(image.shape, bool)
    full[20, 30, 1] = True
    expected = nlnet.denoise(image, 0.08, mask=flat, model=color_model)
    np.testing.assert_array_equal(
        nlnet.denoise(image, 0.08, mask=full, model=color_model), expected
    )
    moved = nlnet.denoise(
        np.moveaxis(image, -1, 0), 0.08, mask=flat, model=color_model, channel_axis=0
    )
    np.testing.assert_array_equal(np.moveaxis(moved, 0, -1), expected)


def test_a_mask_does_not_hide_the_noise(gray_model: Model) -> None:
    """Filled with means, nearly half of the image would look as if it had no noise."""
    image = noisy(160, 160)
    mask = np.zeros(image.shape, bool)
    mask[:, 20:95] = True
    shares = []
    for sigma in (0.08, None):
        result = nlnet.denoise(image, sigma, mask=mask, model=gray_model)
        shares.append(result[~mask].std() / image[~mask].std())
    assert shares[1] == pytest.approx(shares[0], abs=0.03)


# What cannot be


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((48, 56)), "dtype is float64, but must be bool"),
        (np.zeros((56, 48), bool), "shape (56, 48), but must be (48, 56)"),
        (np.zeros((48, 56, 3), bool), "shape (48, 56, 3)"),
        (True, "shape ()"),
        (np.ones((48, 56), bool), "2688 of the image's 2688 pixels are masked"),
        (np.arange(48 * 56).reshape(48, 56) > 1342, "1345 of the image's 2688 pixels"),
    ],
)
def test_bad_masks(gray_model: Model, mask: Any, message: str) -> None:
    with refused(InputError, message):
        nlnet.denoise(noisy(), 0.08, mask=mask, model=gray_model)


def test_half_of_the_image_may_be_masked(gray_model: Model) -> None:
    mask = np.arange(48 * 56).reshape(48, 56) >= 1344
    assert np.isfinite(nlnet.denoise(noisy(), 0.08, mask=mask, model=gray_model)).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_an_error(gray_model: Model, value: float) -> None:
    image = noisy()
    image[3, 4], image[7, 7] = value, np.nan
    with refused(InputError, "cannot be used: 1 infinite"):
        nlnet.denoise(image, 0.08, model=gray_model)


def test_an_image_of_nan(gray_model: Model) -> None:
    with refused(InputError, "256 of the image's 256 pixels", "masked or NaN"):
        nlnet.denoise(np.full((16, 16), np.nan), 0.08, model=gray_model)


# Filling


@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    share=st.floats(0, 1),
    seed=st.integers(0, 999),
)
def test_filled_pixels_are_copies(height: int, width: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hidden = rng.random((height, width)) < share
    hidden[rng.integers(height), rng.integers(width)] = False
    planes = np.arange(2 * height * width).reshape(2, height, width)
    filled = fill(planes, hidden)
    np.testing.assert_array_equal(filled[:, ~hidden], planes[:, ~hidden])
    assert np.isin(filled[0], planes[0][~hidden]).all()
    np.testing.assert_array_equal(filled[1] - filled[0], height * width)  # of the same pixel


@pytest.mark.parametrize(
    ("shape", "wanted"), [((60, 70), "(60, 70), as"), ((60, 70, 3), "(60, 70) or (60, 70, 3), as")]
)
def test_a_mask_of_another_shape_is_told_each_right_one_once(
    shape: tuple[int, ...], wanted: str
) -> None:
    with pytest.raises(InputError) as caught:
        nlnet.denoise(np.zeros(shape, np.uint8), 5, mask=np.zeros((5, 5), bool))
    assert str(caught.value) == f"The mask has shape (5, 5), but must be {wanted} the image."
