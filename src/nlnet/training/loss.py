"""The loss: negative PSNR."""

from __future__ import annotations

import torch
from torch import Tensor


def negative_psnr(images: Tensor, clean: Tensor) -> Tensor:
    """Return the negative PSNR, in dB, of every image of a (B, C, H, W) batch; the peak is 255.

    Examples
    --------
    >>> negative_psnr(torch.zeros(1, 1, 8, 8), torch.full((1, 1, 8, 8), 25.5))
    tensor([-20.])
    """
    error = (images - clean).square().mean(dim=(1, 2, 3))
    return 10 * torch.log10(error / 255**2)  # Eq. (16)
