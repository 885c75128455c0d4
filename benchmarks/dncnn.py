"""The architecture of DnCNN in torch, at the published size, for its time only.

K. Zhang et al., "Beyond a Gaussian Denoiser", IEEE TIP 2017: 17 layers of 64 features for gray
images, 20 for color; about 556k and 668k parameters. Batch normalisation is folded into the
convolutions, and memory is laid out channels last: both make it faster, and neither changes what
it computes. The weights are random.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

FEATURES = 64
DEPTHS = {1: 17, 3: 20}


def make_dncnn(channels: int) -> Callable[[Any], Any]:
    """Return a function from a (1, C, H, W) tensor to the network's output."""
    layers: list[nn.Module] = [nn.Conv2d(channels, FEATURES, 3, padding=1), nn.ReLU(inplace=True)]
    for _ in range(DEPTHS[channels] - 2):
        layers += [nn.Conv2d(FEATURES, FEATURES, 3, padding=1), nn.ReLU(inplace=True)]
    layers.append(nn.Conv2d(FEATURES, channels, 3, padding=1))
    network: Any = nn.Sequential(*layers).eval()
    network.to(memory_format=torch.channels_last)

    def run(noisy: Any) -> Any:
        with torch.inference_mode():
            return noisy - network(noisy)

    return run


def to_tensor(image: Any) -> Any:
    """From an (H, W) or (H, W, 3) array on the 0-255 scale to a batch of one on the 0-1 scale."""
    tensor = torch.from_numpy(image / 255)
    tensor = tensor[None, None] if tensor.ndim == 2 else tensor.movedim(-1, 0)[None]
    return tensor.contiguous(memory_format=torch.channels_last)
