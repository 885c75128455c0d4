from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import tifffile
from messages import refused
from pictures import noisy_pixels

from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.files.claims import remove_leftovers
from nlnet.images import ImageFile, check_format, read_image, write_image, write_pages

RNG = np.random.default_rng(3)
LOSSLESS = [".png", ".tif", ".tiff", ".npy"]


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


def encoded(folder: Path, suffix: str) -> bytes:
    path = folder / f"whole{suffix}"
    write_image(path, ImageFile(random_pixels(np.uint8, (64, 64, 3))))
    return path.read_bytes()


@pytest.mark.parametrize(
    "suffix", [".png", ".jpg", ".tif", ".webp", ".ppm", ".npy", ".avif", ".gif", ".bmp"]
)
@pytest.mark.parametrize("share", [0.002, 0.3, 0.6, 0.99])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    whole = encoded(tmp_path, suffix)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole[: max(9, int(share * len(whole)))])
    with refused(FileError, "damaged or incomplete"):
        read_image(path)


def test_damaged_png_is_refused(tmp_path: Path) -> None:
    data = bytearray(encoded(tmp_path, ".png"))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with refused(FileError, "damaged"):
        read_image(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello, this is text", "none of PNG, TIFF, JPEG, WebP, AVIF, HEIC"),
        (b"P", "none of"),
        (b"GIF89a", "damaged or incomplete GIF"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000 files are not supported"),
        (b"8BPS\0\1", "PSD files are not supported"),
    ],
)
def test_files_that_are_no_images(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(content)
    with refused(FileError, message):
        read_image(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with refused(FileError, "No such file"):
        read_image(tmp_path / "missing.png")
    with refused(FileError, "directory"):
        read_image(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "image.png")
    with refused(FileError, "not a plain file"):
        read_image(tmp_path / "image.png")


def test_names_that_no_file_can_have() -> None:
    with refused(FileError, "null"):
        read_image("a\0b.png")


@pytest.mark.parametrize("name", ["image", "image.jp2", "image.png.txt", ".png"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with refused(InputError, "must", "one of"):
        check_format(tmp_path / name, ImageFile(random_pixels(np.uint8)))


@pytest.mark.parametrize(
    ("name", "image", "message"),
    [
        ("a.jpg", ImageFile(random_pixels(np.uint16)), "JPEG cannot hold uint16 values; write PNG"),
        ("a.jpg", ImageFile(random_pixels(np.uint16)), "or convert it with --depth 8"),
        (
            "a.jpg",
            ImageFile(random_pixels(np.uint16), random_pixels(np.uint16)),
            "or convert it with --depth 8 --background white",
        ),
        (
            "a.jpg",
            ImageFile(random_pixels(np.uint8), random_pixels(np.uint8)),
            "JPEG cannot hold transparency; write PNG or TIFF or WebP or BMP or npy instead, "
            "or convert it with --background white",
        ),
        ("a.png", ImageFile(np.zeros((8, 8), np.float32)), "float32 values; write TIFF or npy"),
        ("a.png", ImageFile(np.zeros((8, 8))), "PNG cannot hold float64 values; write TIFF or npy"),
        ("a.png", ImageFile(np.zeros((8, 8), np.int16)), "int16 values; write TIFF or npy instead"),
        ("a.webp", ImageFile(random_pixels(np.uint16)), "WebP cannot hold uint16"),
        ("a.pgm", ImageFile(random_pixels(np.uint8, (8, 8, 3))), "PGM cannot hold color images"),
        ("a.ppm", ImageFile(random_pixels(np.uint8)), "PPM cannot hold gray images"),
        ("a.webp", ImageFile(np.zeros((1, 16384), np.uint8)), "sides of 16384 pixels"),
    ],
)
def test_what_formats_cannot_hold(
    tmp_path: Path, name: str, image: ImageFile, message: str
) -> None:
    with refused(InputError, message):
        write_image(tmp_path / name, image)
    assert list(tmp_path.iterdir()) == []


def test_stacks_need_a_format_for_them(tmp_path: Path) -> None:
    pages = [ImageFile(random_pixels(np.uint8))] * 3
    with refused(InputError, "stacks (3 pages)", "write TIFF or npy"):
        write_pages(tmp_path / "a.png", pages)


def test_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refused(FileError, "No space left"):
        write_image(path, ImageFile(random_pixels(np.uint8)))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_final_name_is_that_of_a_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, renamed = tmp_path / "image.npy", []

    def rename(source: Path, target: Path) -> None:
        assert not path.exists()
        assert np.load(source).shape == (13, 17)
        renamed.append(target)

    monkeypatch.setattr(os, "replace", rename)
    write_image(path, ImageFile(random_pixels(np.uint8)))
    assert renamed == [path]
    assert not path.exists()


def test_the_suffixes_are_those_of_the_formats() -> None:
    assert set(images.SUFFIXES) == {
        *(".png", ".tif", ".tiff", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".bmp"),
        *(".pgm", ".ppm", ".pnm", ".npy", ".npz", ".fits", ".fit", ".fts"),
        *(".heic", ".heif", ".hif", ".jxl"),
    }


def test_leftovers_of_killed_writers_are_removed_when_they_are_old(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".nlnet-a.tmp", ".nlnet-b.tmp", "c.tmp"))
    for path in (old, young, other):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    remove_leftovers(tmp_path)
    assert set(tmp_path.iterdir()) == {young, other}


# In memory


def test_bytes_are_read_and_written_as_files_are(tmp_path: Path) -> None:
    image = ImageFile(random_pixels(np.uint16, (13, 17, 3)), random_pixels(np.uint16))
    for suffix in (".png", ".tif", ".npy"):
        data = images.encode(image, suffix)
        assert images.suffix_of(data, "upload") == suffix
        back = images.decode(data, "upload")
        np.testing.assert_array_equal(back.pixels, image.pixels)
        np.testing.assert_array_equal(back.alpha, image.alpha)
    with refused(FileError, "'upload'", "a damaged"):
        images.decode(data[:100], "upload")


OPENS = """
import subprocess
import sys
opened = []
sys.addaudithook(lambda event, about: event == "open" and opened.append(str(about[0])))
from nlnet.cli import main
assert main(["denoise", sys.argv[1], "-o", sys.argv[2], "--sigma", "20"]) == 0
print(opened.count(sys.argv[1]))
"""


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp", ".npy"])
def test_a_file_is_opened_twice(tmp_path: Path, suffix: str) -> None:
    """Once to be recognized, together with its metadata, and once to be decoded.

    libvips gets the open file: what it opens itself would not be seen here.
    """
    write_image(tmp_path / f"in{suffix}", ImageFile(noisy_pixels(np.uint8)))
    names = [str(tmp_path / f"{name}{suffix}") for name in ("in", "out")]
    command = [sys.executable, "-c", OPENS, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) == 2
