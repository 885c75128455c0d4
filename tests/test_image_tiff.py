"""TIFF files: what each page says stays with it, in every depth and byte order."""

from __future__ import annotations

import io
import lzma
import struct
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import pyvips
import tifffile
from messages import refused
from pictures import DenoiseFile, noisy_pixels

from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.images import (
    ImageFile,
    read_image,
    read_pages,
    tiff_writing,
    write_image,
    write_pages,
)

ASCII, SHORT, LONG, DOUBLE, BYTES = 2, 3, 4, 12, 1


def test_every_page_keeps_its_own_entries(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    with tifffile.TiffWriter(source) as file:
        for page in range(3):
            file.write(
                noisy_pixels(np.uint8, seed=page),
                description=f"page {page}",
                resolution=(100 + page, 200 + page),
                resolutionunit="CENTIMETER",
                datetime=f"2020:01:0{page + 1} 03:04:05",
                extratags=[(285, ASCII, 0, f"name {page}", True)],
                metadata=None,
                contiguous=False,
            )
    denoise_file(source, target)
    with tifffile.TiffFile(target) as file:
        assert len(file.pages) == 3
        for page, tags in enumerate(page.tags for page in file.pages):
            assert tags["ImageDescription"].value == f"page {page}"
            assert tags["DateTime"].value == f"2020:01:0{page + 1} 03:04:05"
            assert tags["PageName"].value == f"name {page}"
            assert tags["XResolution"].value == (100 + page, 1)
            assert tags["YResolution"].value == (200 + page, 1)
            assert tags["ResolutionUnit"].value == 3


GEO = {
    33550: (DOUBLE, 3, (0.5, 0.5, 0.0)),
    33922: (DOUBLE, 6, (0.0, 0.0, 0.0, 440720.0, 3751320.0, 0.0)),
    34735: (SHORT, 4, (1, 1, 0, 0)),
    34737: (ASCII, 0, "WGS 84|"),
    42113: (ASCII, 0, "-9999"),
    65000: (LONG, 2, (7, 70000)),
}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("big", [False, True])
def test_private_entries_are_kept_or_named(
    denoise_file: DenoiseFile, tmp_path: Path, order: Any, big: bool
) -> None:
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    extra = [(tag, *value, True) for tag, value in GEO.items()]
    tifffile.imwrite(source, noisy_pixels(np.uint16), byteorder=order, bigtiff=big, extratags=extra)
    denoise_file(source, target)
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert (after.byteorder, after.is_bigtiff) == (order, big)
        for tag in GEO:
            assert after.pages[0].tags[tag].value == before.pages[0].tags[tag].value
    (said,) = images.losses("a.png", read_image(source))
    assert said == "PNG has no place for GeoTIFF tags, TIFF tag 65000: left out"
    assert images.losses("a.tif", read_image(source)) == ()


@pytest.mark.parametrize("order", ["<", ">"])
def test_luts_and_overlays_of_imagej_are_kept(
    denoise_file: DenoiseFile, tmp_path: Path, order: Any
) -> None:
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    table = np.arange(768, dtype=np.uint8).reshape(3, 256)
    stack = np.stack([noisy_pixels(np.uint16, seed=seed) for seed in range(2)])
    described = {"axes": "ZYX", "LUTs": [table], "Labels": ["first", "second"]}
    tifffile.imwrite(source, stack, imagej=True, byteorder=order, metadata=described)
    denoise_file(source, target)
    with tifffile.TiffFile(target) as file:
        assert file.imagej_metadata is not None
        assert file.imagej_metadata["Labels"] == ["first", "second"]
        np.testing.assert_array_equal(np.ravel(file.imagej_metadata["LUTs"]), table.ravel())
    page = read_pages(source)[0]
    assert images.losses("a.webp", page)[-1].count("ImageJ's LUTs and overlays") == 1


def test_sub_images_and_layers_are_named(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        layers = [(37724, 7, 8, b"8BIMLayr", True)]
        file.write(noisy_pixels(np.uint8), subifds=1, extratags=layers)
        file.write(noisy_pixels(np.uint8)[::2, ::2].copy())  # not said to be a smaller version
    notes = read_image(tmp_path / "a.tif").notes
    assert notes == ("left out, as they do not fit the new file: sub-images, Photoshop layers",)


def test_ome_descriptions_fit_the_values(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.ome.tif", noisy_pixels(np.uint16), metadata={"axes": "YX"})
    image = read_image(tmp_path / "a.ome.tif")
    write_image(tmp_path / "b.ome.tif", image)
    with tifffile.TiffFile(tmp_path / "b.ome.tif") as file:
        assert file.is_ome
    shallow = images.WritingOptions(depth="uint8")
    expected = "its OME description is left out, as it names another depth"
    assert images.losses("c.tif", image, shallow) == (expected,)
    write_image(tmp_path / "c.ome.tif", image, shallow)
    with tifffile.TiffFile(tmp_path / "c.ome.tif") as file:
        assert not file.is_ome


def test_a_long_description_leaves_room_for_the_rest(tmp_path: Path) -> None:
    tags = [(271, ASCII, 0, "Maker", True)]
    pixels = noisy_pixels(np.uint8)
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, description="x" * 70_000, extratags=tags, metadata=None)
    image = read_image(path)
    expected = "JPEG has no place for the long description: left out"
    assert images.losses("a.jpg", image) == (expected,)
    with PIL.Image.open(io.BytesIO(images.encode(image, ".jpg"))) as photo:
        assert photo.getexif()[271] == "Maker"


def test_two_descriptions_are_both_kept(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    """So tifffile writes what the user says and what it says itself."""
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    described = {"axes": "YX", "channel": "green"}
    tifffile.imwrite(source, noisy_pixels(np.uint8), description="mine", metadata=described)
    denoise_file(source, target)
    with tifffile.TiffFile(target) as file:
        assert file.pages[0].description == "mine"
        assert file.shaped_metadata is not None
        assert file.shaped_metadata[0]["channel"] == "green"


# Depths

DTYPES = ["uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64"]


def random_values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    values = np.random.default_rng(3).normal(0, 1000, shape)
    return (np.abs(values) if dtype.startswith("u") else values).astype(dtype)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("suffix", [".tif", ".npy"])
def test_depths_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, channels: int, suffix: str
) -> None:
    monkeypatch.setattr(tiff_writing, "_STRIP_BYTES", 2**11)  # several strips, the last one shorter
    bands = random_values(dtype, (41, 53, channels))
    pixels = bands[..., 0] if channels < 3 else bands[..., :3]
    image = ImageFile(pixels, bands[..., -1] if channels in (2, 4) else None)
    write_pages(tmp_path / f"a{suffix}", [image, image])
    for page in read_pages(tmp_path / f"a{suffix}"):
        assert page.pixels.dtype == dtype
        np.testing.assert_array_equal(page.pixels, image.pixels)
        np.testing.assert_array_equal(page.alpha, image.alpha)
    if suffix == ".tif":
        other = tifffile.imread(tmp_path / "a.tif", key=1)
        np.testing.assert_array_equal(other.reshape(41, 53, -1), bands.reshape(41, 53, -1))
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            assert len(file.pages[0].dataoffsets) > 1


@pytest.mark.parametrize("dtype", ["int16", "uint32", "float16", "float64"])
def test_depths_of_other_programs(tmp_path: Path, dtype: str) -> None:
    for options in ({}, {"byteorder": ">"}, {"compression": "zlib"}, {"tile": (32, 48)}):
        for shape in ((70, 81), (70, 81, 3)):
            values = random_values(dtype, shape)
            photometric = "rgb" if len(shape) == 3 else "minisblack"
            tifffile.imwrite(tmp_path / "a.tif", values, photometric=photometric, **options)
            page = read_image(tmp_path / "a.tif")
            assert page.pixels.dtype == dtype
            np.testing.assert_array_equal(page.pixels, values)


def test_planes_of_doubles(tmp_path: Path) -> None:
    values = random_values("float64", (3, 40, 50))
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="rgb", planarconfig="separate")
    page = read_image(tmp_path / "a.tif")
    np.testing.assert_array_equal(page.pixels, np.moveaxis(values, 0, 2))


@pytest.mark.parametrize("place", ["sizes", "short", "garbage"])
def test_damaged_doubles(tmp_path: Path, place: str) -> None:
    path = tmp_path / "a.tif"
    write_image(path, ImageFile(random_values("float64", (60, 50))))
    data = bytearray(path.read_bytes())
    if place == "short":
        del data[9:5000]
    elif place == "garbage":
        data[8:200] = bytes(192)
    else:
        with tifffile.TiffFile(path) as file:
            at = file.pages[0].tags[279].valueoffset
        data[at : at + 4] = bytes(4)
    path.write_bytes(data)
    with refused(FileError, "damaged or incomplete TIFF"):
        read_image(path)


def test_doubles_that_end_within_the_list_of_pages(tmp_path: Path) -> None:
    """Cut at the link to the next page: never no page at all, or fewer than there were."""
    stack = random_values("float64", (2, 24, 32))
    tifffile.imwrite(tmp_path / "a.tif", stack, photometric="minisblack", compression="zlib")
    data = (tmp_path / "a.tif").read_bytes()
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        directories = [page.offset for page in file.pages]
    for start in directories:
        for length in (1, 60):
            (tmp_path / "cut.tif").write_bytes(data[: start + length])
            with refused(FileError, "damaged or incomplete TIFF"):
                read_pages(tmp_path / "cut.tif")


@pytest.mark.parametrize("pages", [1, 2])
def test_doubles_that_are_no_images(tmp_path: Path, pages: int) -> None:
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for page in range(pages):
            shape = (8 + page, 9) if pages == 2 else (8, 9, 5)
            file.write(np.zeros(shape), photometric="rgb" if pages == 1 else "minisblack")
    with refused(InputError, "channels" if pages == 1 else "different"):
        read_pages(tmp_path / "a.tif")


# IPTC

IPTC = b"\x1c\x02\x78\0\x05a cat" + b"\x1c\x02\x19\0\x03pet" + bytes(1)


@pytest.mark.parametrize("kind", [BYTES, LONG, 7])
def test_iptc_of_tiff_files_is_kept_whole(tmp_path: Path, kind: int) -> None:
    data = IPTC[:16]
    # A private entry of the same size is renamed: tifffile writes this one as bytes only.
    count = 4 if kind == LONG else 16
    tifffile.imwrite(
        tmp_path / "a.tif",
        noisy_pixels(np.uint8, 3),
        photometric="rgb",
        extratags=[(65001, BYTES, 16, data, True)],
    )
    raw = bytearray((tmp_path / "a.tif").read_bytes())
    at = raw.index(struct.pack("<HHI", 65001, BYTES, 16))
    raw[at : at + 8] = struct.pack("<HHI", 33723, kind, count)
    (tmp_path / "a.tif").write_bytes(raw)
    image = read_image(tmp_path / "a.tif")
    assert image.metadata is not None
    assert image.metadata.iptc == data
    for suffix in (".tif", ".jpg", ".png"):
        write_image(tmp_path / f"b{suffix}", image)
        back = read_image(tmp_path / f"b{suffix}")
        assert back.metadata is not None
        assert back.metadata.iptc == data
    assert "IPTC" in images.losses("a.webp", image)[0]


def test_iptc_beside_resources_is_kept(tmp_path: Path) -> None:
    path = b"8BIM" + struct.pack(">HHI", 2000, 0, 4) + b"path"
    tags = [(33723, 7, len(IPTC), IPTC, True), (34377, 7, len(path), path, True)]
    tifffile.imwrite(tmp_path / "a.tif", noisy_pixels(np.uint8), extratags=tags)
    for suffix in (".jpg", ".png", ".tif"):
        write_image(tmp_path / f"b{suffix}", read_image(tmp_path / "a.tif"))
        metadata = read_image(tmp_path / f"b{suffix}").metadata
        assert metadata is not None
        assert metadata.iptc == IPTC
        assert (metadata.resources or b"").startswith(path)


def test_notes_that_point_by_place_are_said_to_move(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif.get_ifd(0x8769)[0x927C] = bytes(range(99))
    PIL.Image.fromarray(noisy_pixels(np.uint8)).save(tmp_path / "a.jpg", exif=exif)
    image = read_image(tmp_path / "a.jpg")
    assert images.losses("a.png", image) == ()
    (said,) = images.losses("a.tif", image)
    assert said.startswith("its maker's notes change their place")


# Tiles and pyramids


def levels_of(path: Path) -> list[tuple[tuple[int, ...], bool]]:
    with tifffile.TiffFile(path) as file:
        return [(level.shape, level.keyframe.is_tiled) for level in file.series[0].levels]


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize(("dtype", "channels"), [(np.uint8, 3), (np.uint16, 1)])
def test_tiles_and_pyramids_are_kept(
    denoise_file: DenoiseFile, tmp_path: Path, chained: bool, dtype: type, channels: int
) -> None:
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    pixels = np.tile(noisy_pixels(dtype, channels), (6, 5, 1)[: 2 + (channels > 1)])
    options = {"tile": True, "tile_width": 32, "tile_height": 16, "compression": "lzw"}
    pyvips.Image.new_from_array(pixels).tiffsave(
        str(source), pyramid=True, subifd=not chained, **options
    )
    denoise_file(source, target)
    assert levels_of(target) == levels_of(source)
    assert len(levels_of(target)) > 2
    with tifffile.TiffFile(target) as file:
        assert (len(file.pages) > 1) == chained
        assert (file.pages[0].tilelength, file.pages[0].tilewidth) == (16, 32)
        whole, half = (level.asarray().astype(float) for level in file.series[0].levels[:2])
    means = whole[:144, :160].reshape(72, 2, 80, 2, -1).mean((1, 3)).reshape(half.shape)
    np.testing.assert_allclose(half, means, atol=0.5)
    np.testing.assert_array_equal(read_image(target).pixels, whole)


def test_new_pyramids_and_their_last_level(tmp_path: Path) -> None:
    bands = random_values("float32", (700, 1100))
    write_image(tmp_path / "a.tif", ImageFile(bands), images.WritingOptions(pyramid=True))
    assert levels_of(tmp_path / "a.tif") == [
        ((700, 1100), True),
        ((350, 550), True),
        ((175, 275), True),
        ((87, 137), True),
    ]
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), bands)
    np.testing.assert_array_equal(pyvips.Image.tiffload(str(tmp_path / "a.tif")).numpy(), bands)
    write_image(tmp_path / "b.tif", ImageFile(bands[:9, :9]), images.WritingOptions(pyramid=True))
    assert levels_of(tmp_path / "b.tif") == [((9, 9), True)]


