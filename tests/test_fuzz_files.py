"""Damaged image files through the reader: an image or one clear sentence, and nothing else.

What could be read is written again in other formats, with all that the file said. A short version
runs with the other tests; ``make fuzz-files`` tries 10,000 files. The reader works in a process of
its own, so that a crash or a hang of a library is seen as what it is, and its memory can be
measured: from the first files to the last it may grow by no more than 50 MB.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pictures import noisy_pixels

from nlnet import images

EXAMPLES = int(os.environ.get("NLNET_FUZZ_FILES", "120"))
SECONDS = 10
MEGABYTES = 2000

SETTLED, GROWTH = 500, 50
"""After so many files memory is at its level, above which it may rise by so many megabytes."""

READER = """
import contextlib, importlib, json, os, resource, sys, traceback
from pathlib import Path
for name in ("astropy.io.fits", "lzma", "pi_heif", "pyjpegxl", "zipfile"):  # not counted as growth
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
from nlnet.errors import InputError, NLNetError
from nlnet.images import encode, losses, read_pages
DTYPES = "uint8 uint16 uint32 int16 int32 float16 float32 float64".split()
def now():
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
def peak():
    status = Path("/proc/self/status")  # ru_maxrss begins with that of the process that forked
    if status.exists():
        kilobytes = next(line.split()[1] for line in status.open() if "VmHWM" in line)
    else:
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(kilobytes) / 1000
def write(page):
    for suffix in (".tif", ".png", ".jpg", ".webp", ".bmp"):
        try:
            encode(page, suffix)
        except InputError:
            continue
        losses("a" + suffix, page)
for line in sys.stdin:
    try:
        pages = read_pages(json.loads(line))
        for page in pages[:20]:
            assert page.pixels.dtype.name in DTYPES
            assert page.pixels.shape[2:] in ((), (3,))
            assert page.alpha is None or page.alpha.shape == page.pixels.shape[:2]
        if pages[0].pixels.size < 1_000_000:
            write(pages[0])
        answer = "image"
    except NLNetError as error:
        answer = str(error)
    except BaseException:
        answer = "BUG " + traceback.format_exc()
    page = pages = None
    print(json.dumps([answer, peak(), now()]), flush=True)
