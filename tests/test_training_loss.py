"""The loss of training, Eq. (16), and its gradient, Eq. (21)."""

from __future__ import annotations

import math

import pytest
import torch

from nlnet.evaluation.metrics import psnr
from nlnet.training.loss import negative_psnr

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
