"""Noisy crops to train on, and the validation images.

Every crop follows from the recipe's seed and its own place in the training, not from a running
generator: an interrupted run, or one spread over processes, sees the very same crops.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlnet.arrays import Array
from nlnet.evaluation.datasets import LUMA
from nlnet.inputs import from_planes, to_planes
from nlnet.network import color
from nlnet.network.matching import find_groups
from nlnet.noise import add_noise
from nlnet.training.loss import squared_errors
from nlnet.training.pictures import Pictures, axis_of
from nlnet.training.settings import TrainingSettings

FIXED_EPOCH = 0
"""The epoch whose crops are those that are kept; new ones are counted from 1."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """Working planes and their groups, and the clean images in gray or RGB.

    `estimate` is what enters the first stage that is run: the noisy planes, or what earlier stages
    made of them. `errors` are the estimate's mean squared errors in gray or RGB; a piece of a crop
    has that of the whole crop.
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
        """The sigma of its images, where all of them have the same."""
        return float(self.sigmas[0])

    def pick(self, items: Sequence[int]) -> "Batch":
        """Return some of the batch's images."""
        index = torch.as_tensor(items, dtype=torch.int64)
        return self._map(lambda tensor: tensor[index])

    def split(self, size: int) -> "list[Batch]":
        """Cut the batch into parts of at most `size` images."""
        places = range(len(self))
        return [self.pick(places[start : start + size]) for start in places[::size]]

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on another device, but for the sigmas."""
        moved = self._map(lambda tensor: tensor.to(device))
        return dataclasses.replace(moved, sigmas=self.sigmas)

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(**{name: change(tensor) for name, tensor in vars(self).items()})


def join(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the images of several; each image keeps its sigma."""
    parts = [vars(batch) for batch in batches]
    return Batch(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})


