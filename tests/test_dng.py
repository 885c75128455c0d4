"""DNG files that are written: what LibRaw, tifffile and raw developers read in them."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from messages import refused

from benchmarks import dng as bench
from nlnet.cli import main
from nlnet.errors import InputError
from nlnet.files.findings import Outcome
from nlnet.files.one_file import denoise_file
from nlnet.files.settings import Settings
from nlnet.images.content import Source
from nlnet.images.ifd import LONG, SHORT, UNDEFINED, Entry, Layout
from nlnet.images.ifd_writing import TiffBytes, entries_of
from nlnet.images.writing import WritingOptions
from nlnet.raw import dng
from nlnet.raw.metadata import read_exif
from tests.raw_cases import BLACK, X_TRANS, mosaic_of, scene, shoot, stored, write_dng

rawpy = pytest.importorskip("rawpy")
GRAY_LIGHT = np.full((96, 128, 3), 0.3)
NOTES = b"maker's notes with places"
AREA = (50829, "H", 4, (6, 4, 94, 126), True)
SHAPES = {
    "plain": {},
    "other pattern": {"pattern": ((1, 2), (0, 1))},
    "crop": {"more_tags": [AREA, (50719, "H", 2, (2, 4), True), (50720, "H", 2, (110, 80), True)]},
    "black levels": {"black": (BLACK, BLACK + 9, BLACK + 40, BLACK - 8)},
    "turned": {"orientation": 6},
    "tiles": {"tile": (32, 48), "byteorder": ">", "preview": np.zeros((24, 32, 3), np.uint8)},
    "strips": {"rowsperstrip": 7, "preview": np.zeros((24, 32, 3), np.uint8)},
    "gray": {"pattern": None},
}


@pytest.fixture(params=["copy", "new"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A DNG that is a copy, or new, as for raw files of other formats."""
    if request.param == "new":
        monkeypatch.setattr(dng, "copy_with", lambda *_: None)
    return str(request.param)


