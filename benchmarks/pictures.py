"""The noisy images all methods see: photos of 481x321 pixels, and large ones made of them."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.evaluation.datasets import bsd68_ids, list_images, luma, read_clean
from nlnet.images import read_image
from nlnet.noise import add_noise

PROJECT = Path(__file__).resolve().parent.parent
BUNDLED = PROJECT / "examples" / "cat.png"

CHANNELS = {"gray": 1, "color": 3}
SIZES = {"small": (321, 481), "2mp": (1080, 1920), "24mp": (4000, 6000)}
"""Height and width of the images by the name of their size."""


@dataclasses.dataclass(frozen=True)
class Picture:
    """A clean image on the 0-255 scale and its noisy version, (H, W) or (H, W, 3)."""

    name: str
    clean: Array  # uint8
    noisy: Array  # float32, neither clipped nor rounded

    @property
    def pixels(self) -> int:
        """Number of pixels, whatever the channels."""
        return int(self.clean.shape[0] * self.clean.shape[1])


def find_data() -> Path | None:
    """Return the folder with ``bsd68`` and ``bsds500``, if it is where tests look for it too."""
    data = Path(os.environ.get("NLNET_SHARED", PROJECT.parent / "shared")) / "data"
    return data if (data / "bsd68").is_dir() else None


def require_data() -> Path:
    """Return the folder of `find_data`, or end the program with a sentence."""
    data = find_data()
    if data is None:
        sys.exit("There is no data folder: set NLNET_SHARED.")
    return data


def bsd68_paths(kind: str, data: Path) -> Sequence[Path]:
    """Return the images of BSD68, gray or color, in the order of their names."""
    if kind == "gray":
        return list_images(data / "bsd68")
    return list_images(data / "bsds500" / "val", bsd68_ids())


def make_pictures(
    kind: str, size: str, count: int, sigma: float, data: Path | None = None
) -> list[Picture]:
    """Return noisy images of one kind and size; image i has the noise of seed i.

    Parameters
    ----------
    kind : {"gray", "color"}
        What the methods denoise.
    size : str
        One of `SIZES`. Large images are small ones tiled with their mirror images, before the
        noise is added.
    count : int
        How many images; of the bundled photo there is only one.
    sigma : float
        Standard deviation of the noise on the 0-255 scale.
    data : path, optional
        Folder with ``bsd68`` (gray) and ``bsds500/val`` (color); else the bundled photo is taken.
    """
    height, width = SIZES[size]
    pictures = []
    for seed, (name, photo) in enumerate(_read_photos(kind, count, data)):
        clean = _mirror_tiled(photo, height, width)
        pictures.append(Picture(name, clean, add_noise(clean, sigma, seed).astype(np.float32)))
    return pictures


def noisy_bytes(height: int, width: int, sigma: float) -> Array:
    """Return the bundled photo, gray, brought to a size, noisy, and rounded to 8 bits."""
    ((_, photo),) = _read_photos("gray", 1, None)
    noisy = add_noise(_mirror_tiled(photo, height, width), sigma, seed=0)
    return np.rint(np.clip(noisy, 0, 255)).astype(np.uint8)


def _read_photos(kind: str, count: int, data: Path | None) -> list[tuple[str, Array]]:
    if data is None:
        pixels = read_image(BUNDLED).pixels
        return [(BUNDLED.name, luma(pixels) if kind == "gray" else pixels)]
    paths = bsd68_paths(kind, data)
    # From all over the list, by the names alone: gray and color are the same scenes.
    chosen = [paths[number * len(paths) // count] for number in range(count)]
    return [(path.name, read_clean(path, CHANNELS[kind])) for path in chosen]


def _mirror_tiled(photo: Array, height: int, width: int) -> Array:
    """Crop to the size, or continue by mirror images up to it; portraits are turned first."""
    if photo.shape[0] > photo.shape[1]:
        photo = np.rot90(photo)
    rows, columns = photo.shape[:2]
    missing = [(0, max(0, height - rows)), (0, max(0, width - columns))]
    missing += [(0, 0)] * (photo.ndim - 2)
    return np.ascontiguousarray(np.pad(photo, missing, mode="symmetric")[:height, :width])
