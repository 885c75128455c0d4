"""Noisy crops to train on, and the validation images.

Every crop follows from the recipe's seed and its own place in the training, not from a running
generator: an interrupted run, or one spread over processes, sees the very same crops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.evaluation.datasets import bsd68_ids, list_images, read_clean
from nlnet.inputs import from_planes, to_planes
from nlnet.network import color
from nlnet.network.matching import find_groups
from nlnet.noise import add_noise
from nlnet.training.loss import squared_errors
from nlnet.training.settings import TrainingSettings

TRAINING_FOLDERS = ("train", "test")
VALIDATION_FOLDER = "val"

FIXED_EPOCH = 0
"""The epoch whose crops are those that are kept; new ones are counted from 1."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """Working planes and their groups, and the clean images in gray or RGB.

    `estimate` is what enters the first stage that is run: the noisy planes, unless that is a later
    stage than the network's first. `errors` are its mean squared errors, as gray or RGB; of an
    image that is a piece of a crop, those of the whole crop.
    """

    estimate: Tensor  # (B, C, H, W)
    noisy: Tensor  # (B, C, H, W)
    groups: Tensor  # (B, H, W, K, 2)
    clean: Tensor  # (B, C, H, W)
    sigmas: Tensor  # (B,), on the CPU
    errors: Tensor  # (B,)

    def __len__(self) -> int:
        return len(self.clean)

    @property
    def sigma(self) -> float:
        """The noise of its images, if it is that of all of them."""
        return float(self.sigmas[0])

    def pick(self, items: Sequence[int]) -> Batch:
        """Return some of the batch's images."""
        index = torch.as_tensor(items, dtype=torch.int64)
        return self._map(lambda tensor: tensor[index])

    def to(self, device: torch.device) -> Batch:
        """Return the batch on another device, but for the sigmas."""
        moved = self._map(lambda tensor: tensor.to(device))
        return dataclasses.replace(moved, sigmas=self.sigmas)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(
            change(self.estimate),
            change(self.noisy),
            change(self.groups),
            change(self.clean),
            change(self.sigmas),
            change(self.errors),
        )


def join(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the images of several; each image keeps its sigma."""
    return Batch(
        torch.cat([batch.estimate for batch in batches]),
        torch.cat([batch.noisy for batch in batches]),
        torch.cat([batch.groups for batch in batches]),
        torch.cat([batch.clean for batch in batches]),
        torch.cat([batch.sigmas for batch in batches]),
        torch.cat([batch.errors for batch in batches]),
    )


@dataclasses.dataclass(frozen=True)
class Pictures:
    """The clean images of a run, (C, H, W) uint8 arrays, and how many files were left out."""

    training: Sequence[Array]
    validation: Sequence[Array]
    left_out: int = 0


def load_pictures(
    folder: Path, settings: TrainingSettings, exclude: frozenset[str] = frozenset()
) -> Pictures:
    """Read ``train/`` and ``test/``, which are trained on, and ``val/``, in the order of names.

    The images of BSD68, and those whose names without suffix are in `exclude`, are left out in all
    folders.

    Raises
    ------
    FileError
        If a folder or an image cannot be read.
    InputError
        If nothing is left, or an image cannot be used or is smaller than a crop.
    """
    skip = exclude | bsd68_ids()  # they are for the final test: no run ever sees them
    channels = settings.network.channels
    left_out = 0
    found: list[list[Array]] = []
    for names, side in ((TRAINING_FOLDERS, settings.data.crop), ((VALIDATION_FOLDER,), 0)):
        pictures = []
        for place in (folder / name for name in names):
            paths = list_images(place)
            kept = [path for path in paths if path.stem not in skip]
            if not kept:
                raise InputError(f"All images in {str(place)!r} are to be left out.")
            left_out += len(paths) - len(kept)
            pictures += [_load_picture(path, channels, side) for path in kept]
        found.append(pictures)
    return Pictures(found[0], found[1], left_out)


def _load_picture(path: Path, channels: int, side: int) -> Array:
    planes = np.ascontiguousarray(to_planes(read_clean(path, channels), _axis(channels)))
    _, height, width = planes.shape
    if min(height, width) < side:
        raise InputError(
            f"A crop of {side}x{side} pixels does not fit into {str(path)!r}, {width}x{height}."
        )
    return planes


def _axis(channels: int) -> int | None:
    """Return where files have their channels: (H, W) or (H, W, 3)."""
    return None if channels == 1 else -1


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
        self._pictures = pictures
        self._settings = settings
        self._kept: tuple[Sequence[int], Batch] | None = None

    def keep(self, items: Sequence[int], threads: int | None) -> Batch:
        """Return these crops of the fixed set, drawn once and then kept."""
        if self._kept is None or self._kept[0] != items:
            self._kept = items, self.draw(FIXED_EPOCH, 0, items, threads)
        return self._kept[1]

    def draw(self, epoch: int, step: int, items: Sequence[int], threads: int | None) -> Batch:
        """Return the crops with these numbers of an epoch, at least one, with a step's noise."""
        sigma = self._settings.draw_sigma(epoch, step)
        pairs = [self._draw_one(epoch, item, sigma) for item in items]
        clean = np.stack([pair[0] for pair in pairs])
        noisy = np.stack([pair[1] for pair in pairs])
        return make_batch(clean, noisy, sigma, self._settings, threads)

    def draw_one(self, epoch: int, item: int, threads: int | None) -> Batch:
        """Return one crop of an epoch with noise of its own, for the refinement."""
        sigma = self._settings.draw_sigma(epoch, item, self._settings.refinement.often)
        clean, noisy = self._draw_one(epoch, item, sigma)
        return make_batch(clean[None], noisy[None], sigma, self._settings, threads)

    def _draw_one(self, epoch: int, item: int, sigma: float) -> tuple[Array, Array]:
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
        return np.ascontiguousarray(clean), clean + np.float32(sigma) * noise


def validation_batch(
    picture: Array, number: int, sigma: float, settings: TrainingSettings, threads: int | None
) -> Batch:
    """Return the validation image with this number, with the protocol's noise, as a batch."""
    # The protocol's noise is drawn in the layout of image files, (H, W) or (H, W, 3).
    axis = _axis(len(picture))
    pixels = add_noise(from_planes(picture, axis), sigma, number)
    noisy = to_planes(pixels.astype(np.float32), axis)
    return make_batch(picture[np.newaxis], noisy[np.newaxis], sigma, settings, threads)


def make_batch(
    clean: Array, noisy: Array, sigma: float, settings: TrainingSettings, threads: int | None
) -> Batch:
    """Bring images to working planes of the recipe's precision, and match their patches."""
    config = settings.network
    planes = np.ascontiguousarray(noisy, settings.precision)
    if config.channels == 3:
        planes = color.transform(planes, color.OPPONENT)
    groups = find_groups(planes[:, 0], config, threads)
    noisy_planes = torch.from_numpy(planes)
    exact = torch.from_numpy(clean.astype(settings.precision))
    return Batch(
        noisy_planes,
        noisy_planes,
        torch.from_numpy(groups),
        exact,
        torch.full((len(clean),), sigma, dtype=torch.float64),
        squared_errors(torch.from_numpy(noisy), exact),
    )
