"""BMP, GIF and AVIF files."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from messages import refused
from pictures import DenoiseFile, noisy_pixels
from test_image_metadata import adobe_rgb

from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.images import ImageFile, read_image, write_image

# BMP


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("width", [31, 32])
def test_bmp_as_pillow_writes_and_reads_it(tmp_path: Path, channels: int, width: int) -> None:
    pixels = noisy_pixels(np.uint8, channels)[:, :width]
    photo = PIL.Image.fromarray(pixels)
    photo.save(tmp_path / "a.bmp", dpi=(300, 300))
    image = read_image(tmp_path / "a.bmp")
    np.testing.assert_array_equal(image.pixels, pixels[..., :3] if channels == 4 else pixels)
    if channels == 4:  # Pillow writes the old header, in which the fourth byte means nothing
        assert image.alpha is None
        image = ImageFile(pixels[..., :3], pixels[..., 3], image.metadata)
    write_image(tmp_path / "b.bmp", image)
    with PIL.Image.open(tmp_path / "b.bmp") as other:
        assert other.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        np.testing.assert_array_equal(np.asarray(other), pixels)
    back = read_image(tmp_path / "b.bmp")
    np.testing.assert_array_equal(back.pixels, image.pixels)
    np.testing.assert_array_equal(back.alpha, image.alpha)


def test_bmp_from_top_to_bottom_and_with_colors_in_a_palette(tmp_path: Path) -> None:
    palette = PIL.Image.fromarray(noisy_pixels(np.uint8, 3)).quantize(200)
    palette.save(tmp_path / "a.bmp")
    image = read_image(tmp_path / "a.bmp")
    np.testing.assert_array_equal(image.pixels, np.asarray(palette.convert("RGB")))
    assert image.notes == ("its palette of colors becomes RGB",)
    data = bytearray((tmp_path / "a.bmp").read_bytes())
    data[22:26] = struct.pack("<i", -24)
    (tmp_path / "b.bmp").write_bytes(data)
    np.testing.assert_array_equal(read_image(tmp_path / "b.bmp").pixels, image.pixels[::-1])


def test_bmp_of_other_kinds(tmp_path: Path) -> None:
    PIL.Image.new("1", (8, 8)).save(tmp_path / "a.bmp")
    with refused(InputError, "BMP file of 1 bits per pixel"):
        read_image(tmp_path / "a.bmp")
    PIL.Image.new("L", (8, 8)).save(tmp_path / "b.bmp")
    data = bytearray((tmp_path / "b.bmp").read_bytes())
    data[30] = 1  # run lengths
    (tmp_path / "b.bmp").write_bytes(data)
    with refused(InputError, "8 bits per pixel and kind 1"):
        read_image(tmp_path / "b.bmp")
    data[14] = 12
    (tmp_path / "b.bmp").write_bytes(data)
    with refused(InputError, "header of 12 bytes"):
        read_image(tmp_path / "b.bmp")
    data[14], data[30], data[18:22] = 40, 0, struct.pack("<i", -8)
    (tmp_path / "b.bmp").write_bytes(data)
    with refused(FileError, "damaged or incomplete BMP"):
        read_image(tmp_path / "b.bmp")
    data[18:22], data[46:50] = struct.pack("<i", 8), struct.pack("<I", 2)
    data[54 + 1024] = 9
    (tmp_path / "b.bmp").write_bytes(data)
    with refused(FileError, "palette", "too short"):
        read_image(tmp_path / "b.bmp")


# GIF


def test_gif(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    gray = noisy_pixels(np.uint8)
    PIL.Image.fromarray(gray).save(tmp_path / "gray.gif")
    image = read_image(tmp_path / "gray.gif")
    np.testing.assert_array_equal(image.pixels, gray)
    assert image.notes == ()
    result = denoise_file(tmp_path / "gray.gif", tmp_path / "out.gif")
    assert result.ndim == 2
    colors = PIL.Image.fromarray(noisy_pixels(np.uint8, 3)).quantize(100)
    colors.save(tmp_path / "color.gif")
    image = read_image(tmp_path / "color.gif")
    np.testing.assert_array_equal(image.pixels, np.asarray(colors.convert("RGB")))
    assert image.notes == ("its palette of colors becomes RGB",)
    assert images.losses("a.gif", image) == ("GIF has 256 colors at most, so colors are rounded",)
    half = ImageFile(gray, np.full_like(gray, 128))
    assert "half-transparent" in images.losses("a.gif", half)[0]


def test_animations_are_not_cut(tmp_path: Path) -> None:
    frames = [PIL.Image.fromarray(noisy_pixels(np.uint8, seed=seed)) for seed in range(3)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    with refused(InputError, "an animation of 3 frames,", "pages of a TIFF file"):
        read_image(tmp_path / "a.gif")


# AVIF


def test_sequences_are_not_cut(tmp_path: Path) -> None:
    frames = [PIL.Image.fromarray(noisy_pixels(np.uint8, 3, seed)) for seed in range(3)]
    frames[0].save(tmp_path / "a.avif", save_all=True, append_images=frames[1:])
    with refused(InputError, "is an animation", "a single image"):
        read_image(tmp_path / "a.avif")


@pytest.mark.parametrize("channels", [3, 4])
def test_avif(tmp_path: Path, channels: int) -> None:
    bands = noisy_pixels(np.uint8, channels)
    image = ImageFile(bands[..., :3], bands[..., 3] if channels == 4 else None)
    write_image(tmp_path / "a.avif", image)
    back = read_image(tmp_path / "a.avif")
    np.testing.assert_array_equal(back.pixels, image.pixels)
    np.testing.assert_array_equal(back.alpha, image.alpha)
    assert back.metadata is not None
    assert back.metadata.exif is None


def test_avif_of_more_bits(tmp_path: Path) -> None:
    image = ImageFile(noisy_pixels(np.uint16, 3))
    assert images.losses("a.avif", image) == ("AVIF has 12 bits at most, so values are rounded",)
    write_image(tmp_path / "a.avif", image)
    back = read_image(tmp_path / "a.avif")
    assert back.pixels.dtype == np.uint16
    assert np.abs(back.pixels.astype(int) - image.pixels).max() <= 16
    write_image(tmp_path / "b.avif", back)
    np.testing.assert_array_equal(read_image(tmp_path / "b.avif").pixels, back.pixels)


def test_avif_is_upright_and_keeps_exif_and_profile(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Maker"
    profile = adobe_rgb()
    stream = io.BytesIO()
    photo = PIL.Image.fromarray(noisy_pixels(np.uint8, 3))
    photo.save(stream, "png", exif=exif, icc_profile=profile)
    image = images.decode(stream.getvalue(), "a.png")
    write_image(tmp_path / "a.avif", image)
    back = read_image(tmp_path / "a.avif")
    np.testing.assert_array_equal(back.pixels, image.upright(image.pixels))
    assert back.metadata is not None
    assert back.metadata.orientation == 1
    assert back.metadata.icc == profile
    assert image.metadata is not None
    assert image.metadata.exif is not None
    upright = image.metadata.exif.replace(b"\1\x12\0\3\0\0\0\1\0\6", b"\1\x12\0\3\0\0\0\1\0\1")
    assert upright != image.metadata.exif
    assert (back.metadata.exif or b"").rstrip(b"\0") == upright.rstrip(b"\0")  # nothing invented
    write_image(tmp_path / "b.jpg", back)
    with PIL.Image.open(tmp_path / "b.jpg") as other:
        assert other.getexif().get(0x0112, 1) == 1
        assert other.getexif()[0x010F] == "Maker"


def test_gray_avif_is_said_to_become_rgb() -> None:
    image = ImageFile(noisy_pixels(np.uint8))
    assert images.losses("a.avif", image) == ("AVIF has no gray images, so it is written as RGB",)
