from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import tifffile
from PIL import ImageCms

from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.images import ImageFile, check_format, read_image, write_image

RNG = np.random.default_rng(3)
LOSSLESS = [".png", ".tif", ".tiff"]


def random_pixels(dtype: type, shape: tuple[int, ...] = (13, 17)) -> np.ndarray:
    return RNG.integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)


@pytest.mark.parametrize("suffix", LOSSLESS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(13, 17), (13, 17, 3)])
@pytest.mark.parametrize("with_alpha", [False, True])
def test_lossless_formats_give_back_what_was_written(
    tmp_path: Path, suffix: str, dtype: type, shape: tuple[int, ...], with_alpha: bool
) -> None:
    pixels = random_pixels(dtype, shape)
    alpha = random_pixels(dtype) if with_alpha else None
    path = tmp_path / f"image{suffix}"
    write_image(path, ImageFile(pixels, alpha))
    image = read_image(path)
    assert image.pixels.dtype == dtype
    np.testing.assert_array_equal(image.pixels, pixels)
    if with_alpha:
        np.testing.assert_array_equal(image.alpha, alpha)
    else:
        assert image.alpha is None


@pytest.mark.parametrize("suffix", [".jpg", ".JPEG"])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_is_close(tmp_path: Path, suffix: str, channels: int) -> None:
    ramp = np.tile(np.arange(0, 128, 4, dtype=np.uint8), (16, 1))
    pixels = ramp if channels == 1 else np.dstack([ramp, ramp, ramp])
    path = tmp_path / f"image{suffix}"
    write_image(path, ImageFile(pixels))
    assert path.read_bytes().startswith(b"\xff\xd8\xff")
    np.testing.assert_allclose(read_image(path).pixels, pixels, atol=3)


def test_other_programs_read_the_same_16_bit_values(tmp_path: Path) -> None:
    pixels = random_pixels(np.uint16, (13, 17, 3))
    write_image(tmp_path / "image.tif", ImageFile(pixels))
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "image.tif"), pixels)


def test_format_is_told_by_content_not_name(tmp_path: Path) -> None:
    pixels = random_pixels(np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "image.jpg", format="PNG")
    np.testing.assert_array_equal(read_image(tmp_path / "image.jpg").pixels, pixels)


@pytest.mark.parametrize("name", ["a[page=2].png", "spaß 图.png", "a\nb.png"])
def test_unusual_names(tmp_path: Path, name: str) -> None:
    pixels = random_pixels(np.uint8)
    write_image(tmp_path / name, ImageFile(pixels))
    np.testing.assert_array_equal(read_image(tmp_path / name).pixels, pixels)


@pytest.mark.skipif(sys.platform != "linux", reason="names are plain bytes on Linux only")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.png")
    write_image(path, ImageFile(random_pixels(np.uint8)))
    assert read_image(path).pixels.shape == (13, 17)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    first, second = random_pixels(np.uint8), random_pixels(np.uint8)
    write_image(path, ImageFile(first))
    np.testing.assert_array_equal(read_image(path).pixels, first)
    write_image(path, ImageFile(second))
    np.testing.assert_array_equal(read_image(path).pixels, second)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_metadata_is_kept(tmp_path: Path, suffix: str) -> None:
    source, target = tmp_path / "photo.jpg", tmp_path / f"result{suffix}"
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # orientation
    exif[0x010F] = "Maker"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    PIL.Image.fromarray(random_pixels(np.uint8, (16, 24, 3))).save(
        source, exif=exif, icc_profile=profile, dpi=(300, 300)
    )
    image = read_image(source)
    assert image.pixels.shape == (16, 24, 3)  # as stored: orientation is left to the viewer
    write_image(target, dataclasses.replace(image, pixels=255 - image.pixels))
    with PIL.Image.open(target) as result:
        assert result.getexif()[0x0112] == 6
        if suffix != ".tif":  # libvips writes no EXIF beyond the orientation into TIFF
            assert result.getexif()[0x010F] == "Maker"
        assert result.info["icc_profile"] == profile
        assert result.info["dpi"] == pytest.approx((300, 300), rel=1e-3)


def encoded(folder: Path, suffix: str) -> bytes:
    path = folder / f"whole{suffix}"
    write_image(path, ImageFile(random_pixels(np.uint8, (64, 64, 3))))
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
@pytest.mark.parametrize("share", [0.002, 0.3, 0.6, 0.99])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    whole = encoded(tmp_path, suffix)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole[: max(9, int(share * len(whole)))])
    with pytest.raises(FileError, match="damaged or incomplete"):
        read_image(path)


def test_damaged_png_is_refused(tmp_path: Path) -> None:
    data = bytearray(encoded(tmp_path, ".png"))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with pytest.raises(FileError, match="damaged"):
        read_image(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"hello, this is text", "none of PNG, TIFF, JPEG"), (b"P", "none of")],
)
def test_files_that_are_no_images(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_image(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        read_image(tmp_path / "missing.png")
    with pytest.raises(FileError, match="directory"):
        read_image(tmp_path)


def test_cmyk_float_and_stacks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "image.tif"
    PIL.Image.new("CMYK", (8, 8)).save(path)
    with pytest.raises(InputError, match="cmyk"):
        read_image(path)
    tifffile.imwrite(path, np.zeros((8, 8), np.float32))
    with pytest.raises(InputError, match="float"):
        read_image(path)
    tifffile.imwrite(path, np.zeros((4, 8, 8), np.uint8), photometric="minisblack")
    with pytest.raises(InputError, match="4 pages"):
        read_image(path)


@pytest.mark.parametrize("name", ["image", "image.gif", "image.png.txt", ".png"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="must have one of"):
        check_format(tmp_path / name, ImageFile(random_pixels(np.uint8)))


def test_jpeg_holds_neither_16_bits_nor_alpha(tmp_path: Path) -> None:
    deep = ImageFile(random_pixels(np.uint16))
    transparent = ImageFile(random_pixels(np.uint8), random_pixels(np.uint8))
    for image, message in ((deep, "uint16"), (transparent, "transparency")):
        with pytest.raises(InputError, match=message):
            write_image(tmp_path / "image.jpg", image)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left"):
        write_image(path, ImageFile(random_pixels(np.uint8)))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_suffixes_are_those_of_the_formats() -> None:
    assert set(images.SUFFIXES) == {".png", ".tif", ".tiff", ".jpg", ".jpeg"}
