"""Noisy crops to train on, and the validation images.

Every crop follows from the recipe's seed and its own place in the training, not from a running
generator: an interrupted run, or one spread over processes, sees the very same crops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nlnet import color
from nlnet.arrays import Array
from nlnet.config import NetworkConfig
from nlnet.errors import InputError
from nlnet.evaluate import list_images, read_clean
from nlnet.matching import find_groups
from nlnet.noise import add_noise
from nlnet.parallel import Workers
from nlnet.training.settings import TrainingSettings

TRAINING_FOLDERS = ("train", "test")
VALIDATION_FOLDER = "val"


@dataclasses.dataclass(frozen=True)
class Batch:
    """Working planes and their groups, and the clean images in gray or RGB.

    `estimate` is what enters the first stage that is run: the noisy planes, unless that is a later
    stage than the network's first.
    """

    estimate: Tensor  # (B, C, H, W)
    noisy: Tensor  # (B, C, H, W)
    groups: Tensor  # (B, H, W, K, 2)
    clean: Tensor  # (B, C, H, W)

    def __len__(self) -> int:
        return len(self.clean)

    def pick(self, items: Sequence[int]) -> Batch:
        """Return some of the batch's images."""
        index = torch.as_tensor(items, dtype=torch.int64)
        return Batch(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))

    def to(self, device: torch.device) -> Batch:
        """Return the batch on another device."""
        return Batch(*(getattr(self, field.name).to(device) for field in dataclasses.fields(self)))


def load_images(folder: Path, channels: int, skip: frozenset[str] = frozenset()) -> list[Array]:
    """Read all images of a folder, in the order of their names, as (C, H, W) uint8 arrays.

    Files whose stem is in `skip` are left out.
    """
    paths = [path for path in list_images(folder) if path.stem not in skip]
    return [_as_planes(read_clean(path, channels)) for path in paths]


def _as_planes(pixels: Array) -> Array:
    """From (H, W) or (H, W, 3), as files are read, to (C, H, W)."""
    return np.ascontiguousarray(
        pixels[np.newaxis] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)
    )


class CropSource:
    """Noisy crops of the training images.

    Parameters
    ----------
    pictures : sequence of (C, H, W) uint8 arrays
        The clean images.
    settings : TrainingSettings
        Crop size, noise level, seed and network.
    """

    def __init__(self, pictures: Sequence[Array], settings: TrainingSettings) -> None:
        side = settings.data.crop
        for _, height, width in (picture.shape for picture in pictures):
            if min(height, width) < side:
                raise InputError(
                    f"A crop of {side}x{side} does not fit into a training image of "
                    f"{width}x{height} pixels."
                )
        self._pictures = pictures
        self._settings = settings

    def draw(self, epoch: int, items: Sequence[int], workers: Workers) -> Batch:
        """Return the crops with these numbers of an epoch; epoch 0 is the fixed set."""
        pairs = workers.map(lambda item: self._draw_one(epoch, item), items)
        clean = np.stack([pair[0] for pair in pairs])
        noisy = np.stack([pair[1] for pair in pairs])
        return make_batch(clean, noisy, self._settings.network, workers)

    def _draw_one(self, epoch: int, item: int) -> tuple[Array, Array]:
        settings = self._settings
        rng = np.random.default_rng((settings.seed, epoch, item))
        picture = self._pictures[item % len(self._pictures)]
        side = settings.data.crop
        top, left = (int(rng.integers(size - side + 1)) for size in picture.shape[1:])
        clean = picture[:, top : top + side, left : left + side].astype(np.float32)
        if settings.data.augment:
            clean = np.rot90(clean, int(rng.integers(4)), axes=(1, 2))
            clean = clean[:, :, ::-1] if rng.integers(2) else clean
        noise = rng.standard_normal(clean.shape, dtype=np.float32)
        return np.ascontiguousarray(clean), clean + np.float32(settings.sigma) * noise


def validation_batches(
    pictures: Sequence[Array], settings: TrainingSettings, workers: Workers
) -> list[Batch]:
    """Return the validation images with the protocol's noise, one whole image a batch."""
    batches = []
    for number, picture in enumerate(pictures):
        # The protocol's noise is drawn in the layout of image files, (H, W) or (H, W, 3).
        pixels = np.moveaxis(picture, 0, -1) if len(picture) == 3 else picture[0]
        noisy = _as_planes(add_noise(pixels, settings.sigma, number).astype(np.float32))
        clean = picture.astype(np.float32)
        batches.append(make_batch(clean[np.newaxis], noisy[np.newaxis], settings.network, workers))
    return batches


def make_batch(clean: Array, noisy: Array, config: NetworkConfig, workers: Workers) -> Batch:
    """Bring images to working planes, and match their patches."""
    planes = noisy if config.channels == 1 else color.transform(noisy, color.OPPONENT)
    groups = np.stack([find_groups(plane[0], config, workers) for plane in planes])
    noisy_planes = torch.from_numpy(planes)
    return Batch(noisy_planes, noisy_planes, torch.from_numpy(groups), torch.from_numpy(clean))
