"""Files on their way through ``nlnet denoise``: what must be kept is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from messages import refused
from pictures import DenoiseFile, noisy_pixels

import nlnet
from nlnet.images import ImageFile, losses, read_image, read_pages, write_image, write_pages

# Depth, channels, alpha

HELD = [
    (".png", np.uint8, (1, 2, 3, 4)),
    (".png", np.uint16, (1, 2, 3, 4)),
    (".tif", np.uint8, (1, 2, 3, 4)),
    (".tif", np.uint16, (1, 2, 3, 4)),
    (".tif", np.float32, (1, 2, 3, 4)),
    (".webp", np.uint8, (3, 4)),
    (".jpg", np.uint8, (1, 3)),
    (".pgm", np.uint8, (1,)),
    (".pgm", np.uint16, (1,)),
    (".ppm", np.uint8, (3,)),
    (".ppm", np.uint16, (3,)),
    (".npy", np.uint8, (1, 2, 3, 4)),
    (".npy", np.float64, (1, 3)),
]


@pytest.mark.parametrize(
    ("suffix", "dtype", "channels"),
    [(suffix, dtype, count) for suffix, dtype, counts in HELD for count in counts],
)
def test_depth_channels_and_alpha_are_kept(
    denoise_file: DenoiseFile, tmp_path: Path, suffix: str, dtype: type, channels: int
) -> None:
    bands = noisy_pixels(dtype, channels)
    pixels = bands if channels == 1 else bands[..., 0] if channels == 2 else bands[..., :3]
    alpha = bands[..., -1] if channels in (2, 4) else None
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    write_image(source, ImageFile(pixels, alpha))
    given = read_image(source).pixels  # of JPEG, what is left after its compression
    result = denoise_file(source, target)
    back = read_image(target)
    assert result.dtype == dtype
    assert result.shape == pixels.shape
    np.testing.assert_array_equal(back.alpha, alpha)
    spread = given.astype(float).std()
    assert 0 < result.astype(float).std() < 0.9 * spread
    assert result.mean() == pytest.approx(given.mean(), rel=0.01)


def test_16_bit_rgba_png_of_another_program(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    """Made by OpenCV, read back by OpenCV: neither knows of libvips."""
    cv2 = pytest.importorskip("cv2")
    bands = noisy_pixels(np.uint16, 4)
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    cv2.imwrite(str(source), bands)  # BGRA
    denoise_file(source, target)
    result = cv2.imread(str(target), cv2.IMREAD_UNCHANGED)
    assert (result.dtype, result.shape) == (np.uint16, bands.shape)
    np.testing.assert_array_equal(result[..., 3], bands[..., 3])
    assert result[..., :3].std() < 0.9 * bands[..., :3].std()


def test_float_values_above_white_stay(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    pixels = noisy_pixels(np.float32, 3)
    pixels[8:16, 8:16] += 4
    pixels[16:20] -= 1
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(source, pixels, photometric="rgb")
    denoise_file(source, target)
    result = tifffile.imread(target)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result[10:14, 10:14].mean(), pixels[10:14, 10:14].mean(), rtol=0.02)
    assert result[17:19].min() < -0.4


def test_the_pages_of_a_stack_are_denoised_each_on_its_own(
    denoise_file: DenoiseFile, tmp_path: Path, gray_model_file: Path
) -> None:
    stack = np.stack([noisy_pixels(np.uint16, seed=seed) for seed in range(3)])
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(source, stack, imagej=True, resolution=(2.5, 2.5), metadata={"axes": "ZYX"})
    denoise_file(source, target)
    with tifffile.TiffFile(target) as file:
        result = file.asarray()
        assert len(file.pages) == 3
        assert file.imagej_metadata is not None
        assert file.imagej_metadata["slices"] == 3
        assert file.pages[0].resolution == pytest.approx((2.5, 2.5))
    sigma = 25 * 257
    expected = np.stack([nlnet.denoise(page, sigma, model=gray_model_file) for page in stack])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(3, 24, 32), (1, 24, 32), (2, 24, 32, 3), (24, 32)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_their_shape(
    denoise_file: DenoiseFile, tmp_path: Path, shape: tuple[int, ...], order: Any
) -> None:
    array = np.random.default_rng(0).normal(0.5, 0.1, shape)
    np.save(tmp_path / "in.npy", np.array(array, ">f8", order=order))
    denoise_file(tmp_path / "in.npy", tmp_path / "out.npy")
    result = np.load(tmp_path / "out.npy")
    assert (result.shape, result.dtype) == (shape, np.dtype(">f8"))
    assert result.std() < 0.9 * array.std()


def test_color_stacks_and_stacks_in_other_formats(tmp_path: Path) -> None:
    pages = [
        ImageFile(noisy_pixels(np.uint8, 3, seed), noisy_pixels(np.uint8)) for seed in range(3)
    ]
    for name in ("a.tif", "a.npy"):
        write_pages(tmp_path / name, pages)
        back = read_pages(tmp_path / name)
        assert len(back) == 3
        for page, given in zip(back, pages, strict=True):
            np.testing.assert_array_equal(page.pixels, given.pixels)
            np.testing.assert_array_equal(page.alpha, given.alpha)
        np.testing.assert_array_equal(back[-1].pixels, pages[-1].pixels)
        assert len(back[1:]) == 2
        with pytest.raises(IndexError):
            back[3]


def test_pages_of_different_sizes_are_refused(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(np.zeros((9, 8), np.uint8))
        file.write(np.zeros((5, 6), np.uint8))
    with refused(nlnet.InputError, "pages of different sizes"):
        read_pages(tmp_path / "a.tif")


# Depths that the file states itself


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("white", "dtype"), [(100, np.uint8), (4095, np.uint16)])
def test_the_white_of_pgm_files_is_kept(
    denoise_file: DenoiseFile, tmp_path: Path, plain: bool, white: int, dtype: type
) -> None:
    pixels = np.rint(noisy_pixels(np.float32) * white).astype(dtype)
    header = f"P{2 if plain else 5}\n# made by hand\n32 24 # size\n{white}\n".encode()
    stored = pixels.astype(np.uint8 if white < 256 else ">u2").tobytes()
    words = " ".join(map(str, pixels.ravel().tolist())).encode()
    (tmp_path / "in.pgm").write_bytes(header + (words if plain else stored))
    image = read_image(tmp_path / "in.pgm")
    assert image.data_range == white
    np.testing.assert_array_equal(image.pixels, pixels)
    result = denoise_file(tmp_path / "in.pgm", tmp_path / "out.pgm")
    assert (tmp_path / "out.pgm").read_bytes().startswith(f"P5\n32 24\n{white}\n".encode())
    assert result.dtype == dtype
    with PIL.Image.open(tmp_path / "out.pgm") as other:
        assert other.size == (32, 24)


@pytest.mark.parametrize(
    "content",
    [
        b"P5 4 4 255 " + bytes(15),
        b"P5 4 4 100 " + bytes(15) + b"\xff",
        b"P5 0 4 255 ",
        b"P5 4 4 65536 " + bytes(99),
        b"P5 4 4 0 " + bytes(99),
        b"P5 4 4",
        b"P5 99999999999999999999 4 255 ",
        b"P2 2 2 255 1 2 3",
        b"P2 2 2 255 1 2 3 x ",
        b"P2 2 2 255 1 2 3 -4 ",
        b"P2 2 2 255 1 2 3 4444 ",
        b"P6 4 #" + bytes(5000),
    ],
)
def test_wrong_pgm_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pgm").write_bytes(content)
    with refused(nlnet.FileError, "damaged or incomplete PGM or PPM file"):
        read_image(tmp_path / "a.pgm")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((8, 8), np.int64), "int64 values"),
        (np.zeros((8, 8), bool), "bool values"),
        (np.zeros(8), "shape (8,)"),
        (np.zeros((2, 2, 8, 8, 3)), "shape"),
        (np.zeros((0, 8)), "shape"),
    ],
)
def test_other_arrays(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with refused(nlnet.InputError, message):
        read_image(tmp_path / "a.npy")


@pytest.mark.parametrize("shape", ["(-1, 8)", "(8, -8)", "(2, -8, 8, 3)", "(-4, -8, 8)"])
def test_arrays_with_less_than_nothing(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    start = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little")
    (tmp_path / "a.npy").write_bytes(start + header + bytes(500))
    with refused(nlnet.FileError, "damaged or incomplete npy file"):
        read_image(tmp_path / "a.npy")


@pytest.mark.parametrize("dtype", ["<u2", ">u2", "<f4", ">f8", ">i4"])
def test_arrays_keep_their_byte_order(tmp_path: Path, dtype: str) -> None:
    array = (noisy_pixels(np.float32) * 1000).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    write_image(tmp_path / "b.npy", read_image(tmp_path / "a.npy"))
    back = np.load(tmp_path / "b.npy")
    assert back.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(back, array)
    assert losses(tmp_path / "c.tif", read_image(tmp_path / "a.npy")) == ()


def test_the_names_of_the_package() -> None:
    assert nlnet.read_image is read_image
    assert nlnet.read_pages is read_pages
    assert nlnet.write_image is write_image
    assert nlnet.write_pages is write_pages
    assert {"read_image", "read_pages", "write_image", "write_pages"} <= set(nlnet.__all__)


def test_objects_in_arrays_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[print, None]] * 9, dtype=object), allow_pickle=True)
    with pytest.raises(nlnet.NLNetError):
        read_image(tmp_path / "a.npy")
