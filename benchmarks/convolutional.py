"""The architectures of DnCNN and FFDNet in torch, at the published sizes, for their time only.

K. Zhang et al., "Beyond a Gaussian Denoiser", IEEE TIP 2017: 17 layers of 64 features for gray
images, 20 for color; about 556k and 668k parameters. K. Zhang et al., "FFDNet", IEEE TIP 2018: four
images of half the size and a map of sigma go through 15 layers of 64 features, or 12 of 96 in
color; 485k and 854k parameters. Batch normalisation is folded into the convolutions, and memory is
laid out channels last: both make it faster, and neither changes what it computes. The weights are
random.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

DNCNN_FEATURES = 64
DNCNN_DEPTHS = {1: 17, 3: 20}
FFDNET_SIZES = {1: (15, 64), 3: (12, 96)}
"""Layers and features, by the channels of the image."""


def make_dncnn(channels: int) -> Callable[[Any], Any]:
    """Return a function from a (1, C, H, W) tensor to the network's output."""
    network = make_layers(channels, DNCNN_FEATURES, channels, DNCNN_DEPTHS[channels])

    def run(noisy: Any) -> Any:
        with torch.inference_mode():
            return noisy - network(noisy)

    return run


def make_ffdnet(channels: int, sigma: float) -> Callable[[Any], Any]:
    """Return a function from a (1, C, H, W) tensor to the network's output.

    Sides must be even, as in the paper; others are padded by the caller.
    """
    depth, features = FFDNET_SIZES[channels]
    # Gray: 4 + 1 maps in, 4 out; color: 12 + 3 in, 12 out.
    network = make_layers(5 * channels, features, 4 * channels, depth)

    def run(noisy: Any) -> Any:
        with torch.inference_mode():
            halves = nn.functional.pixel_unshuffle(noisy, 2)
            level = halves.new_full((1, channels, *halves.shape[2:]), sigma / 255)
            maps = torch.cat([halves, level], 1).contiguous(memory_format=torch.channels_last)
            return nn.functional.pixel_shuffle(network(maps), 2)

    return run


def make_layers(inputs: int, features: int, outputs: int, depth: int) -> Any:
    """Return convolutions of 3x3 pixels with rectifiers between them."""
    layers: list[nn.Module] = [nn.Conv2d(inputs, features, 3, padding=1), nn.ReLU(inplace=True)]
    for _ in range(depth - 2):
        layers += [nn.Conv2d(features, features, 3, padding=1), nn.ReLU(inplace=True)]
    layers.append(nn.Conv2d(features, outputs, 3, padding=1))
    network: Any = nn.Sequential(*layers).eval()
    return network.to(memory_format=torch.channels_last)


def to_tensor(image: Any) -> Any:
    """From an (H, W) or (H, W, 3) array on the 0-255 scale to a batch of one on the 0-1 scale."""
    tensor = torch.from_numpy(image / 255)
    tensor = tensor[None, None] if tensor.ndim == 2 else tensor.movedim(-1, 0)[None]
    return tensor.contiguous(memory_format=torch.channels_last)


def to_even_tensor(image: Any) -> Any:
    """As `to_tensor`, with the last row or column repeated where the number of them is odd."""
    tensor = to_tensor(image)
    height, width = tensor.shape[2:]
    padded = nn.functional.pad(tensor, (0, width % 2, 0, height % 2), mode="replicate")
    return padded.contiguous(memory_format=torch.channels_last)
