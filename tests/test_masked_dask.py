"""Dask arrays of which some pixels are left out: as `nlnet.denoise` does it, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import nlnet
import nlnet.dask
from nlnet.cli import main
from nlnet.dask.masks import halve_present
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.noise.camera import Camera
from tests.messages import refused

pytestmark = pytest.mark.numerical

SIGMA = 0.08
HEIGHT, WIDTH = 120, 150


def noisy(shape: tuple[int, ...] = (HEIGHT, WIDTH)) -> np.ndarray:
    rows = np.linspace(0.3, 0.7, HEIGHT)[:, np.newaxis]
    clean = rows if shape[-1] != 3 else rows[..., np.newaxis]
    return clean + np.random.default_rng(0).normal(0, SIGMA, shape)


def holes() -> np.ndarray:
    """Single pixels, a bar across a seam of the chunks, and a square at the border."""
    mask = np.random.default_rng(1).random((HEIGHT, WIDTH)) < 0.02
    mask[48:53] = True
    mask[90:, :20] = True
    return mask


def lazy(values: np.ndarray, chunks: Any = 50) -> da.Array:
    return da.from_array(values, chunks=chunks, name=False)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sigma", [SIGMA, None])
def test_it_is_the_whole_array(
    gray_model: Model, color_model: Model, channels: int, sigma: float | None
) -> None:
    image = noisy() if channels == 1 else noisy((HEIGHT, WIDTH, 3))
    model, mask = (gray_model if channels == 1 else color_model), holes()
    expected = nlnet.denoise(image, sigma, mask=mask, model=model)
    chunks = 50 if channels == 1 else (50, 50, 1)
    for junk in (1e30, np.nan, np.inf) if sigma else (np.nan,):
        spoilt = image.copy()
        spoilt[mask] = junk
        array = lazy(spoilt, chunks)
        denoised = nlnet.dask.denoise(array, sigma, mask=mask, model=model)
        assert denoised.chunks == array.chunks
        result = denoised.compute()
        np.testing.assert_array_equal(result[mask], spoilt[mask])
        np.testing.assert_allclose(result[~mask], expected[~mask], atol=1e-3 / 255)


@pytest.mark.parametrize("sigma", [8.0, None])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_whole_numbers(gray_model: Model, dtype: type, sigma: float | None) -> None:
    """What is under the mask is not even looked at for the range of the data."""
    image, mask = np.rint(100 * noisy()).astype(dtype), holes()
    expected = nlnet.denoise(image, sigma, mask=mask, model=gray_model)
    spoilt = np.where(mask, np.iinfo(dtype).max, image).astype(dtype)
    result = nlnet.dask.denoise(lazy(spoilt), sigma, mask=lazy(mask, 40), model=gray_model)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.compute()[mask], np.iinfo(dtype).max)
    different = result.compute()[~mask] != expected[~mask]
    assert np.count_nonzero(different) <= 2  # that were rounded the other way


def test_nothing_is_computed_before_it_is_asked_for(gray_model: Model) -> None:
    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    mask = da.map_blocks(fail, lazy(holes()), dtype=bool, meta=np.empty((0, 0), bool))
    denoised = nlnet.dask.denoise(lazy(noisy()), SIGMA, mask=mask, model=gray_model)
    with pytest.raises(AssertionError, match="computed"):
        denoised.compute()


def test_stacks_and_masked_arrays(gray_model: Model) -> None:
    stack = np.stack([noisy(), noisy()[::-1]])
    masks = np.stack([holes(), holes()[:, ::-1]])
    masked = lazy(np.ma.MaskedArray(np.where(masks, 9.0, stack), mask=masks), (1, 50, 50))
    result = nlnet.dask.denoise(masked, SIGMA, stacked=1, model=gray_model).compute()
    assert isinstance(result, np.ma.MaskedArray)
    np.testing.assert_array_equal(np.ma.getmaskarray(result), masks)
    np.testing.assert_array_equal(result.data[masks], 9.0)
    plain = nlnet.dask.denoise(
        lazy(stack, (1, 50, 50)), SIGMA, mask=masks, stacked=1, model=gray_model
    )
    np.testing.assert_array_equal(result.data[~masks], plain.compute()[~masks])
    one = nlnet.dask.denoise(
        lazy(stack, (2, 50, 50)), SIGMA, mask=masks[0], stacked=1, model=gray_model
    ).compute()
    for page, expected in zip(one, stack, strict=True):
        np.testing.assert_array_equal(page[masks[0]], expected[masks[0]])


def test_colors_may_come_first_and_mask_one_by_one(color_model: Model) -> None:
    image, mask = noisy((HEIGHT, WIDTH, 3)), holes()
    expected = nlnet.dask.denoise(lazy(image), SIGMA, mask=mask, model=color_model).compute()
    full = np.zeros((3, HEIGHT, WIDTH), bool)
    full[1] = mask
    first = nlnet.dask.denoise(
        lazy(np.moveaxis(image, -1, 0), (3, 50, 50)),
        SIGMA,
        mask=full,
        channel_axis=0,
        model=color_model,
    )
    np.testing.assert_allclose(np.moveaxis(first.compute(), 0, -1), expected, atol=1e-6)


def test_holes_larger_than_chunks(gray_model: Model) -> None:
    """Chunks without anything in them stay as they are, and change nothing beside them."""
    image = noisy()
    mask = np.zeros(image.shape, bool)
    mask[:, 80:] = True
    spoilt = np.where(mask, np.nan, image)
    for sigma in (SIGMA, None):
        result = nlnet.dask.denoise(lazy(spoilt, 30), sigma, model=gray_model).compute()
        again = np.where(mask, 1e20, image)
        other = nlnet.dask.denoise(lazy(again, 30), sigma, mask=mask, model=gray_model).compute()
        np.testing.assert_array_equal(result[~mask], other[~mask])
        np.testing.assert_array_equal(np.isnan(result), mask)
        assert result[~mask].std() < 0.9 * image[~mask].std()
        expected = nlnet.denoise(spoilt, sigma, model=gray_model)
        assert np.abs(result - expected)[~mask].mean() < 0.02 * SIGMA


def test_camera_noise(gray_model: Model) -> None:
    """At smaller scales, too, what is hidden changes nothing, and holes leave no marks."""
    rng = np.random.default_rng(2)
    grain = rng.normal(0, 1, (HEIGHT + 2, WIDTH + 2))
    soft = sum(grain[y : y + HEIGHT, x : x + WIDTH] for y in range(3) for x in range(3)) / 3
    image, mask = 0.5 + 0.06 * soft, holes()
    noise = Camera.even(0.06, (1.0, 1.5, 1.8))
    expected = nlnet.denoise(image, noise=noise, mask=mask, model=gray_model)
    results = []
    for junk in (5.0, np.nan):
        array = lazy(np.where(mask, junk, image), 60)
        results.append(
            nlnet.dask.denoise(array, noise=noise, mask=mask, model=gray_model).compute()
        )
    np.testing.assert_array_equal(results[0][~mask], results[1][~mask])
    difference = np.abs(results[0] - expected)[~mask]
    assert difference.mean() < 0.02 * 0.06
    assert results[0][~mask].std() < 0.8 * image[~mask].std()


def test_halving_leaves_nothing_hidden_in() -> None:
    planes = np.random.default_rng(0).normal(0, 1, (2, 7, 9))
    hidden = np.random.default_rng(1).random((7, 9)) < 0.5
    half = halve_present(planes, hidden)
    for y, x in np.ndindex(3, 4):
        window = planes[:, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        seen = ~hidden[2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        if seen.any():
            np.testing.assert_allclose(half[:, y, x], window[:, seen].mean(axis=1), rtol=1e-5)
        else:
            assert np.isnan(half[:, y, x]).all()


# Estimates


@pytest.mark.parametrize("side", [150, 800])
def test_estimates(side: int) -> None:
    """Of small images to the bit, of a sample of large ones within what the sample allows."""
    rng = np.random.default_rng(3)
    image = np.linspace(60, 190, side)[:, np.newaxis] + rng.normal(0, 10, (side, side))
    mask = np.zeros(image.shape, bool)
    mask[: side // 3, : side // 2] = True
    mask |= rng.random(image.shape) < 0.001
    spoilt = np.where(mask, 100.0, image)
    expected = nlnet.estimate_sigma(spoilt, mask=mask)
    exact = 1e-6 if side == 150 else 0.03
    sigma = float(nlnet.dask.estimate_sigma(lazy(spoilt, 300), mask=mask).compute())
    assert sigma == pytest.approx(expected, rel=exact)
    nan = lazy(np.where(mask, np.nan, image), 300)
    noise = nlnet.dask.estimate_noise(nan, data_range=255).compute().item()
    assert noise.kind == "white"
    assert noise.sigma == pytest.approx(expected, rel=exact)


# What cannot be


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((HEIGHT, WIDTH)), "dtype is float64, but must be bool"),
        (np.zeros((WIDTH, HEIGHT), bool), "shape (150, 120), but must be (120, 150)"),
        (True, "shape ()"),
    ],
)
def test_bad_masks(mask: Any, message: str) -> None:
    with refused(InputError, message):
        nlnet.dask.denoise(lazy(noisy()), SIGMA, mask=mask)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_more_than_half(gray_model: Model, dtype: type) -> None:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[:61] = True
    array = lazy((100 * noisy()).astype(dtype))
    denoised = nlnet.dask.denoise(array, 8, mask=mask, data_range=255, model=gray_model)
    with refused(InputError, "9150 of the image's 18000 pixels are masked or NaN"):
        denoised.compute()


def test_infinity(gray_model: Model) -> None:
    image = noisy()
    image[60, 70] = np.inf
    denoised = nlnet.dask.denoise(lazy(image), SIGMA, model=gray_model)
    with refused(InputError, "cannot be used: 1 infinite"):
        denoised.compute()


# Files


def test_nan_in_zarr(
    tmp_path: Path, gray_model: Model, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    image, mask = noisy().astype(np.float32), holes()
    image[mask] = np.nan
    zarr.create_array(str(tmp_path / "in.zarr"), data=image, chunks=(50, 50))
    words = ["denoise", "in.zarr", "-o", "out.zarr", "--model", gray_model_file, "--sigma"]
    files = [str(tmp_path / word) if str(word).endswith(".zarr") else str(word) for word in words]
    assert main([*files, str(255 * SIGMA)]) == 0
    result = np.asarray(zarr.open_array(str(tmp_path / "out.zarr"))[:])
    np.testing.assert_array_equal(np.isnan(result), mask)
    expected = nlnet.denoise(image, SIGMA, model=gray_model)
    np.testing.assert_allclose(result[~mask], expected[~mask], atol=1e-3 / 255)