def shot_of(path: Path, colors: np.ndarray, **options: Any) -> Path:
    pattern = options.get("pattern", ((0, 1), (1, 2)))
    clean = colors.mean(axis=2) * 15488 if pattern is None else mosaic_of(colors, pattern)
    levels = np.resize(options.get("black", [BLACK]), (2, 2)) - BLACK
    height, width = clean.shape
    return write_dng(
        path, stored(shoot(clean) + np.tile(levels, (height // 2, width // 2))), **options
    )


def write(source: Path, target: Path, **settings: Any) -> Outcome:
    return denoise_file(source, target, Settings(**settings))


def known(path: Path) -> dict[str, Any]:
    """What LibRaw knows of a raw file besides its pixels."""
    with rawpy.imread(str(path)) as raw:
        sizes = dict(zip(raw.sizes._fields, raw.sizes, strict=True))
        if not sizes["crop_width"]:
            sizes = {name: size for name, size in sizes.items() if not name.startswith("crop")}
        return {
            "sizes": sizes,
            "black": raw.black_level_per_channel,
            "white": raw.white_level,
            "pattern": raw.raw_colors_visible[:2, :2].tolist(),
            "balance": np.round(raw.camera_whitebalance, 3).tolist(),
            "matrix": np.round(raw.color_matrix, 2).tolist(),
        }


def pixels_of(path: Path) -> np.ndarray:
    with rawpy.imread(str(path)) as raw:
        return raw.raw_image.astype(int)


@pytest.mark.parametrize("name", SHAPES)
def test_a_result_says_what_the_original_says(name: str, way: str, tmp_path: Path) -> None:
    source = shot_of(tmp_path / "a.dng", scene(), **SHAPES[name])
    write(source, tmp_path / "b.dng")
    before, after = known(source), known(tmp_path / "b.dng")
    after["sizes"] = {each: after["sizes"][each] for each in before["sizes"]}
    if name == "gray" or way == "copy":
        before.pop("matrix"), after.pop("matrix")
    assert after == before
    old, new = pixels_of(source), pixels_of(tmp_path / "b.dng")
    assert np.abs(old - new).mean() > 5
    assert abs((old - new).mean()) < 4
    if name == "crop":
        np.testing.assert_array_equal(old[:6], new[:6])
        np.testing.assert_array_equal(old[:, 126:], new[:, 126:])


def test_noise_and_hot_pixels_are_gone(way: str, tmp_path: Path) -> None:
    pixels = stored(shoot(mosaic_of(GRAY_LIGHT)))
    pixels[40, 51], pixels[61, 70] = 16000, 0
    source = write_dng(tmp_path / "a.dng", pixels)
    outcome = write(source, tmp_path / "b.dng")
    clean = stored(mosaic_of(GRAY_LIGHT)).astype(int)
    error = pixels_of(tmp_path / "b.dng") - clean
    assert error.std() < (pixels - clean).std() / 4
    assert np.abs(error).max() < 100
    assert any("filled: 2" in note for note in outcome.findings.notes)
    write(source, tmp_path / "c.dng", hot_pixels=False)
    assert np.abs(pixels_of(tmp_path / "c.dng") - clean)[40, 51] > 1000


def test_without_strength_the_numbers_are_the_same(way: str, tmp_path: Path) -> None:
    source = shot_of(tmp_path / "a.dng", scene())
    write(source, tmp_path / "b.dng", strength=0.0, hot_pixels=False)
    np.testing.assert_array_equal(pixels_of(tmp_path / "b.dng"), pixels_of(source))


def test_what_is_clipped_stays_clipped(tmp_path: Path) -> None:
    light = np.full((96, 128, 3), 0.3)
    light[:, 60:] = 4.0
    source = shot_of(tmp_path / "a.dng", light)
    write(source, tmp_path / "b.dng")
    np.testing.assert_array_equal(pixels_of(tmp_path / "b.dng")[:, 66:], 16000)


def test_a_copy_keeps_everything_else(tmp_path: Path) -> None:
    kept = [(50740, "B", 25, NOTES, True), (50935, "2I", 1, (0, 1), True)]
    stale = [(51111, "B", 16, bytes(16), True), (51041, "d", 2, (1e-4, 1e-6), True)]
    options = {"more_tags": [*kept, *stale], "rowsperstrip": 9}
    source = shot_of(tmp_path / "a.dng", scene(), **options)
    write(source, tmp_path / "b.dng")
    changed = {"StripOffsets", "StripByteCounts", "RowsPerStrip"}
    entries = []
    for path in (source, tmp_path / "b.dng"):
        with tifffile.TiffFile(path) as file:
            tags = file.pages[0].tags
            entries.append({tag.name: tag.value for tag in tags if tag.name not in changed})
            assert list(tags.keys()) == sorted(tags.keys())
    old = {name: value for name, value in entries[0].items() if "Digest" not in name}
    assert entries[1] == {name: value for name, value in old.items() if name != "NoiseProfile"}
    assert (tmp_path / "b.dng").stat().st_size == source.stat().st_size


def test_previews_show_the_result(way: str, tmp_path: Path) -> None:
    source = shot_of(tmp_path / "a.dng", scene(), **SHAPES["tiles"], orientation=6)
    write(source, tmp_path / "b.dng")
    write(tmp_path / "b.dng", tmp_path / "c.dng")  # a preview of JPEG, if it is new
    for name in ("b.dng", "c.dng"):
        with tifffile.TiffFile(tmp_path / name) as file:
            page = file.pages[0]
            assert page.photometric == (2 if way == "copy" else 6)
            assert page.imagewidth > page.imagelength  # as the sensor was held
            assert file.pages[0].pages[0].photometric == 32803
        with rawpy.imread(str(tmp_path / name)) as raw:
            thumb = raw.extract_thumb()
        assert len(set(bytes(thumb.data))) > 20


def write_nef(path: Path, pixels: np.ndarray) -> Path:
    """Write a raw file that LibRaw takes for one of a Nikon camera."""
    file = TiffBytes(Layout("<"))
    height, width = pixels.shape
    place = file.add(pixels.tobytes())
    sizes = {256: width, 257: height, 273: place, 278: height, 279: 2 * pixels.size}
    values = {tag: (LONG, size) for tag, size in sizes.items()}
    numbers = {258: (16,), 259: (1,), 262: (32803,), 277: (1,), 33421: (2, 2)}
    values |= {tag: (SHORT, each) for tag, each in numbers.items()}
    entries = entries_of(values, file.layout)
    inner = file.add_directory({**entries, 33422: Entry(1, b"\0\1\1\2")})
    shot = {33434: Entry(5, struct.pack("<II", 1, 125)), 37500: Entry(UNDEFINED, NOTES)}
    file.add_page(
        {
            271: Entry(2, b"NIKON CORPORATION\0"),
            272: Entry(2, b"NIKON D700\0"),
            **entries_of({274: (SHORT, 6), 330: (LONG, inner)}, file.layout),
            34665: Entry(LONG, directory=shot),
        }
    )
    path.write_bytes(bytes(file))
    return path


def test_a_file_of_another_format(tmp_path: Path) -> None:
    source = write_nef(tmp_path / "a.nef", stored(shoot(mosaic_of(scene(320, 480)))))
    write(source, tmp_path / "b.dng")
    before, after = known(source), known(tmp_path / "b.dng")
    for name in ("sizes", "black", "white", "pattern"):
        assert after[name] == before[name]
    with rawpy.imread(str(source)) as raw:
        matrix = raw.rgb_xyz_matrix[:3]
    with tifffile.TiffFile(tmp_path / "b.dng") as file:
        tags = file.pages[0].tags
        assert tags["UniqueCameraModel"].value == "NIKON D700"
        assert tags["Orientation"].value == 6
        assert tags["ExifTag"].value["ExposureTime"] == (1, 125)
        colors = np.reshape(tags["ColorMatrix1"].value, (-1, 2))
        np.testing.assert_allclose(colors[:, 0] / colors[:, 1], matrix.ravel(), atol=1e-4)
        # The notes where DNG has them: byte order, their place in the original, themselves.
        place = source.read_bytes().find(NOTES)
        wanted = b"Adobe\0MakN" + struct.pack(">I", 6 + len(NOTES)) + b"II"
        wanted += struct.pack(">I", place) + NOTES
        assert bytes(tags[50740].value).startswith(wanted)


def test_exif_of_cr3(tmp_path: Path) -> None:
    def box(name: bytes, entries: dict[int, Entry]) -> bytes:
        file = TiffBytes(Layout("<"))
        file.add_page(entries)
        return struct.pack(">I", 8 + len(bytes(file))) + name + bytes(file)

    boxes = [
        box(b"CMT1", {271: Entry(2, b"Canon\0"), 256: Entry(3, b"\1\0")}),
        box(b"CMT2", {33434: Entry(5, struct.pack("<II", 1, 60))}),
        box(b"CMT3", {1: Entry(3, b"\7\0")}),
        box(b"CMT4", {0: Entry(1, b"\2\3\0\0")}),
    ]
    path, raw = tmp_path / "a.cr3", rawpy.RawPy()
    path.write_bytes(struct.pack(">I", 24) + b"ftypcrx \0\0\0\1crx isom" + b"".join(boxes))
    found = read_exif(Source.of_path(path), raw)
    assert found is not None
    assert found.tags.data(271) == b"Canon\0"
    assert 256 not in found.tags
    inner = found.tags.entries[34665].directory
    assert inner is not None
    assert inner[33434].data == struct.pack("<II", 1, 60)
    assert found.data.find(inner[37500].data) == 8
    assert found.tags.entries[34853].directory
    path.write_bytes(struct.pack(">I", 24) + b"ftypcrx " + bytes(500))
    assert read_exif(Source.of_path(path), raw) is None


def test_refusals(tmp_path: Path) -> None:
    x_trans = write_dng(tmp_path / "x.dng", stored(mosaic_of(scene(), X_TRANS)), X_TRANS)
    with refused(InputError, "X-Trans"):
        write(x_trans, tmp_path / "b.dng")
    source = shot_of(tmp_path / "a.dng", scene())
    with refused(InputError, "mosaic"):
        write(source, tmp_path / "b.dng", writing=WritingOptions(jpeg_quality=50))
    assert not (tmp_path / "b.dng").exists()


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = shot_of(tmp_path / "a.dng", scene())
    look = tmp_path / "look.png"
    command = ["denoise", str(source), "-o", str(tmp_path / "b.DNG"), "--preview", str(look)]
    assert main(command) == 0
    assert "photon noise" in capfd.readouterr().out
    assert look.exists()
    assert known(tmp_path / "b.DNG")["white"] == 16000


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in bench.PROGRAMS), reason="no raw developers here"
)
@pytest.mark.parametrize("case", ["active area and crop", "strips, big endian, with a preview"])
def test_raw_developers_open_it_like_the_original(case: str, way: str, tmp_path: Path) -> None:
    original = bench.simulate(tmp_path / "a.dng", **bench.CASES[case])
    result = bench.denoise(original, tmp_path / "b.dng", copy=way == "copy")
    for develop in bench.DEVELOPERS:
        assert bench.difference(develop, original, result) < 0.5
    assert set(bench.warnings(result)) <= set(bench.warnings(original))
