"""Images that are refused or converted, by their kind or their size."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from messages import refused

from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.images import ImageFile, read_image, read_pages


def save(image: PIL.Image.Image, path: Path, **options: Any) -> Path:
    image.save(path, **options)
    return path


def imwrite(path: Path, array: np.ndarray, **options: Any) -> Path:
    tifffile.imwrite(path, array, **options)
    return path


GRAY, RGB = PIL.Image.new("L", (8, 8)), PIL.Image.new("RGB", (8, 8))
RED = PIL.Image.new("RGB", (8, 8), "red")
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "cmyk-jpeg": (
        lambda p: save(RGB.convert("CMYK"), p / "a.jpg"),
        "CMYK image",
    ),
    "cmyk-tiff": (lambda p: save(RGB.convert("CMYK"), p / "a.tif"), "CMYK image"),
    "lab": (lambda p: save(RGB.convert("LAB"), p / "a.tif"), "CIELAB image"),
    "bit-png": (lambda p: save(GRAY.convert("1"), p / "a.png"), "black and white (1 bit)"),
    "bit-tiff": (lambda p: save(GRAY.convert("1"), p / "a.tif"), "black and white (1 bit)"),
    "bit-pbm": (lambda p: save(GRAY.convert("1"), p / "a.pbm"), "black and white (1 bit)"),
    "stack": (
        lambda p: imwrite(p / "a.tif", np.zeros((4, 8, 8), np.uint8), photometric="minisblack"),
        "has 4 pages",
    ),
    "signed": (lambda p: imwrite(p / "a.tif", np.zeros((8, 8), np.int8)), "signed values of 8"),
    "long": (lambda p: imwrite(p / "a.tif", np.zeros((8, 8), np.uint64)), "values of 64 bits"),
    "five": (
        lambda p: imwrite(p / "a.tif", np.zeros((8, 8, 5), np.uint8), photometric="rgb"),
        "5 channels",
    ),
    "channels": (
        lambda p: imwrite(
            p / "a.tif", np.zeros((8, 8, 2), np.uint8), photometric="minisblack", planarconfig=1
        ),
        "2 gray channels",
    ),
    "animation": (
        lambda p: save(RGB, p / "a.webp", save_all=True, append_images=[RED]),
        "is an animation",
    ),
    "animation-png": (
        lambda p: save(RGB, p / "a.png", save_all=True, append_images=[RED]),
        "is an animation",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_kinds_are_refused(tmp_path: Path, kind: str) -> None:
    make, message = REFUSED[kind]
    with refused(InputError, message):
        read_image(make(tmp_path))


def test_conversions_are_said(tmp_path: Path) -> None:
    ramp = PIL.Image.fromarray(np.tile(np.arange(0, 256, 17, dtype=np.uint8), (16, 1)))
    colors = save(ramp.convert("P"), tmp_path / "palette.png")
    assert read_image(colors).notes == ("its palette of colors becomes RGB",)
    assert read_image(colors).pixels.shape == (16, 16, 3)
    few = save(ramp, tmp_path / "few.png", bits=4)
    assert read_image(few).notes == ("its 4 bits become 8",)
    np.testing.assert_array_equal(read_image(few).pixels, np.asarray(ramp))
    table = np.arange(768, dtype=np.uint16).reshape(3, 256)
    index = np.arange(64, dtype=np.uint8).reshape(8, 8)
    indexed = imwrite(tmp_path / "table.tif", index, photometric="palette", colormap=table)
    assert read_image(indexed).notes == ("its palette of colors becomes RGB",)
    assert read_image(save(RGB, tmp_path / "plain.png")).notes == ()


def test_what_a_format_leaves_out_is_said(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x010F] = "Maker"
    photo = read_image(save(GRAY, tmp_path / "a.jpg", exif=exif))
    assert images.losses("a.jpg", photo) == ()
    assert images.losses("a.pgm", photo) == ("PGM has no place for EXIF: left out",)
    assert "RGB" in images.losses("a.webp", photo)[0]
    assert images.losses("a.npy", ImageFile(photo.pixels)) == ()


# Too large


def bomb(path: Path, side: int = 30_000) -> Path:
    """A PNG of a few bytes that says it is huge."""
    header = struct.pack(">II", side, side) + bytes([8, 2, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(10_000))), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        data += struct.pack(">I", len(body)) + kind + body
        data += struct.pack(">I", zlib.crc32(kind + body))
    path.write_bytes(data)
    return path


def test_bombs_are_refused_before_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyvips.Image.numpy", lambda image: pytest.fail("it was decoded"))
    with refused(InputError, "30000x30000 pixels", "250 million"):
        read_image(bomb(tmp_path / "a.png"))
    ppm = tmp_path / "a.ppm"
    ppm.write_bytes(b"P6 99999 99999 255 ")
    with refused(InputError, "99999x99999 pixels"):
        read_image(ppm)
    np.save(tmp_path / "a.npy", np.zeros((20, 30)))
    with refused(InputError, "30x20 pixels", "0.0005 million"):
        read_image(tmp_path / "a.npy", max_pixels=500)


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    with refused(FileError, "damaged"):
        read_image(bomb(tmp_path / "a.png", 800), max_pixels=800**2)
    with refused(InputError, "max_pixels (for commands --max-pixels) raises"):
        read_image(bomb(tmp_path / "a.png", 800), max_pixels=800**2 - 1)


def test_a_large_compressed_strip_is_no_bomb(tmp_path: Path) -> None:
    """Libvips would refuse such strips from 50 MB on, but programs write them."""
    pixels = np.zeros((5300, 5000, 2), np.uint8).view(np.uint16)[..., 0]
    path = imwrite(tmp_path / "a.tif", pixels, compression="zlib", rowsperstrip=5300)
    assert read_image(path).pixels.shape == (5300, 5000)


def test_what_pages_lose_is_named_once(tmp_path: Path) -> None:
    named = [[(285, "s", 0, "a name", True)], []]
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for number, tags in enumerate(named):
            page = np.full((8, 9), number, np.uint8)
            file.write(page, metadata=None, description=f"Page {number}", extratags=tags)
    pages = read_pages(tmp_path / "a.tif")
    said = images.losses("a.npy", pages)
    assert said == ("npy has no place for EXIF, PageName: left out",)