class CropSource:
    """Noisy images to train on and to validate with, with the noise that the recipe asks for.

    Parameters
    ----------
    pictures : Pictures
        The images.
    settings : TrainingSettings
        Crop size, noise, seed and network.
    threads : int, optional
        Number of threads that match patches; by default all CPUs the process may use.
    """

    def __init__(
        self, pictures: Pictures, settings: TrainingSettings, threads: int | None = None
    ) -> None:
        self._pictures, self._settings, self._threads = pictures, settings, threads
        self._photos: dict[Path, Any] = {}
        self._kept: tuple[Sequence[int], Batch] | None = None

    def keep(self, items: Sequence[int]) -> Batch:
        """Return these crops of the fixed set, drawn once and then kept."""
        if self._kept is None or self._kept[0] != items:
            self._kept = items, self.draw(FIXED_EPOCH, 0, items)
        return self._kept[1]

    def draw(
        self, epoch: int, step: int, items: Sequence[int], often: Sequence[float] = ()
    ) -> Batch:
        """Draw crops of an epoch, given their numbers (one or more), with the noise of a step.

        `often` is that of `TrainingSettings.draw_sigma`.
        """
        sigma = self._settings.draw_sigma(epoch, step, often)
        pairs = [self._draw_one(epoch, item, sigma) for item in items]
        clean, noisy = (np.stack(images) for images in zip(*pairs, strict=True))
        return self.make_batch(clean, noisy, sigma)

    def validation(self, number: int) -> list[Batch]:
        """Return a validation image with each noise that is validated with, as batches of one."""
        settings, clean = self._settings, self._pictures.validation[number]
        if settings.data.noise == "white":
            return [self.validation_batch(number, sigma) for sigma in settings.validation_sigmas]
        if settings.data.noise == "pairs":
            noisy = self._pictures.noisy_validation[number]
        else:
            rng = np.random.default_rng((settings.seed, number, 2))
            clean, noisy = self._simulate(self._pictures.places[-1], rng)
        return [self.make_batch(clean[None], noisy[None].astype(np.float32), 0.0)]

    def validation_batch(self, number: int, sigma: float) -> Batch:
        """Return the validation image with this number, with the protocol's noise, as a batch."""
        picture = self._pictures.validation[number]
        # The protocol's noise is drawn in the layout of image files, (H, W) or (H, W, 3).
        axis = axis_of(len(picture))
        pixels = add_noise(from_planes(picture, axis), sigma, number)
        noisy = to_planes(pixels.astype(np.float32), axis)
        return self.make_batch(picture[np.newaxis], noisy[np.newaxis], sigma)

    def make_batch(self, clean: Array, noisy: Array, sigma: float) -> Batch:
        """Bring images to working planes of the recipe's precision, and match their patches.

        `sigma` is that of white noise; if images come with their noise, it is measured.
        """
        settings, config = self._settings, self._settings.network
        if settings.data.noise != "white":
            sigma = measured_sigma(clean, noisy, settings)
        planes = np.ascontiguousarray(noisy, settings.precision)
        if config.channels == 3:
            planes = color.transform(planes, color.OPPONENT)
        groups = torch.from_numpy(find_groups(planes[:, 0], config, self._threads))
        noisy_planes = torch.from_numpy(planes)
        exact = torch.from_numpy(clean.astype(settings.precision))
        sigmas = torch.full((len(clean),), sigma, dtype=torch.float64)
        errors = squared_errors(torch.from_numpy(noisy), exact)
        return Batch(noisy_planes, noisy_planes, groups, exact, sigmas, errors)

    def _draw_one(self, epoch: int, item: int, sigma: float) -> tuple[Array, Array]:
        settings = self._settings
        rng = np.random.default_rng((settings.seed, epoch, item))
        if settings.data.noise == "simulated":
            return self._simulate(self._pictures.places[0], rng)
        # One picture after the other, so that all are seen, however few crops an epoch has.
        number = (max(epoch, 1) - 1) * settings.data.crops + item
        number %= len(self._pictures.training)
        side = settings.data.crop
        picture = self._pictures.training[number]
        top, left = (int(rng.integers(size - side + 1)) for size in picture.shape[1:])
        turns, flip = (int(rng.integers(4)), rng.integers(2)) if settings.data.augment else (0, 0)

        def cut(planes: Array) -> Array:
            crop = planes[:, top : top + side, left : left + side].astype(np.float32)
            crop = np.rot90(crop, turns, axes=(1, 2))
            return np.ascontiguousarray(crop[:, :, ::-1] if flip else crop)

        clean = cut(picture)
        if settings.data.noise == "pairs":
            return clean, cut(self._pictures.noisy_training[number])
        noise = rng.standard_normal(clean.shape, dtype=np.float32)
        return clean, clean + np.float32(sigma) * noise

    def _simulate(self, folder: Path, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return planes of a photo without and with the noise of cameras, films, microscopes."""
        from nlnet.training.simulation.recipes import draw_recipe  # OpenCV, which others lack
        from nlnet.training.simulation.scenes import Photos

        if folder not in self._photos:
            self._photos[folder] = Photos(folder)
        recipe = draw_recipe(self._photos[folder], self._settings.data.crop, rng)
        noisy = recipe.render(int(rng.integers(2**32)))
        channels = self._settings.network.channels
        return _planes_of(recipe.truth(), channels), _planes_of(noisy, channels)


def _planes_of(image: Array, channels: int) -> Array:
    """Return an image as float32 planes, gray as its luma or in three equal channels."""
    planes = np.atleast_3d(image).transpose(2, 0, 1).astype(np.float32)
    if len(planes) != channels:
        gray = np.tensordot(LUMA, planes, 1)[None] if len(planes) == 3 else planes
        planes = np.repeat(gray, channels, axis=0)
    return np.ascontiguousarray(planes, np.float32)


def measured_sigma(clean: Array, noisy: Array, settings: TrainingSettings) -> float:
    """Return the sigma of images that come with their noise: that of the recipe.

    If the recipe is for every sigma, it is measured: the root mean squared difference of noisy and
    clean images, clipped to the range of the recipe's sigmas.
    """
    if settings.sigma is not None:
        return settings.sigma
    difference = noisy.astype(np.float64) - clean
    found = float(np.sqrt(np.mean(difference**2)))
    return min(max(found, settings.sigmas[0]), settings.sigmas[-1])
