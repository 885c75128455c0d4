"""Stacks of which some pixels are left out: every page as ``nlnet.denoise`` gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from messages import refused

import nlnet
from nlnet.errors import InputError
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical

SHAPE = (2, 3, 32, 36)
SIGMA = 0.08


def noisy_stack(shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(0).normal(0.5, SIGMA, shape)


def mask_of(shape: tuple[int, ...]) -> np.ndarray:
    """A bar that is elsewhere on every page, and single pixels."""
    mask = np.random.default_rng(1).random(shape) < 0.02
    for number, index in enumerate(np.ndindex(shape[:-2])):
        mask[index][4 + 3 * number : 8 + 3 * number] = True
    return mask


@pytest.mark.parametrize("junk", [0.0, 1e30, np.nan, np.inf])
def test_what_is_under_the_mask_changes_nothing_else(gray_model: Model, junk: float) -> None:
    stack, mask = noisy_stack(), mask_of(SHAPE)
    spoilt = np.where(mask, junk, stack)
    denoised = nlnet.denoise_stack(spoilt, SIGMA, mask=mask, model=gray_model)
    for index in np.ndindex(SHAPE[:2]):
        expected = nlnet.denoise(stack[index], SIGMA, mask=mask[index], model=gray_model)
        np.testing.assert_array_equal(denoised[index][~mask[index]], expected[~mask[index]])
    np.testing.assert_array_equal(denoised[mask], spoilt[mask])


def test_one_mask_for_all_pages(gray_model: Model) -> None:
    stack, mask = noisy_stack(), mask_of(SHAPE[-2:])
    denoised = nlnet.denoise_stack(stack, SIGMA, mask=mask, model=gray_model)
    every = np.broadcast_to(mask, SHAPE)
    np.testing.assert_array_equal(
        denoised, nlnet.denoise_stack(stack, SIGMA, mask=every, model=gray_model)
    )


@pytest.mark.parametrize("channels", [3, 4])
def test_colors(color_model: Model, channels: int) -> None:
    stack = noisy_stack((2, 32, 36, channels))
    mask = mask_of((2, 32, 36))
    denoised = nlnet.denoise_stack(stack, SIGMA, mask=mask, model=color_model)
    expected = nlnet.denoise(stack[1, ..., :3], SIGMA, mask=mask[1], model=color_model)
    np.testing.assert_array_equal(denoised[1, ..., :3], expected)
    np.testing.assert_array_equal(denoised[..., 3:], stack[..., 3:])
    full = np.zeros(stack.shape, bool)
    full[..., 1] = mask  # one channel masks the pixel
    again = nlnet.denoise_stack(stack, SIGMA, mask=full, model=color_model)
    np.testing.assert_array_equal(again, denoised)


@pytest.mark.parametrize("lazy", [False, True])
def test_masked_arrays_bring_their_mask_and_keep_it(gray_model: Model, lazy: bool) -> None:
    stack, mask = noisy_stack(), mask_of(SHAPE)
    expected = nlnet.denoise_stack(stack, SIGMA, mask=mask, model=gray_model)
    masked: Any = np.ma.MaskedArray(np.where(mask, 9.0, stack), mask=mask, fill_value=7.0)
    if lazy:
        masked = pytest.importorskip("dask.array").from_array(masked, chunks=(1, 2, 20, 36))
    denoised = nlnet.denoise_stack(masked, SIGMA, model=gray_model)
    assert isinstance(denoised, np.ma.MaskedArray)
    assert denoised.fill_value == 7.0
    np.testing.assert_array_equal(np.ma.getmaskarray(denoised), mask)
    np.testing.assert_array_equal(denoised.data[~mask], expected[~mask])
    np.testing.assert_array_equal(denoised.data[mask], 9.0)


def test_nan_is_left_out_also_where_the_noise_is_found(gray_model: Model) -> None:
    """Of every page, and of a sample of all of them."""
    stack, mask = noisy_stack((3, 64, 72)), mask_of((3, 64, 72))
    spoilt = np.where(mask, np.nan, stack)
    for per_page in (True, False):
        options: dict[str, Any] = {"per_page": per_page, "model": gray_model}
        denoised = nlnet.denoise_stack(spoilt, **options)
        expected = nlnet.denoise_stack(stack, mask=mask, **options)
        np.testing.assert_array_equal(np.isnan(denoised), mask)
        np.testing.assert_array_equal(denoised[~mask], expected[~mask])
        assert denoised[~mask].std() < 0.8 * stack[~mask].std()


def test_errors_name_the_page(gray_model: Model) -> None:
    stack = noisy_stack((3, 32, 36))
    stack[1, 4, 5] = np.inf
    for per_page in (True, False):
        with refused(InputError, "Page 2 of 3:", "cannot be used: 1 infinite"):
            nlnet.denoise_stack(stack, per_page=per_page, model=gray_model)
    stack[1] = np.nan
    with refused(InputError, "Page 2 of 3: 1152 of the image's 1152 pixels"):
        nlnet.denoise_stack(stack, SIGMA, model=gray_model)
    with refused(InputError, "shape (3, 36, 32)", "(32, 36) or (3, 32"):
        nlnet.denoise_stack(stack, SIGMA, mask=np.zeros((3, 36, 32), bool), model=gray_model)
    with refused(InputError, "dtype", "float64", "bool"):
        nlnet.denoise_stack(stack, SIGMA, mask=np.zeros((32, 36)), model=gray_model)