# Ways of storing


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32", "float64"])
@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_tiles_of_planes(tmp_path: Path, dtype: str, alpha: bool, order: Any) -> None:
    values = random_values(dtype, (3 + alpha, 70, 81))
    stored = {"photometric": "rgb", "planarconfig": "separate", "tile": (32, 48)}
    extra = {"extrasamples": ["unassalpha"]} if alpha else {}
    tifffile.imwrite(tmp_path / "a.tif", values, byteorder=order, **stored, **extra)
    page = read_image(tmp_path / "a.tif")
    assert page.pixels.dtype == dtype
    np.testing.assert_array_equal(page.pixels, np.moveaxis(values[:3], 0, 2))
    np.testing.assert_array_equal(page.alpha, values[3] if alpha else None)


@pytest.mark.parametrize("kind", ["zstd", "lzma"])
@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("uint8", {}), ("uint16", {"predictor": True}), ("float64", {"tile": (32, 48)})],
)
def test_zstandard_and_lzma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, stored: Any, dtype: str
) -> None:
    if kind == "zstd":
        zstd = pytest.importorskip("backports.zstd")
        monkeypatch.setattr(
            tifffile._imagecodecs, "zstd_encode", lambda data, *_, **__: zstd.compress(bytes(data))
        )
    for shape in ((70, 81), (70, 81, 3)):
        values = random_values(dtype, shape)
        photometric = "rgb" if len(shape) == 3 else "minisblack"
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, values, photometric=photometric, compression=kind, **stored)
        np.testing.assert_array_equal(read_image(path).pixels, values)


