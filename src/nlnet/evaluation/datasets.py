"""Sets of clean images: listing and reading the files of a folder."""

import functools
import importlib.resources
import os
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError, ModelError, trying
from nlnet.images import SUFFIXES, read_image


def list_images(
    folder: str | os.PathLike[str], ids: Collection[str] | None = None
) -> Sequence[Path]:
    """Return a folder's image files in plain sorted order of names, if asked only those of `ids`.

    Raises
    ------
    FileError
        If the folder cannot be read.
    InputError
        If it has no images, or none for one of the ids.
    """
    with trying(f"read the folder {os.fspath(folder)!r}"):
        names = sorted(os.listdir(folder))
    paths = [Path(folder, name) for name in names if Path(name).suffix.lower() in SUFFIXES]
    if ids is not None:
        missing = sorted(set(ids) - {path.stem for path in paths})
        if missing:
            raise InputError(
                f"{os.fspath(folder)!r} has no image for {len(missing)} of the "
                f"{len(set(ids))} ids, the first of them {missing[0]!r}."
            )
        paths = [path for path in paths if path.stem in ids]
    if not paths:
        raise InputError(
            f"There are no images to evaluate in {os.fspath(folder)!r}; "
            f"their names must end in one of {', '.join(SUFFIXES)}."
        )
    return paths


def bsd68_ids() -> frozenset[str]:
    """Return the ids of the 68 images of BSDS500 that reported figures are measured on."""
    text = importlib.resources.files("nlnet.evaluation").joinpath("bsd68.txt").read_text()
    return frozenset(text.split())


def read_ids(path: str | os.PathLike[str]) -> frozenset[str]:
    """Read image ids from a text file, one per line; empty lines are skipped."""
    with trying(f"read the ids in {os.fspath(path)!r}"):
        text = Path(path).read_text(encoding="utf-8")
    ids = frozenset(line.strip() for line in text.splitlines() if line.strip())
    if not ids:
        raise InputError(f"{os.fspath(path)!r} lists no ids, but must have one per line.")
    return ids


def luma(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the ITU-R 601 luma of an 8-bit RGB image, to the bit as Pillow's ``convert("L")``.

    Examples
    --------
    >>> luma(np.array([[[255, 255, 255], [255, 0, 0]]], np.uint8)).tolist()
    [[255, 76]]
    """
    weights = np.array([19595, 38470, 7471], np.uint32)  # of 65536: .299, .587, .114
    return ((rgb @ weights + 0x8000) >> 16).astype(np.uint8)


LUMA = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in the ITU-R 601 luma."""


def read_clean(path: Path, channels: int) -> npt.NDArray[np.uint8 | np.float32]:
    """Read an image for a network of 1 or 3 channels; gray ones see color as luma.

    Files of 8 bits give uint8, and those of 16 bits float32 from 0 to 255.
    """
    pixels = read_image(path).pixels
    if pixels.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"{str(path)!r} is {pixels.dtype}, but clean images have 8 or 16 bits per channel."
        )
    if channels == 3 and pixels.ndim == 2:
        raise ModelError(f"{str(path)!r} is grayscale, but the model is made for color images.")
    to_gray = channels == 1 and pixels.ndim == 3
    if pixels.dtype == np.uint16:
        scaled = pixels.astype(np.float32) / np.float32(257)
        return np.asarray(scaled @ np.array(LUMA) if to_gray else scaled, np.float32)
    return luma(pixels) if to_gray else pixels


_ROWS, _COLUMNS = 16, 17
_MOST_DIFFERENT = 24
"""Bits, of 256, in which a copy may differ: it may be encoded again, scaled or made gray."""


def fingerprint(planes: Array) -> int:
    """Return 256 bits that say where a (C, H, W) image becomes brighter from left to right.

    Examples
    --------
    >>> ramp = np.tile(np.arange(34.0), (1, 32, 1))
    >>> fingerprint(ramp) == 2**256 - 1, fingerprint(255 - ramp)
    (True, 0)
    """
    gray = planes.mean(axis=0, dtype=np.float32)
    for axis, count in enumerate((_ROWS, _COLUMNS)):
        starts = np.arange(count) * gray.shape[axis] // count
        lengths = np.diff([*starts, gray.shape[axis]])
        sums = np.add.reduceat(gray, starts, axis=axis)
        gray = sums / np.expand_dims(lengths, 1 - axis)
    bits = np.packbits(gray[:, 1:] > gray[:, :-1])
    return int.from_bytes(bits.tobytes(), "big")


def find_test_image(planes: Array) -> str | None:
    """Return the name of the test image that a (C, H, W) image shows; None if it shows none."""
    if min(planes.shape[1:]) < _COLUMNS:
        return None
    found = fingerprint(planes)
    known = _known()
    name = min(known, key=lambda name: (known[name] ^ found).bit_count())
    return name if (known[name] ^ found).bit_count() <= _MOST_DIFFERENT else None


@functools.cache
def _known() -> dict[str, int]:
    text = importlib.resources.files("nlnet.evaluation").joinpath("fingerprints.txt").read_text()
    lines = (line.rsplit(maxsplit=1) for line in text.splitlines())
    return {name: int(bits, 16) for name, bits in lines}


def checkout_commit() -> str | None:
    """Return the git commit of the package's own checkout, None outside one.

    A package installed into an environment that lies inside some other repository is not that
    repository's code: there the answer is None too.
    """
    # The first call fails unless git tracks this very file.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
