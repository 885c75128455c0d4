"""Prepare photos for training: ``python -m scripts.photos FOLDER -o build/photos``.

Photos that were scaled down are sharper than what most cameras give at full size, and their colors
differ more from pixel to pixel. A model has to know both kinds. So every photo of FOLDER/train and
FOLDER/val is brought into versions, as users' pictures are: as it is, scaled down, softened or
scaled up, through the color mosaic of a sensor, with its chroma halved, through JPEG. Tiles are
drawn from them, more where there is detail, and written as PNG files with names in random order.
Everything follows from the names of the photos and one seed.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

Photo = npt.NDArray[np.uint8]  # (H, W, 3), in OpenCV's order: blue, green, red
Random = np.random.Generator

TILE = 224
TILES = {"train": 60, "val": 6}  # of each photo, at most; its versions take turns
CANDIDATES = 24
SEED = 0

FAINT = 30.0
"""Power of the detail, in squared gray levels, below which most tiles are left out. The gradient of
the PSNR grows as the error falls, so that a few smooth tiles would outweigh all others."""


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and prepare both folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="photos in train/ and val/")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/photos"))
    given = parser.parse_args(arguments)
    cv2.setNumThreads(1)
    for name, count in TILES.items():
        written = prepare(given.folder / name, given.output / name, count)
        print(f"{given.output / name}: {written} tiles of {TILE}x{TILE} pixels")


def prepare(photos: Path, output: Path, count: int) -> int:
    """Write up to `count` tiles of every photo, fewer of smooth ones; return how many there are."""
    output.mkdir(parents=True, exist_ok=True)
    written = 0
    for path in sorted(photos.iterdir()):
        read = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if read is None:
            raise SystemExit(f"{path} cannot be read as an image.")
        photo = _photo(read)
        first = zlib.crc32(path.stem.encode())
        for number in range(count):
            key = f"{path.stem}-{number}"
            rng = np.random.default_rng((SEED, zlib.crc32(key.encode())))
            tile = draw_tile(VERSIONS[(first + number) % len(VERSIONS)](photo, rng), rng)
            if rng.uniform() < FAINT / (detail(tile) + FAINT):
                continue
            rank = int(rng.integers(16**6))  # so that neighbours in the list are strangers
            cv2.imwrite(str(output / f"{rank:06x}-{key}.png"), tile)
            written += 1
    return written


def draw_tile(photo: Photo, rng: Random) -> Photo:
    """Return one of several tiles drawn at random: the more detail one has, the more likely."""
    if min(photo.shape[:2]) < TILE:
        photo = scale(photo, TILE / min(photo.shape[:2]))
    corners = [
        [int(rng.integers(n - TILE + 1)) for n in photo.shape[:2]] for _ in range(CANDIDATES)
    ]
    tiles = [photo[top : top + TILE, left : left + TILE] for top, left in corners]
    odds = np.array([detail(tile) for tile in tiles]) + 1e-3
    return tiles[int(rng.choice(CANDIDATES, p=odds / odds.sum()))]


def detail(tile: Photo) -> float:
    """Return the power of what the mean of 3x3 pixels leaves of the luma."""
    gray = cv2.cvtColor(tile, cv2.COLOR_BGR2GRAY).astype(np.float32)
    return float(np.square(gray - cv2.blur(gray, (3, 3))).mean())


def scale(photo: Photo, factor: float) -> Photo:
    """Return the photo at another size, without aliasing."""
    height, width = (max(TILE, round(n * factor)) for n in photo.shape[:2])
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return _photo(cv2.resize(photo, (width, height), interpolation=how))


def unchanged(photo: Photo, rng: Random) -> Photo:
    """Return the photo as it is."""
    return photo


def smaller(photo: Photo, rng: Random) -> Photo:
    """Scale a photo down to 0.4 to 0.8 of its size."""
    return scale(photo, rng.uniform(0.3, 0.7))


def softer(photo: Photo, rng: Random) -> Photo:
    """Make a photo unsharp: scaled up, or blurred after it was scaled down."""
    if rng.uniform() < 0.4:
        return scale(photo, rng.uniform(1.1, 1.4))
    sharp = scale(photo, rng.uniform(0.4, 1.0))
    return _photo(cv2.GaussianBlur(sharp, (0, 0), rng.uniform(0.4, 0.8)))


def demosaiced(photo: Photo, rng: Random) -> Photo:
    """Keep one color in each pixel, as a sensor does, and interpolate the others."""
    sharp = scale(photo, rng.uniform(0.4, 1.0))
    lens = cv2.GaussianBlur(sharp, (0, 0), rng.uniform(0.3, 0.5))
    mosaic = lens[:, :, 1].copy()
    mosaic[0::2, 0::2] = lens[0::2, 0::2, 2]
    mosaic[1::2, 1::2] = lens[1::2, 1::2, 0]
    # OpenCV names a mosaic by the second and third pixel of its second row: this one is RGGB.
    planes = cv2.cvtColor(cv2.cvtColor(mosaic, cv2.COLOR_BayerBG2BGR_EA), cv2.COLOR_BGR2YCrCb)
    planes[:, :, 1:] = cv2.medianBlur(planes, 5)[:, :, 1:]  # against false colors, as cameras do
    return _photo(cv2.cvtColor(planes, cv2.COLOR_YCrCb2BGR))


def less_chroma(photo: Photo, rng: Random) -> Photo:
    """Halve the size of the chroma, as most encoders do, after scaling the photo down."""
    planes = cv2.cvtColor(scale(photo, rng.uniform(0.4, 0.8)), cv2.COLOR_BGR2YCrCb)
    height, width = planes.shape[:2]
    half = cv2.resize(planes, ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA)
    planes[:, :, 1:] = cv2.resize(half, (width, height), interpolation=cv2.INTER_LINEAR)[:, :, 1:]
    return _photo(cv2.cvtColor(planes, cv2.COLOR_YCrCb2BGR))


def through_jpeg(photo: Photo, rng: Random) -> Photo:
    """Encode a photo with JPEG of a good quality, which halves its chroma, too."""
    quality = int(rng.integers(88, 98))
    sharp = scale(photo, rng.uniform(0.4, 1.0))
    _, encoded = cv2.imencode(".jpg", sharp, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    assert decoded is not None, "what OpenCV encoded it decodes"
    return _photo(decoded)


VERSIONS: tuple[Callable[[Photo, Random], Photo], ...] = (
    unchanged,
    smaller,
    softer,
    demosaiced,
    less_chroma,
    through_jpeg,
)


def _photo(pixels: npt.NDArray[np.generic]) -> Photo:
    return np.asarray(pixels, np.uint8)


if __name__ == "__main__":
    main()
