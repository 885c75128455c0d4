"""Stacks, movies and color layers: every page as ``nlnet.denoise`` gives it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from messages import says

import nlnet
from nlnet.errors import Cancelled, InputError
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical


def noisy_stack(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    values = np.random.default_rng(3).normal(0.5, 0.1, shape).clip(0, 1)
    kind = np.dtype(dtype)
    return (values * (1 if kind.kind == "f" else np.iinfo(kind).max)).astype(kind)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
@pytest.mark.parametrize("pages", [(), (3,), (2, 1, 3)])
def test_gray_pages(gray_model: Model, dtype: Any, pages: tuple[int, ...]) -> None:
    stack = noisy_stack((*pages, 16, 20), dtype)
    kept = stack.copy()
    sigma = 0.1 * (1 if stack.dtype.kind == "f" else np.iinfo(dtype).max)
    denoised = nlnet.denoise_stack(stack, sigma, model=gray_model)
    assert denoised.shape == stack.shape
    assert denoised.dtype == stack.dtype
    for index in np.ndindex(pages):
        expected = nlnet.denoise(stack[index], sigma, model=gray_model)
        np.testing.assert_array_equal(denoised[index], expected)
    np.testing.assert_array_equal(stack, kept)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("pages", [(), (2,)])
@pytest.mark.parametrize("rgb", [None, True])
def test_colors_and_their_alpha(
    color_model: Model, channels: int, pages: tuple[int, ...], rgb: bool | None
) -> None:
    stack = noisy_stack((*pages, 16, 20, channels), np.uint8)
    denoised = nlnet.denoise_stack(stack, 25, model=color_model, rgb=rgb)
    for index in np.ndindex(pages):
        expected = nlnet.denoise(stack[index][..., :3], 25, model=color_model)
        np.testing.assert_array_equal(denoised[index][..., :3], expected)
        np.testing.assert_array_equal(denoised[index][..., 3:], stack[index][..., 3:])


def test_a_gray_stack_that_looks_like_colors(gray_model: Model) -> None:
    """A stack whose images are 4 pixels wide is too small, but says so as a gray one."""
    with pytest.raises(InputError, match="4"):
        nlnet.denoise_stack(noisy_stack((9, 16, 4)), 0.1, model=gray_model, rgb=False)


def test_the_noise_of_every_page_may_be_its_own(gray_model: Model) -> None:
    rng = np.random.default_rng(0)
    pages = [rng.normal(0.5, sigma, (48, 48)) for sigma in (0.03, 0.1)]
    denoised = nlnet.denoise_stack(np.stack(pages), model=gray_model, per_page=True)
    for page, result in zip(pages, denoised, strict=True):
        expected = nlnet.denoise(page, nlnet.estimate_sigma(page), model=gray_model)
        np.testing.assert_array_equal(result, expected)


class Lazy:
    """An array that reads a page when it is asked for one."""

    def __init__(self, pages: np.ndarray) -> None:
        self._pages = pages
        self.shape, self.dtype = pages.shape, pages.dtype
        self.asked: list[tuple[int, ...]] = []

    def __getitem__(self, index: tuple[int, ...]) -> np.ndarray:
        self.asked.append(index)
        return self._pages[index]

    def __array__(self, *arguments: object, **options: object) -> np.ndarray:
        raise AssertionError("all pages were read at once")


def test_lazy_arrays_are_read_page_by_page(gray_model: Model) -> None:
    stack = noisy_stack((2, 2, 16, 20))
    lazy = Lazy(stack)
    denoised = nlnet.denoise_stack(lazy, 0.1, model=gray_model)
    assert lazy.asked == 2 * [(0, 0), (0, 1), (1, 0), (1, 1)]  # to look at them, and to denoise
    np.testing.assert_array_equal(denoised, nlnet.denoise_stack(stack, 0.1, model=gray_model))


def test_lists_and_options(gray_model: Model) -> None:
    stack = 4000 * noisy_stack((2, 16, 20), np.float64)
    shares: list[float] = []
    denoised = nlnet.denoise_stack(
        stack.tolist(),
        400,
        model=gray_model,
        data_range=4000,
        clip=False,
        threads=1,
        progress=shares.append,
    )
    expected = nlnet.denoise(stack[1], 400, model=gray_model, data_range=4000, clip=False)
    np.testing.assert_array_equal(denoised[1], expected)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert any(0.4 < share < 0.6 for share in shares)
    with pytest.raises(Cancelled):
        nlnet.denoise_stack(stack, 400, data_range=4000, progress=lambda share: share < 0.5)


@pytest.mark.parametrize(
    ("stack", "rgb", "sentence"),
    [
        (np.zeros(9), None, r"shape \(9,\)"),
        (np.zeros((9, 9)), True, r"shape \(9, 9\), but with rgb"),
        (np.zeros((9, 9, 5)), True, r"but with rgb"),
        (np.zeros((2, 9, 9), np.int64), None, "int64"),
    ],
)
def test_what_is_wrong_is_one_sentence(stack: Any, rgb: bool | None, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        nlnet.denoise_stack(stack, 0.1, rgb=rgb)


def test_a_sigma_for_each_page(gray_model: Model) -> None:
    stack = noisy_stack((2, 3, 16, 20))
    sigmas = np.array([[0.05, 0.1, 0.2], [0.3, 0.1, 0.15]])
    denoised = nlnet.denoise_stack(stack, sigmas, model=gray_model)
    for index in np.ndindex(2, 3):
        expected = nlnet.denoise(stack[index], sigmas[index], model=gray_model)
        np.testing.assert_array_equal(denoised[index], expected)
    with pytest.raises(InputError, match=r"sigma has shape \(2,\), but .* of shape \(2, 3\)"):
        nlnet.denoise_stack(stack, [0.1, 0.2], model=gray_model)
    sigmas[1, 2] = -1
    shares: list[float] = []
    with pytest.raises(InputError, match="sigma is -1"):
        nlnet.denoise_stack(stack, sigmas, model=gray_model, progress=shares.append)
    assert shares == []  # before any page is worked on


def test_noise_and_strength_of_every_page(color_model: Model) -> None:
    stack = noisy_stack((2, 40, 44, 4), np.uint8)
    options: dict[str, Any] = {"strength": (0.3, 0.9), "model": color_model}
    for noise in ("white", "camera", nlnet.Noise.poisson(3.0, 5.0)):
        denoised = nlnet.denoise_stack(stack, noise=noise, per_page=True, **options)
        expected = nlnet.denoise(stack[1, ..., :3], noise=noise, **options)
        np.testing.assert_array_equal(denoised[1, ..., :3], expected)
        np.testing.assert_array_equal(denoised[..., 3], stack[..., 3])
    with pytest.raises(InputError, match="Both sigma and a noise record"):
        nlnet.denoise_stack(stack, 5, noise=nlnet.Noise.white(5))


def test_one_estimate_for_all_pages(gray_model: Model) -> None:
    rng = np.random.default_rng(1)
    ramp = np.linspace(40, 200, 96)
    # Pages on which photon noise cannot be told from white noise, but together it can.
    pages = [rng.poisson(np.full((96, 96), level) / 4) * 4.0 for level in ramp[::8]]
    stack = Lazy(np.stack(pages))
    denoised = nlnet.denoise_stack(stack, data_range=255, model=gray_model)
    looked = len(stack.asked) - len(pages)
    assert looked == 8
    noise = nlnet.estimate_noise(np.concatenate(pages), data_range=255)
    assert noise.kind == "poisson"
    expected = nlnet.denoise(
        pages[0], noise=nlnet.Noise.poisson(4.0), data_range=255, model=gray_model
    )
    assert np.abs(denoised[0] - expected).mean() < 0.3
    alone = nlnet.denoise_stack(stack, per_page=True, data_range=255, model=gray_model)
    np.testing.assert_array_equal(
        alone[0], nlnet.denoise(pages[0], data_range=255, model=gray_model)
    )
    assert np.abs(alone - denoised).max() > 0


def test_what_pages_have_in_common_is_said_once(recwarn: pytest.WarningsRecorder) -> None:
    stack = np.random.default_rng(0).normal(500, 30, (3, 24, 32))
    nlnet.denoise_stack(stack, 30)
    (warning,) = recwarn
    says(warning.message, f"from {stack.min():g} to {stack.max():g}", "data_range")


def test_channels_have_noise_of_their_own(gray_model: Model) -> None:
    rng = np.random.default_rng(0)
    sigmas = np.array([5.0, 20.0])
    stack = 128 + sigmas[:, np.newaxis, np.newaxis] * rng.standard_normal((4, 2, 64, 64))
    options: dict[str, Any] = {"noise": "white", "model": gray_model, "data_range": 255}
    denoised = nlnet.denoise_stack(stack, noise_axis=1, **options)
    for channel in (0, 1):
        np.testing.assert_array_equal(
            denoised[:, channel], nlnet.denoise_stack(stack[:, channel], **options)
        )
    assert np.abs(nlnet.denoise_stack(stack, **options) - denoised).max() > 0.1
    with pytest.raises(InputError, match="noise_axis is 2, but must be None, or one of the 2"):
        nlnet.denoise_stack(stack, noise_axis=2)


def test_tensors_come_back_as_tensors(gray_model: Model) -> None:
    torch = pytest.importorskip("torch")
    stack = noisy_stack((2, 24, 28))
    expected = nlnet.denoise_stack(stack, 0.1, model=gray_model)
    tensor = torch.from_numpy(stack).requires_grad_()
    denoised = nlnet.denoise_stack(tensor, torch.tensor([0.1, 0.1]).double(), model=gray_model)
    assert isinstance(denoised, torch.Tensor)
    assert not denoised.requires_grad
    np.testing.assert_array_equal(denoised.numpy(), expected)
    short = nlnet.denoise_stack(tensor.to(torch.bfloat16), 0.1, model=gray_model)
    assert short.dtype == torch.bfloat16
    assert np.abs(short.float().numpy() - expected).max() < 0.02


def test_arrays_do_not_load_torch() -> None:
    code = (
        "import sys, numpy, nlnet; nlnet.denoise_stack(numpy.full((1, 16, 16), 0.5), 0.1);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
