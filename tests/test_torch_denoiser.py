"""The denoiser for reconstruction loops: the same as ``nlnet.denoise``, and differentiable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from messages import refused

import nlnet
from nlnet.errors import InputError, ModelError
from nlnet.model.model import Model

torch = pytest.importorskip("torch")
from nlnet.torch import Denoiser  # noqa: E402

pytestmark = pytest.mark.numerical


def noisy_batch(count: int = 2, channels: int = 1, sigma: float = 0.1) -> Any:
    """Steps between dark and bright, with noise that goes beyond black and white."""
    clean = torch.full((count, channels, 20, 26), 0.05)
    clean[..., 12:] = 0.9
    return clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("clip", [True, False])
def test_it_is_denoise_image_by_image(channels: int, clip: bool) -> None:
    batch = noisy_batch(channels=channels)
    sigmas = torch.tensor([0.04, 0.17])
    denoised = Denoiser(clip=clip)(batch, sigmas)
    for image, result, sigma in zip(batch, denoised, sigmas, strict=True):
        expected = nlnet.denoise(image.numpy(), float(sigma), channel_axis=0, clip=clip)
        np.testing.assert_array_equal(result.numpy(), expected)
    beyond = max(-float(denoised.min()), float(denoised.max()) - 1)
    assert beyond < 1e-6 if clip else beyond > 1e-3


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("clip", [True, False])
def test_with_gradients_it_gives_the_same_image(channels: int, clip: bool) -> None:
    batch = noisy_batch(channels=channels)
    denoiser = Denoiser(clip=clip)
    expected = denoiser(batch, [0.04, 0.17])
    result = denoiser(batch.clone().requires_grad_(), [0.04, 0.17])
    assert result.requires_grad
    assert not expected.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), expected.numpy(), atol=1e-5)


def test_the_gradient_is_that_of_the_image(gray_model: Model) -> None:
    """Against a small step along it, in which the groups stay as they are."""
    denoiser = Denoiser(gray_model, clip=False)
    batch = noisy_batch(1).requires_grad_()
    weights = torch.randn(batch.shape, generator=torch.Generator().manual_seed(2))
    (gradient,) = torch.autograd.grad((denoiser(batch, 0.1) * weights).sum(), batch)
    with torch.no_grad():
        step = 2e-3 * gradient / gradient.norm()
        up, down = ((denoiser(batch + s, 0.1) * weights).sum() for s in (step, -step))
    expected = float((gradient * step).sum())
    assert float(up - down) / 2 == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "sigma",
    [
        0.1,
        np.float64(0.1),
        torch.tensor(0.1),
        torch.tensor([0.1]),
        torch.tensor([0.1, 0.1]),
        torch.full((2, 1, 1, 1), 0.1),
        torch.tensor([0.1, 0.1], requires_grad=True),
        [0.1, 0.1],
    ],
)
def test_sigma_comes_in_many_forms(gray_model: Model, sigma: Any) -> None:
    batch, denoiser = noisy_batch(), Denoiser(gray_model)
    np.testing.assert_allclose(denoiser(batch, sigma), denoiser(batch, 0.1), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("gradient", [True, False])
def test_dtype_and_shape_stay(gray_model: Model, dtype: Any, gradient: bool) -> None:
    batch = noisy_batch().to(dtype).requires_grad_(gradient)
    denoised = Denoiser(gray_model, threads=1)(batch, sigma=0.1)
    assert denoised.dtype == dtype
    assert denoised.shape == batch.shape
    assert bool(denoised.std(dim=-1).mean() < batch.std(dim=-1).mean())


def test_other_memory_layouts(gray_model: Model) -> None:
    batch, denoiser = noisy_batch(), Denoiser(gray_model)
    turned = batch.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)
    assert not turned.is_contiguous()
    assert torch.equal(denoiser(turned, 0.1), denoiser(batch, 0.1))


@pytest.mark.parametrize("gradient", [True, False])
def test_without_noise_images_come_back(gray_model: Model, gradient: bool) -> None:
    batch = noisy_batch().requires_grad_(gradient)
    denoised = Denoiser(gray_model)(batch, torch.tensor([0.0, 0.1]))
    assert torch.equal(denoised[0], batch[0])
    assert not torch.equal(denoised[1], batch[1])
    assert denoised.data_ptr() != batch.data_ptr()
    assert Denoiser(gray_model)(batch[:0], 0.1).shape == (0, 1, 20, 26)


def test_it_has_no_weights_of_its_own(gray_model: Model) -> None:
    denoiser = Denoiser(gray_model).eval().to("cpu")
    assert not list(denoiser.parameters())
    assert not denoiser.state_dict()


@pytest.mark.parametrize(
    ("batch", "sigma", "sentence"),
    [
        (np.zeros((1, 1, 9, 9)), 0.1, "The batch is of ndarray"),
        (torch.zeros(1, 1, 9, 9, dtype=torch.uint8), 0.1, "torch.uint8, but must be"),
        (torch.zeros(1, 9, 9), 0.1, "shape (1, 9, 9)"),
        (torch.zeros(1, 4, 9, 9), 0.1, "shape (1, 4, 9, 9)"),
        (torch.full((1, 1, 9, 9), torch.nan), 0.1, "NaN"),
        (torch.full((1, 1, 9, 9), torch.inf), 0.1, "NaN or beyond"),
        (torch.zeros(2, 1, 9, 9), [0.1, 0.1, 0.1], "sigma has 3 values"),
        (torch.zeros(2, 1, 9, 9), 25, "sigma is 25, but must be from 0 to 1"),
        (torch.zeros(2, 1, 9, 9), -0.1, "sigma is -0.1"),
        (torch.zeros(2, 1, 9, 9), torch.nan, "sigma is nan"),
        (torch.zeros(2, 1, 9, 9), "low", "sigma is 'low'"),
        (torch.zeros(2, 1, 9, 9), None, "sigma is None"),
        (torch.zeros(1, 1, 3, 9), 0.1, "3"),
    ],
)
def test_what_is_wrong_is_one_sentence(batch: Any, sigma: Any, sentence: str) -> None:
    with refused(InputError, sentence):
        Denoiser()(batch, sigma)


def test_a_model_for_other_images(gray_model: Model) -> None:
    with refused(ModelError, "grayscale"):
        Denoiser(gray_model)(noisy_batch(channels=3).requires_grad_(), 0.1)
    with refused(ModelError, "grayscale"):
        Denoiser(gray_model)(noisy_batch(channels=3), 0.1)
    with refused(ModelError, "Unknown model"):
        Denoiser("gray-3x3")(noisy_batch(), 0.1)
