"""Raw files that tests make themselves: small DNGs of any filter array."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

BAYER = ((0, 1), (1, 2))
X_TRANS = (
    (1, 1, 0, 1, 1, 2),
    (1, 1, 2, 1, 1, 0),
    (2, 0, 1, 0, 2, 1),
    (1, 1, 2, 1, 1, 0),
    (1, 1, 0, 1, 1, 2),
    (0, 2, 1, 2, 0, 1),
)
BLACK, WHITE = 512, 16000
NEUTRAL = (0.5, 1.0, 0.625)
"""What red, green and blue of a gray object are."""

GAIN, READ = 4.0, 12.0
_CFA, _LINEAR = 32803, 34892
_XYZ_TO_CAMERA = (0.8, -0.2, -0.1, -0.4, 1.2, 0.2, -0.1, 0.2, 0.6)


def scene(height: int = 96, width: int = 128) -> np.ndarray:
    """Smooth light with edges and color, red, green and blue from 0 to 1, (H, W, 3)."""
    rows, columns = np.mgrid[:height, :width]
    light = 0.08 + 0.5 * columns / width
    light = np.where((rows - height / 2) ** 2 + (columns - width / 2) ** 2 < 400, 0.7, light)
    tint = np.where(rows[..., None] < height / 3, (1.0, 0.6, 0.4), (0.8, 0.9, 1.0))
    return light[..., None] * tint


def mosaic_of(colors: np.ndarray, pattern: Any = BAYER) -> np.ndarray:
    """What a sensor behind filters sees of a scene, from 0 to `WHITE - BLACK`."""
    height, width = colors.shape[:2]
    size = len(pattern)
    tiles = (-(-height // size), -(-width // size))
    chosen = np.tile(np.array(pattern), tiles)[:height, :width]
    seen = np.take_along_axis(colors * NEUTRAL, chosen[..., None], axis=2)[..., 0]
    return seen * (WHITE - BLACK)


def shoot(clean: np.ndarray, seed: int = 0) -> np.ndarray:
    """Photon and read noise of `GAIN` and `READ`."""
    rng = np.random.default_rng(seed)
    return GAIN * rng.poisson(clean / GAIN) + rng.normal(0, READ, clean.shape)


def stored(mosaic: np.ndarray) -> np.ndarray:
    """A mosaic as the numbers in a file."""
    return np.clip(np.rint(mosaic + BLACK), 0, WHITE).astype(np.uint16)


def write_dng(
    path: Path,
    pixels: np.ndarray,
    pattern: Any = BAYER,
    orientation: int = 1,
    more_tags: Sequence[tuple[int, str, int, Any, bool]] = (),
    black: Sequence[int] = (BLACK,),
    preview: np.ndarray | None = None,
    byteorder: str = "<",
    **storage: Any,
) -> Path:
    """Write a DNG: a mosaic with its pattern, or linear values without one.

    Black is one level, or one for each of the first 2x2 pixels; with a preview, the mosaic is a
    sub-image; `storage` is for tifffile.
    """
    camera: list[tuple[int, str, int, Any, bool]] = [
        (274, "H", 1, orientation, True),
        (271, "s", 0, "Testmaker", True),
        (272, "s", 0, "Model One", True),
        (50706, "B", 4, (1, 4, 0, 0), True),
        (50708, "s", 0, "Testmaker Model One", True),
    ]
    sensor: list[tuple[int, str, int, Any, bool]] = [
        (50714, "H", len(black), tuple(black), True),
        (50717, "H", 1, WHITE, True),
        *more_tags,
    ]
    if len(black) == 4:
        sensor.append((50713, "H", 2, (2, 2), True))
    if pattern is not None or pixels.ndim == 3:
        matrix = [part for value in _XYZ_TO_CAMERA for part in (round(value * 1000), 1000)]
        neutral = [part for value in NEUTRAL for part in (round(value * 1000), 1000)]
        camera += [
            (50721, "2i", 9, tuple(matrix), True),
            (50728, "2I", 3, tuple(neutral), True),
            (50778, "H", 1, 21, True),
        ]
    if pattern is not None:
        size = len(pattern)
        flat = bytes(color for row in pattern for color in row)
        sensor += [(33421, "H", 2, (size, size), True), (33422, "B", size**2, flat, True)]
    storage |= {
        "photometric": "minisblack" if pattern is None else _CFA,
        "planarconfig": "contig" if pixels.ndim == 3 else None,
    }
    common = {"metadata": None, "software": False}
    with tifffile.TiffWriter(path, byteorder=byteorder) as file:
        if preview is None:
            file.write(pixels, extratags=[*camera, *sensor], **storage, **common)
        else:
            file.write(preview, subifds=1, subfiletype=1, extratags=camera, **common)
            file.write(pixels, extratags=sensor, **storage, **common)
    if pattern is None:  # which tifffile does not write for a single channel
        before, after = (struct.pack("<HHII", 262, 3, 1, kind) for kind in (1, _LINEAR))
        path.write_bytes(path.read_bytes().replace(before, after, 1))
    return path
