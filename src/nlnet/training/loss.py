"""The loss: negative PSNR."""

import math

import torch
from torch import Tensor


def negative_psnr(images: Tensor, clean: Tensor) -> Tensor:
    """Return the negative PSNR, in dB, of every image of a (B, C, H, W) batch; the peak is 255.

    Examples
    --------
    >>> negative_psnr(torch.zeros(1, 1, 8, 8), torch.full((1, 1, 8, 8), 25.5))
    tensor([-20.])
    """
    return 10 * torch.log10(squared_errors(images, clean) / 255**2)  # Eq. (16)


def negative_psnr_near(images: Tensor, clean: Tensor, errors: Tensor) -> Tensor:
    """Return the negative PSNR, linearized around the given mean squared errors.

    It is meant for pieces of an image, given the error of the whole image: then the mean over the
    pieces is the PSNR of the whole. A mean of their own PSNRs would be dominated by smooth pieces.

    Examples
    --------
    >>> zeros = torch.zeros(1, 1, 8, 8)
    >>> near = negative_psnr_near(zeros, zeros + 25.5, torch.tensor([25.5**2]))
    >>> torch.testing.assert_close(near, negative_psnr(zeros, zeros + 25.5))
    """
    slopes = 10 / math.log(10) / errors
    return 10 * torch.log10(errors / 255**2) + slopes * (squared_errors(images, clean) - errors)


def squared_errors(images: Tensor, clean: Tensor) -> Tensor:
    """Return the mean squared error of every image of a (B, C, H, W) batch."""
    return (images - clean).square().mean(dim=(1, 2, 3))