"""


def pillow(channels: int, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    mode = options.pop("mode", None)
    image = PIL.Image.fromarray(noisy_pixels(np.uint8, channels))
    (image.convert(mode) if mode else image).save(stream, kind, **options)
    return stream.getvalue()


def tiff(array: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    photometric = (
        "rgb" if 3 in (array.shape[0], array.shape[-1]) and array.ndim == 3 else "minisblack"
    )
    tifffile.imwrite(stream, array, photometric=photometric, **options)
    return stream.getvalue()


def fits() -> bytes:
    from astropy.io import fits

    stream = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(gray8.astype(np.float32))]).writeto(stream)
    return stream.getvalue()


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, gray8)
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def exif() -> PIL.Image.Exif:
    data = PIL.Image.Exif()
    data[0x0112], data[0x010F] = 6, "Maker"
    data.get_ifd(0x8769)[0x927C] = bytes(range(99))
    return data


def rich_jpeg() -> bytes:
    """A photo with resources of Photoshop, a comment, a thumbnail and a second image."""
    start = pillow(3, "jpeg", exif=exif(), icc_profile=bytes(16) + b"RGB " + bytes(100))
    iptc = b"\x1c\x02\x78\0\x05a cat"
    resources = b"8BIM" + struct.pack(">HHI", 0x0404, 0, len(iptc)) + iptc
    several = b"MPF\0MM\0*\0\0\0\x08\0\1\xb0\1\0\4\0\0\0\1\0\0\0\2\0\0\0\0"
    added = b""
    for marker, body in ((0xED, b"Photoshop 3.0\0" + resources), (0xFE, b"!"), (0xE2, several)):
        added += bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body
    return start[:2] + added + start[2:]


def rich_png() -> bytes:
    image = images.decode(rich_jpeg(), "a.jpg")
    return images.encode(image, ".png")


def plain(pixels: np.ndarray) -> bytes:
    return b"P3 32 24 255\n" + " ".join(map(str, pixels.ravel().tolist())).encode()


gray8, rgb8 = noisy_pixels(np.uint8), noisy_pixels(np.uint8, 3)
deep, floating = noisy_pixels(np.uint16, 3), noisy_pixels(np.float32)
PYRAMID = images.WritingOptions(pyramid=True)
SEEDS: dict[str, Callable[[], bytes]] = {
    "png": lambda: pillow(3, "png", exif=exif(), dpi=(300, 300)),
    "png-alpha": lambda: pillow(4, "png"),
    "png-palette": lambda: pillow(3, "png", mode="P"),
    "jpeg": lambda: pillow(3, "jpeg", exif=exif()),
    "jpeg-progressive": lambda: pillow(1, "jpeg", progressive=True),
    "webp": lambda: pillow(3, "webp", exif=exif()),
    "webp-lossless": lambda: pillow(4, "webp", lossless=True),
    "tiff": lambda: tiff(gray8, extratags=[(271, "s", 0, "Maker", True)]),
    "tiff-deflate": lambda: tiff(deep, compression="zlib", rowsperstrip=5),
    "tiff-tiles": lambda: tiff(rgb8, tile=(16, 16), compression="zlib", predictor=True),
    "tiff-lzw": lambda: pillow(3, "tiff", compression="tiff_lzw"),
    "tiff-jpeg": lambda: pillow(3, "tiff", compression="jpeg"),
    "png-rich": rich_png,
    "jpeg-rich": rich_jpeg,
    "tiff-rich": lambda: images.encode(images.decode(rich_jpeg(), "a.jpg"), ".tif"),
    "tiff-signed": lambda: tiff(gray8.astype(np.int16)),
    "tiff-doubles": lambda: tiff(floating.astype(np.float64), compression="zlib"),
    "tiff-tiled-doubles": lambda: tiff(floating.astype(np.float64), tile=(16, 16)),
    "tiff-planes": lambda: tiff(np.moveaxis(deep, 2, 0), tile=(16, 16), planarconfig="separate"),
    "tiff-lzma": lambda: tiff(deep, compression="lzma", predictor=True),
    "tiff-pyramid": lambda: images.encode(
        images.ImageFile(np.tile(gray8, (12, 12))), ".tif", PYRAMID
    ),
    "gif": lambda: pillow(3, "gif"),
    "avif": lambda: pillow(3, "avif"),
    "bmp": lambda: pillow(3, "bmp"),
    "bmp-palette": lambda: pillow(1, "bmp"),
    "tiff-float": lambda: tiff(floating),
    "tiff-big": lambda: tiff(deep, bigtiff=True, byteorder=">"),
    "tiff-stack": lambda: tiff(np.stack([gray8] * 3)),
    "pgm": lambda: pillow(1, "ppm"),
    "ppm": lambda: pillow(3, "ppm"),
    "ppm-plain": lambda: plain(rgb8),
    "npy": lambda: npy(rgb8),
    "npz": npz,
    "fits": fits,
    "heic": (Path(__file__).parent / "data" / "turned.heic").read_bytes,
    "jxl": lambda: images.encode(images.decode(rich_jpeg(), "a.jpg"), ".jxl"),
    "npy-stack": lambda: npy(np.asfortranarray(np.stack([floating] * 3))),
}

NEEDS = {"fits": "astropy", "heic": "pi_heif", "jxl": "pyjpegxl"}

# Where (a share of the file, or a byte near its start), what to do, and with which bytes.
place = st.one_of(st.floats(0, 1, exclude_max=True), st.integers(0, 200))
content = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\1"]),
)
mutation = st.tuples(st.sampled_from(["set", "set", "insert", "delete", "cut"]), place, content)
mutations = st.lists(mutation, min_size=1, max_size=4)


def mutate(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    result = bytearray(data)
    for kind, where, new in changes:
        start = where if isinstance(where, int) else int(where * len(result))
        end = {"insert": start, "cut": len(result)}.get(kind, start + len(new))
        result[start:end] = b"" if kind in ("delete", "cut") else new
    return bytes(result)


class Reader:
    """The process that reads; started again after a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.levels: list[float] = []
        self._process: subprocess.Popen[str] | None = None

    def read(self, data: bytes) -> tuple[str, float]:
        """Return the answer and the most memory ever used, in megabytes."""
        self.path.write_bytes(data)
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", READER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                bufsize=1,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(str(self.path)) + "\n")
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(SECONDS) else "hang"
        if not line or line == "hang":
            code = process.poll()
            self.close()
            pytest.fail(f"the reader hung for {SECONDS} s" if line else f"it crashed: {code}")
        answer, peak, level = json.loads(line)
        self.levels.append(level)
        return answer, peak

    def close(self) -> None:
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("fuzz") / "file")
    yield reader
    reader.close()


pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="needs pipes that can be waited for"
)


@pytest.mark.parametrize("kind", SEEDS)
def test_damaged_files(reader: Reader, kind: str) -> None:
    pytest.importorskip(NEEDS.get(kind, "numpy"))
    whole = SEEDS[kind]()
    assert reader.read(whole)[0] == "image"

    @settings(
        max_examples=max(1, EXAMPLES // len(SEEDS)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutations)
    def try_one(changes: list[tuple[str, float, bytes]]) -> None:
        answer, peak = reader.read(mutate(whole, changes))
        assert not answer.startswith("BUG"), answer
        assert peak < MEGABYTES
        if answer != "image":
            assert answer.endswith(".")
            assert "\n" not in answer
            assert str(reader.path) in answer

    try_one()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_stays_at_its_level(reader: Reader) -> None:
    """Of all files above, in the order they came in."""
    if len(reader.levels) <= SETTLED:
        pytest.skip(f"too few files: {len(reader.levels)}")
    settled, last = reader.levels[SETTLED - 1], reader.levels[-1]
    count = len(reader.levels)
    sys.stdout.write(f"\n{count} files: {settled:.0f} MB after {SETTLED}, at last {last:.0f} MB\n")
    assert last < settled + GROWTH
