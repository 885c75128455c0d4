"""The images of a training run: reading them, and keeping those of the test sets out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.evaluation.datasets import bsd68_ids, find_test_image, list_images, read_clean
from nlnet.inputs import to_planes
from nlnet.training.settings import TrainingSettings

VALIDATION_FOLDER = "val"
CLEAN, NOISY = "clean", "noisy"


@dataclasses.dataclass(frozen=True)
class Pictures:
    """The images of a run as (C, H, W) planes from 0 to 255, uint8 or, of 16-bit files, float32.

    Parameters
    ----------
    training, validation : sequence of arrays
        The clean images.
    noisy_training, noisy_validation : sequence of arrays
        The same images with their noise, if the recipe trains on pairs.
    places : tuple of Path
        The folders they are from; the last is that of the validation images.
    left_out : int
        How many files were left out by their names.
    copies : tuple of str
        Files that were left out because they show a test image, and which one.
    """

    training: Sequence[Array]
    validation: Sequence[Array]
    noisy_training: Sequence[Array] = ()
    noisy_validation: Sequence[Array] = ()
    places: tuple[Path, ...] = ()
    left_out: int = 0
    copies: tuple[str, ...] = ()


def load_pictures(
    folder: Path, settings: TrainingSettings, exclude: frozenset[str] = frozenset()
) -> Pictures:
    """Read the folders that the recipe trains on, and ``val/``, in the order of names.

    If the recipe trains on pairs, each of them has the folders ``clean/`` and ``noisy/``, with the
    same names in both. Left out are the images of BSD68, by their names, those whose names without
    suffix are in `exclude`, and copies of test images, by their content.

    Raises
    ------
    FileError
        If a folder or an image cannot be read.
    InputError
        If nothing is left, or an image cannot be used or is smaller than a crop.
    """
    reader = _Reader(settings, exclude | bsd68_ids())
    places = tuple(folder / name for name in (*settings.data.folders, VALIDATION_FOLDER))
    training = [pair for place in places[:-1] for pair in reader.read(place, settings.data.crop)]
    validation = reader.read(places[-1], 0)
    return Pictures(
        [clean for clean, _ in training],
        [clean for clean, _ in validation],
        [noisy for _, noisy in training if noisy is not None],
        [noisy for _, noisy in validation if noisy is not None],
        places,
        reader.left_out,
        tuple(reader.copies),
    )


class _Reader:
    """Reads folders, and counts what it leaves out."""

    def __init__(self, settings: TrainingSettings, skip: frozenset[str]) -> None:
        self._channels = settings.network.channels
        self._pairs = settings.data.noise == "pairs"
        self._skip = skip  # they are for the final test: no run ever sees them
        self.left_out = 0
        self.copies: list[str] = []

    def read(self, place: Path, side: int) -> list[tuple[Array, Array | None]]:
        """Return the images of a folder, each with its noisy version, if there are pairs."""
        paths = list_images(place / CLEAN if self._pairs else place)
        kept = [path for path in paths if path.stem not in self._skip]
        self.left_out += len(paths) - len(kept)
        found = []
        for path in kept:
            clean = self._load(path, side)
            test_image = find_test_image(clean)
            if test_image is not None:
                self.copies.append(f"{path} ({test_image})")
                continue
            found.append((clean, self._load_noisy(path, clean) if self._pairs else None))
        if not found:
            raise InputError(f"All images in {str(place)!r} are to be left out.")
        return found

    def _load(self, path: Path, side: int) -> Array:
        pixels = read_clean(path, self._channels)
        planes = np.ascontiguousarray(to_planes(pixels, axis_of(self._channels)))
        _, height, width = planes.shape
        if min(height, width) < side:
            raise InputError(
                f"A crop of {side}x{side} pixels does not fit into {str(path)!r}, {width}x{height}."
            )
        return planes

    def _load_noisy(self, path: Path, clean: Array) -> Array:
        other = path.parent.with_name(NOISY) / path.name
        noisy = self._load(other, 0)
        if noisy.shape != clean.shape:
            sizes = " and ".join(f"{each.shape[2]}x{each.shape[1]}" for each in (clean, noisy))
            raise InputError(f"{str(path)!r} and {str(other)!r} differ in size: {sizes} pixels.")
        return noisy


def axis_of(channels: int) -> int | None:
    """Return where files have their channels: (H, W) or (H, W, 3)."""
    return None if channels == 1 else -1
