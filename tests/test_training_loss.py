"""The loss of training, Eq. (16), and its gradient, Eq. (21)."""

from __future__ import annotations

import math

import pytest
import torch

from nlnet.evaluation.metrics import psnr
from nlnet.training.loss import negative_psnr, negative_psnr_near, squared_errors

pytestmark = pytest.mark.numerical

IMAGES = 255 * torch.rand(2, 3, 9, 7, dtype=torch.float64, generator=torch.manual_seed(0))
CLEAN = 255 * torch.rand(2, 3, 9, 7, dtype=torch.float64, generator=torch.manual_seed(1))


def test_the_loss_is_the_negative_psnr() -> None:
    for loss, image, clean in zip(negative_psnr(IMAGES, CLEAN), IMAGES, CLEAN, strict=True):
        wanted = psnr(clean.movedim(0, -1).numpy(), image.movedim(0, -1).numpy())
        assert -float(loss) == pytest.approx(wanted, abs=1e-10)


def test_its_gradient_is_the_papers() -> None:
    images = IMAGES.clone().requires_grad_()
    negative_psnr(images, CLEAN).sum().backward()
    difference = IMAGES - CLEAN
    squared = difference.square().sum(dim=(1, 2, 3), keepdim=True)
    torch.testing.assert_close(images.grad, 20 / math.log(10) * difference / squared)


def test_the_tangent_of_the_psnr() -> None:
    errors = squared_errors(IMAGES, CLEAN)
    at_the_error = negative_psnr_near(IMAGES, CLEAN, errors)
    torch.testing.assert_close(at_the_error, negative_psnr(IMAGES, CLEAN))
    # A concave function is below its tangents, and close to them near where they touch.
    for factor, most in ((0.5, 1.4), (0.99, 3e-4), (1.01, 3e-4), (2.0, 1.4)):
        above = negative_psnr_near(IMAGES, CLEAN, factor * errors) - negative_psnr(IMAGES, CLEAN)
        assert (above > 0).all()
        assert (above < most).all()


def test_pieces_count_as_parts_of_the_whole() -> None:
    images, clean = IMAGES[:1, :, :8, :6], CLEAN[:1, :, :8, :6]
    whole = images.clone().requires_grad_()
    negative_psnr(whole, clean).sum().backward()
    parts = images.clone().requires_grad_()
    errors = squared_errors(images, clean)
    corners = [(slice(top, top + 4), slice(left, left + 3)) for top in (0, 4) for left in (0, 3)]
    losses = [
        negative_psnr_near(parts[:, :, rows, columns], clean[:, :, rows, columns], errors)
        for rows, columns in corners
    ]
    (torch.cat(losses).mean()).backward()
    torch.testing.assert_close(parts.grad, whole.grad)
