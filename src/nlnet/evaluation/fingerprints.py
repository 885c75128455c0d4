"""Test images, recognized by what they show: renamed copies must not be trained on."""

from __future__ import annotations

import functools
import importlib.resources

import numpy as np

from nlnet.arrays import Array

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
