"""Do raw developers open a denoised DNG like the original? ``python -m benchmarks.dng``.

Files of a simulated sensor, with every Bayer pattern, crops, black levels and orientations, and the
raw file in the data folder, are denoised and written as DNG: as a copy, and as a new file, which is
what raw files of other formats become. darktable and RawTherapee develop original and result; the
table has the mean difference of the two pictures, both blurred, on the 8-bit scale, and the number
of warnings that ExifTool and LibRaw have for the result alone.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import PIL.Image

from benchmarks.pictures import PROJECT, require_data
from nlnet.files.one_file import denoise_file
from nlnet.files.settings import Settings
from nlnet.raw import dng
from nlnet.raw.dng_copy import copy_with
from tests.raw_cases import BAYER, BLACK, mosaic_of, shoot, stored, write_dng

BLUR = 16
"""Side of the squares whose means are compared."""

PROGRAMS = ("darktable-cli", "rawtherapee-cli", "exiftool", "raw-identify")
CROPS = [
    (50829, "H", 4, (8, 12, 308, 452), True),
    (50719, "H", 2, (4, 6), True),
    (50720, "H", 2, (420, 280), True),
]
BLACK_LEVELS = (BLACK, BLACK + 20, BLACK + 7, BLACK - 30)
CASES: dict[str, dict[str, Any]] = {
    "RGGB": {},
    "GRBG": {"pattern": ((1, 0), (2, 1))},
    "GBRG": {"pattern": ((1, 2), (0, 1))},
    "BGGR": {"pattern": ((2, 1), (1, 0))},
    "active area and crop": {"more_tags": CROPS},
    "four black levels": {"black": BLACK_LEVELS},
    "turned left": {"orientation": 8},
    "upside down": {"orientation": 3},
    "strips, big endian, with a preview": {"rowsperstrip": 32, "byteorder": ">"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dng", description=__doc__)
    parser.parse_args(arguments)
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        sys.exit(f"Not installed: {', '.join(missing)}.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| raw file | written as | darktable | RawTherapee | new warnings |")
        print("|---|---|---:|---:|---:|")
        for case, original in originals(folder):
            for way in ("a copy", "a new file"):
                result = denoise(original, folder / "result.dng", copy=way == "a copy")
                figures = [difference(develop, original, result) for develop in DEVELOPERS]
                new = [text for text in warnings(result) if text not in warnings(original)]
                print(f"| {case} | {way} | {figures[0]:.2f} | {figures[1]:.2f} | {len(new)} |")
                print(*new, sep="\n", end="\n" if new else "", file=sys.stderr)
    return 0


def originals(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and paths of noisy raw files."""
    for number, (name, options) in enumerate(CASES.items()):
        yield name, simulate(folder / f"{number}.dng", **options)
    yield "`colorchart.dng`", require_data() / "real" / "raw" / "colorchart.dng"


def simulate(path: Path, **options: Any) -> Path:
    """Write what a sensor with noise and a hot pixel sees of a photo."""
    with PIL.Image.open(PROJECT / "examples" / "cat.png") as image:
        colors = (np.asarray(image.convert("RGB").resize((480, 320))) / 255) ** 2.2
    seen = shoot(mosaic_of(colors * 0.9, options.get("pattern", BAYER)))
    seen[150, 200] += 6000
    levels = np.resize(options.get("black", [BLACK]), (2, 2))
    shifts = np.tile(levels - BLACK, (160, 240))
    if "rowsperstrip" in options:
        options["preview"] = np.zeros((80, 120, 3), np.uint8)
    return write_dng(path, stored(seen + shifts), **options)


def denoise(source: Path, target: Path, *, copy: bool) -> Path:
    """Denoise a raw file; without `copy`, as if it were of another format."""
    with mock.patch.object(dng, "copy_with", copy_with if copy else lambda *_: None):
        denoise_file(source, target, Settings())
    return target


def darktable(source: Path, target: Path) -> None:
    """Develop with the defaults of darktable."""
    with tempfile.TemporaryDirectory() as config:
        core = ["--core", "--configdir", config, "--library", ":memory:"]
        run("darktable-cli", source, target, *core)


def rawtherapee(source: Path, target: Path) -> None:
    """Develop with the neutral profile of RawTherapee."""
    run("rawtherapee-cli", "-o", target, "-n", "-b8", "-Y", "-c", source)


DEVELOPERS: tuple[Callable[[Path, Path], None], ...] = (darktable, rawtherapee)


def difference(develop: Callable[[Path, Path], None], one: Path, other: Path) -> float:
    """Return the mean difference of two files' pictures, blurred, on the 8-bit scale.

    It is infinite if the pictures have different sizes.
    """
    means = []
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate((one, other)):
            target = Path(folder) / f"{number}.png"
            develop(source, target)
            with PIL.Image.open(target) as image:
                picture = np.asarray(image.convert("RGB"), float)
            size = picture.shape
            height, width = (side // BLUR for side in size[:2])
            inner = picture[: height * BLUR, : width * BLUR]
            blocks = inner.reshape(height, BLUR, width, BLUR, 3).mean(axis=(1, 3))
            means.append((size, blocks))
    (size, before), (other_size, after) = means
    return float(np.abs(before - after).mean()) if size == other_size else float("inf")


def warnings(path: Path) -> list[str]:
    """Return what ExifTool and LibRaw complain about."""
    found = run("exiftool", "-validate", "-warning", "-error", "-a", "-s3", path).stdout
    read = run("raw-identify", "-v", path)
    return [*found.splitlines()[1:], *read.stderr.splitlines()]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program, which must not fail."""
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)


if __name__ == "__main__":
    sys.exit(main())
