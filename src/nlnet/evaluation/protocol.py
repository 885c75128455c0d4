"""How good a model is on a folder of clean images: the protocol behind every reported figure.

Image ``i`` of the sorted file names gets noise from the generator with seed ``seed + i``, neither
clipped nor rounded. PSNR and SSIM are those of the output clipped to [0, 255], not rounded. Times
are warm: the first image is denoised once before the clock starts.
"""

import dataclasses
import os
import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from nlnet.denoising.image import denoise
from nlnet.errors import InputError
from nlnet.evaluation.datasets import checkout_commit, list_images, read_clean
from nlnet.evaluation.metrics import psnr, ssim
from nlnet.model.model import Model
from nlnet.noise import add_noise


@dataclasses.dataclass(frozen=True)
class Score:
    """Quality of one denoised image (or the mean of many) and the time it took."""

    psnr: float
    ssim: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Scores of a model on every image of a folder, by file name in sorted order."""

    model: str
    sigma: float
    seed: int
    commit: str | None
    images: dict[str, Score]

    @property
    def mean(self) -> Score:
        """The mean over the images, of each figure on its own."""
        figures = np.array([dataclasses.astuple(score) for score in self.images.values()])
        return Score(*figures.mean(axis=0).tolist())

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as plain values."""
        images = [
            {"name": name, **dataclasses.asdict(score)} for name, score in self.images.items()
        ]
        return {**vars(self), "mean": dataclasses.asdict(self.mean), "images": images}


def evaluate_folder(
    folder: str | os.PathLike[str],
    model: Model,
    sigma: float,
    *,
    seed: int = 0,
    ids: Collection[str] | None = None,
    threads: int | None = None,
    report: Callable[[str, Score], object] | None = None,
) -> Evaluation:
    """Denoise every image of a folder, after adding noise to it, and compare with the original.

    Parameters
    ----------
    folder : path
        Folder with 8-bit images. Gray models see color files as their luma.
    model : Model
        The model to evaluate.
    sigma : float
        Standard deviation of the noise, on the 0-255 scale.
    seed : int, optional
        Seed of the first image's noise.
    ids : collection of str, optional
        Restrict to files with these names, suffixes left out.
    threads : int, optional
        As for `nlnet.denoise`.
    report : callable, optional
        Called with the name and the score of every image as soon as it is done.

    Returns
    -------
    Evaluation

    Raises
    ------
    FileError
        If the folder or an image cannot be read.
    InputError
        If there are no images, an id has none, or an image or argument cannot be used.
    ModelError
        If it is a color model and an image is grayscale.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed is {seed!r}, but must be a whole number of at least 0.")
    scores: dict[str, Score] = {}
    for index, path in enumerate(list_images(folder, ids)):
        clean = read_clean(path, model.config.channels)
        noisy = add_noise(clean, sigma, seed + index).astype(np.float32)
        if index == 0:
            denoise(noisy, sigma, model=model, data_range=255, threads=threads)
        start = time.perf_counter()
        estimate = denoise(noisy, sigma, model=model, data_range=255, threads=threads)
        seconds = time.perf_counter() - start
        scores[path.name] = Score(psnr(clean, estimate), ssim(clean, estimate), seconds)
        if report is not None:
            report(path.name, scores[path.name])
    return Evaluation(model.name, sigma, seed, checkout_commit(), scores)
