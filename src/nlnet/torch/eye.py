"""The eye in torch operations: what is trained. `nlnet.network.eye` says what it is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional


class EyeNet(nn.Module):
    """An eye whose weights are learned.

    Parameters
    ----------
    widths : sequence of int
        Channels of each level; the first works at half the size of the image.
    outputs : int
        Values per place of the lowest level.
    """

    def __init__(self, widths: tuple[int, ...] = (24, 40, 48, 64), outputs: int = 16) -> None:
        super().__init__()
        self.head = nn.Conv2d(16, widths[0], 3, padding=1)
        self.halve = nn.ModuleList(
            nn.Conv2d(above, width, 2, stride=2) for above, width in itertools.pairwise(widths)
        )
        self.first = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in widths)
        self.second = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for width in widths)
        self.tail = nn.Conv2d(widths[-1], outputs, 3, padding=1)

    def forward(self, planes: Tensor) -> Tensor:
        """Look at (B, 3, H, W) opponent planes; returns (B, outputs, H / 16, W / 16)."""
        features = functional.pixel_unshuffle(_features(planes), 2)
        features = self.head(features.contiguous(memory_format=torch.channels_last))
        for level, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            if level > 0:
                features = self.halve[level - 1](features)
            features = features + second(functional.relu(first(features)))
        result: Tensor = self.tail(functional.relu(features))
        return result

    def export(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return the weights as plain arrays, by the names of the engine's layers."""
        named: dict[str, nn.Module] = {"head": self.head, "tail": self.tail}
        for level, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            if level > 0:
                named[f"halve.{level}"] = self.halve[level - 1]
            named |= {f"down.{level}.0.first": first, f"down.{level}.0.second": second}
        return {
            f"{name}.{kind}": layer.get_parameter(own).detach().cpu().numpy().astype(np.float32)
            for name, layer in named.items()
            for kind, own in (("weights", "weight"), ("biases", "bias"))
        }


def _features(planes: Tensor) -> Tensor:
    """Return brightness, and what a mean of 5x5 pixels leaves of each plane: (B, 4, H, W)."""
    wide = functional.pad(planes, (2, 2, 2, 2), mode="replicate")
    detail = planes - functional.avg_pool2d(wide, 5, 1)
    return torch.cat([(planes[:, :1] - 127.5) / 64, torch.asinh(detail / 2)], dim=1)