def test_doubles_with_a_predictor(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((20, 30)), extratags=[(65000, SHORT, 1, 3, True)])
    raw = path.read_bytes().replace(
        struct.pack("<HH", 65000, SHORT), struct.pack("<HH", 317, SHORT)
    )
    path.write_bytes(raw)
    with refused(FileError, "predictor", "not supported"):
        read_image(path)


def test_a_block_that_unpacks_to_more_than_its_share(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, noisy_pixels(np.uint8), rowsperstrip=24)
    bomb = lzma.compress(bytes(2**27))
    with tifffile.TiffFile(path, mode="r+b") as file:
        tags, place = file.pages[0].tags, path.stat().st_size
        for number, value in ((259, 34925), (273, place), (279, len(bomb))):
            tags[number].overwrite(value)
    path.write_bytes(path.read_bytes() + bomb)
    tracemalloc.start()
    np.testing.assert_array_equal(read_image(path).pixels, 0)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_zstandard_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile.imwrite(tmp_path / "a.tif", noisy_pixels(np.uint8))
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+b") as file:
        file.pages[0].tags[259].overwrite(50000)
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with refused(FileError, "Zstandard", "pip install 'nlnet[zstd]'"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize(("number", "name"), [(34887, "LERC"), (50002, "JPEG XL"), (7777, "7777")])
def test_other_compressions_are_named(tmp_path: Path, number: int, name: str) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, noisy_pixels(np.uint8))
    with tifffile.TiffFile(path, mode="r+b") as file:
        file.pages[0].tags[259].overwrite(number)
    with refused(FileError, "compressed", name, "not supported"):
        read_image(path)


def test_pillow_reads_what_is_written(tmp_path: Path) -> None:
    for dtype in (np.uint8, np.uint16):
        pixels = noisy_pixels(dtype)
        write_image(tmp_path / "a.tif", ImageFile(pixels))
        with PIL.Image.open(tmp_path / "a.tif") as image:
            np.testing.assert_array_equal(np.asarray(image), pixels)


def test_a_chain_of_pages_without_end(tmp_path: Path) -> None:
    write_pages(tmp_path / "a.tif", [ImageFile(noisy_pixels(np.float64))] * 2)
    data = (tmp_path / "a.tif").read_bytes()
    first = data[4:8]
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        second = struct.pack("<I", file.pages[1].offset)
    assert data.count(second) == 1
    (tmp_path / "a.tif").write_bytes(data.replace(second, first))
    assert len(read_pages(tmp_path / "a.tif")) == 1
