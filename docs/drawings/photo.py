"""The photo that all drawings show, clean and noisy, in gray."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from nlnet.evaluation.datasets import read_clean
from nlnet.noise import add_noise

SIGMA = 25

PATCHES = {
    "rim of the eye": (140, 118),
    "stripe of the fur": (248, 60),
    "edge of the nose": (250, 246),
}
"""Pixels (x, y) whose groups are shown."""


@dataclasses.dataclass(frozen=True)
class Photo:
    """A photo without and with noise, (H, W) on the 0-255 scale."""

    clean: np.ndarray
    noisy: np.ndarray

    def crop(self, left: int, top: int, width: int, height: int) -> Photo:
        """Cut a rectangle out of both."""
        part = np.s_[top : top + height, left : left + width]
        return Photo(self.clean[part].copy(), self.noisy[part].copy())


def read_photo() -> Photo:
    """Read the bundled photo and add the noise of the experiments."""
    path = Path(__file__).resolve().parents[2] / "examples" / "cat.png"
    clean = read_clean(path, channels=1)
    return Photo(clean.astype(np.float32), add_noise(clean, SIGMA).astype(np.float32))
