"""EXIF, color profile, resolution and orientation on their way through ``nlnet denoise``."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from pictures import DenoiseFile, noisy_pixels
from PIL import ImageOps

from nlnet.images import exif, read_image, write_image


def adobe_rgb() -> bytes:
    """A profile with the primaries and the gamma of Adobe RGB (1998)."""

    def xyz(*values: float) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(struct.pack(">i", round(v * 65536)) for v in values)

    text = b"Adobe RGB (1998), for a test"
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(2.19921875 * 256)) + b"\0\0"
    description = b"desc\0\0\0\0" + struct.pack(">I", len(text) + 1) + text + bytes(79)
    tags = {
        b"desc": description + bytes(-len(description) % 4),
        b"cprt": b"text\0\0\0\0none\0\0\0\0",
        b"wtpt": xyz(0.9505, 1.0, 1.0891),
        b"rXYZ": xyz(0.6097, 0.3111, 0.0195),
        b"gXYZ": xyz(0.2053, 0.6257, 0.0609),
        b"bXYZ": xyz(0.1492, 0.0632, 0.7446),
        **dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve),
    }
    table, body = struct.pack(">I", len(tags)), b""
    start = 132 + 12 * len(tags)
    for name, data in tags.items():
        table += name + struct.pack(">II", start + len(body), len(data))
        body += data
    header = struct.pack(">I4sI", start + len(body), b"none", 0x02100000) + b"mntrRGB XYZ "
    header = header.ljust(36, b"\0") + b"acsp"
    header = header.ljust(68, b"\0") + struct.pack(">iii", 63190, 65536, 54061)
    return header.ljust(128, b"\0") + table + body


def full_exif(orientation: int = 6) -> PIL.Image.Exif:
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F], exif[0x0110], exif[0x8298] = "Maker", "Model 5", "(c) somebody"
    inner = exif.get_ifd(0x8769)
    inner[0x829A], inner[0x8827], inner[0x9003] = (1, 125), 400, "2020:01:02 03:04:05"
    inner[0x927C] = bytes(range(256)) * 3  # the maker's own notes, binary
    inner[0xA434] = "Lens 50 mm"
    place = exif.get_ifd(0x8825)
    place[1], place[2] = "N", (48.0, 12.0, 30.5)
    return exif


def exif_of(path: Path) -> dict[str, Any]:
    with PIL.Image.open(path) as image:
        exif = image.getexif()
        outer = {tag: exif[tag] for tag in (0x0112, 0x010F, 0x0110, 0x8298) if tag in exif}
        inner, place = exif.get_ifd(0x8769), exif.get_ifd(0x8825)
        wanted = {tag: inner[tag] for tag in full_exif().get_ifd(0x8769) if tag in inner}
    return {"outer": outer, "inner": wanted, "place": dict(place)}


@pytest.mark.parametrize("target", [".jpg", ".png", ".webp", ".tif"])
@pytest.mark.parametrize("origin", [".jpg", ".png", ".webp", ".tif"])
def test_exif_profile_and_resolution_are_kept(
    denoise_file: DenoiseFile, tmp_path: Path, origin: str, target: str
) -> None:
    source, result = tmp_path / f"in{origin}", tmp_path / f"out{target}"
    options: dict[str, Any] = {"exif": full_exif(), "icc_profile": adobe_rgb(), "dpi": (300, 300)}
    # Pillow writes no inner directories into TIFF files, so there the first is one of ours.
    photo = tmp_path / ("photo.jpg" if origin == ".tif" else source.name)
    PIL.Image.fromarray(noisy_pixels(np.uint8, 3)).save(photo, **options)
    given = exif_of(photo)
    assert given["inner"]
    assert given["place"]
    if origin == ".tif":
        write_image(source, read_image(photo))
        assert exif_of(source) == given
    pixels = denoise_file(source, result)
    assert pixels.shape == (24, 32, 3)  # as stored: orientation is left to the viewer
    assert exif_of(result) == given
    with PIL.Image.open(result) as image:
        assert image.mode == "RGB"
        assert image.info["icc_profile"] == adobe_rgb()
        if ".webp" not in (origin, target):  # it has no field for the resolution
            assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)


def test_gray_stays_gray_with_its_metadata(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    for suffix in (".jpg", ".png", ".tif"):
        source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
        PIL.Image.fromarray(noisy_pixels(np.uint8)).save(source, exif=full_exif(3), dpi=(72, 72))
        denoise_file(source, target)
        with PIL.Image.open(target) as image:
            assert image.mode == "L"
            assert image.getexif()[0x0112] == 3


def test_big_tiff_and_big_endian(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    pixels = noisy_pixels(np.uint16)
    for options in ({"bigtiff": True}, {"byteorder": ">"}, {"bigtiff": True, "byteorder": ">"}):
        tags = [(271, "s", 0, "Maker", True), (33432, "s", 0, "somebody", True)]
        source = tmp_path / "in.tif"
        tifffile.imwrite(source, pixels, extratags=tags, **options)
        (tmp_path / "out.tif").unlink(missing_ok=True)
        denoise_file(source, tmp_path / "out.tif")
        with tifffile.TiffFile(tmp_path / "out.tif") as file:
            assert file.pages[0].tags[271].value == "Maker"
            assert file.pages[0].tags[33432].value == "somebody"
            assert file.pages[0].shape == pixels.shape


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright(tmp_path: Path, orientation: int) -> None:
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    image = read_image(tmp_path / "a.png")

    with PIL.Image.open(tmp_path / "a.png") as other:
        expected = np.asarray(ImageOps.exif_transpose(other))
    np.testing.assert_array_equal(image.upright(image.pixels), expected)


@pytest.mark.parametrize("damage", ["cut", "loop", "random", "empty"])
def test_damaged_exif_is_left_out(tmp_path: Path, damage: str) -> None:
    """The image matters more: it is read and written without."""
    exif = bytearray(full_exif().tobytes())
    pointer = struct.pack(">HHI", 0x8769, 4, 1)
    place = exif.index(pointer) + len(pointer)
    if damage == "loop":
        exif[place : place + 4] = struct.pack(">I", 8)
    elif damage == "random":
        exif[20:60] = np.random.default_rng(0).bytes(40)
    else:
        del exif[60 if damage == "cut" else 14 :]
    stream = io.BytesIO()
    PIL.Image.fromarray(noisy_pixels(np.uint8, 3)).save(stream, "jpeg", exif=bytes(exif))
    (tmp_path / "a.jpg").write_bytes(stream.getvalue())
    image = read_image(tmp_path / "a.jpg")
    write_image(tmp_path / "a.tif", image)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), image.pixels)


def test_exif_is_cut_out_of_tiff_files(tmp_path: Path) -> None:
    PIL.Image.fromarray(noisy_pixels(np.uint8)).save(tmp_path / "a.jpg", exif=full_exif())
    photo = read_image(tmp_path / "a.jpg")
    write_image(tmp_path / "a.tif", photo)
    cut = read_image(tmp_path / "a.tif").metadata.exif
    assert cut is not None
    found = PIL.Image.Exif()
    found.load(cut)
    assert (found[0x010F], found[0x0112]) == ("Maker", 6)
    assert found.get_ifd(0x8769)[0xA434] == "Lens 50 mm"
    upright = PIL.Image.Exif()
    upright.load(exif.set_upright(cut))
    assert upright[0x0112] == 1
    assert len(exif.set_upright(cut)) == len(cut)


def test_a_directory_inside_itself_in_a_tiff_file(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "a.tif", noisy_pixels(np.uint8), extratags=[(34665, "I", 1, 8, True)]
    )
    assert read_image(tmp_path / "a.tif").pixels.shape == (24, 32)
