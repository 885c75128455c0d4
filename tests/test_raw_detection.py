"""Raw files of cameras are known by their content, and named."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from messages import refused
from pictures import noisy_pixels

from nlnet import images
from nlnet.errors import FileError
from nlnet.images import ImageFile, is_raw, read_image, write_image
from nlnet.images.formats import result_suffix
from nlnet.images.raw_files import raw_kind

SIGNATURES = {
    "CR2": b"II*\0\x10\0\0\0CR\x02\0",
    "CR3": b"\0\0\0\x18ftypcrx \0\0\0\1crx isom",
    "CRW": b"II\x1a\0\0\0HEAPCCDR\2\0",
    "RAF": b"FUJIFILMCCD-RAW 0201FF383501X-T1",
    "ORF": b"IIRO\x08\0\0\0",
    "RW2": b"IIU\0\x18\0\0\0",
    "X3F": b"FOVb\0\0\3\0",
    "MRW": b"\0MRM\0\0\0\0",
}


@pytest.mark.parametrize("kind", SIGNATURES)
def test_by_their_first_bytes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "photo.tif"
    path.write_bytes(SIGNATURES[kind].ljust(200, b"\0"))
    assert is_raw(path)
    with refused(FileError, "a camera's raw file", f"({kind} of "):
        read_image(path)


def thumbnail_and_sub_image(photometric: int, compression: int = 1) -> bytes:
    """A TIFF file as cameras write it: a small picture first, the raw pixels beside it."""

    def directory(tags: list[tuple[int, int, int, int]]) -> bytes:
        entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
        return struct.pack("<H", len(tags)) + entries + bytes(4)

    small = [(256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    small += [(271, 2, 18, 400), (273, 4, 1, 420), (277, 3, 1, 1), (278, 4, 1, 4), (279, 4, 1, 16)]
    raw = [(256, 4, 1, 999), (257, 4, 1, 999), (259, 3, 1, compression), (262, 3, 1, photometric)]
    first = directory([*small, (330, 4, 1, 200)])
    data = (b"II*\0\x08\0\0\0" + first).ljust(200, b"\0") + directory(raw)
    return (data.ljust(400, b"\0") + b"NIKON CORPORATION\0").ljust(500, b"\0")


@pytest.mark.parametrize("kind", [(32803, 1), (34892, 1), (1, 34713)])
def test_a_thumbnail_beside_raw_pixels(tmp_path: Path, kind: tuple[int, int]) -> None:
    (tmp_path / "a.nef").write_bytes(thumbnail_and_sub_image(*kind))
    with refused(FileError, "(NEF of Nikon), not yet a picture"):
        read_image(tmp_path / "a.nef")


def test_dng_by_its_entry(tmp_path: Path) -> None:
    tags = [(50706, 1, 4, bytes([1, 4, 0, 0]), True)]
    tifffile.imwrite(tmp_path / "a.tif", noisy_pixels(np.uint8), extratags=tags)
    with refused(FileError, "raw file (DNG)"):
        read_image(tmp_path / "a.tif")


def test_the_sentence_says_who_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.nef").write_bytes(thumbnail_and_sub_image(32803))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "rawpy" else 1)
    with refused(FileError, "'nlnet denoise' makes a", "pip install 'nlnet[raw]'"):
        read_image(tmp_path / "a.nef")
    monkeypatch.undo()
    pytest.importorskip("rawpy")
    with refused(FileError, "makes a TIFF file of it."):
        read_image(tmp_path / "a.nef")


def test_pictures_are_no_raw_files(tmp_path: Path) -> None:
    extras = (".jxl", ".fits", ".fit", ".fts")
    written = [each for each in images.SUFFIXES if result_suffix(each) == each]
    for suffix in set(written) - {*extras}:
        color = suffix in (".ppm", ".webp")
        path = tmp_path / f"a{suffix}"
        write_image(path, ImageFile(noisy_pixels(np.uint8, 3 if color else 1)))
        assert not is_raw(path)
    with tifffile.TiffWriter(tmp_path / "b.tif") as file:
        file.write(noisy_pixels(np.uint8), subifds=1)
        file.write(noisy_pixels(np.uint8)[::2, ::2].copy())
    assert not is_raw(tmp_path / "b.tif")


@pytest.mark.parametrize("cut", range(0, 500, 7))
def test_damaged_ones_are_no_trouble(cut: int) -> None:
    whole = thumbnail_and_sub_image(32803)
    assert raw_kind(io.BytesIO(whole[:cut])) in (None, "NEF of Nikon", "of an unknown maker")
    broken = whole[:cut] + b"\xff\xff\xff\xff" + whole[cut + 4 :]
    assert isinstance(raw_kind(io.BytesIO(broken)), str | None)


def test_a_dng_of_a_camera(shared: Path, fails: Callable[..., str], tmp_path: Path) -> None:
    """Commands that do not develop it name it, and do not take its thumbnail for the picture."""
    path = shared / "data/real/raw/colorchart.dng"
    if not path.exists():
        pytest.skip("no raw file in the data folder")
    with path.open("rb") as stream:
        assert raw_kind(stream) == "DNG"
    said = fails("add-noise", path, "-o", tmp_path / "a.tif", "--sigma", "9")
    assert "it is a camera's raw file (DNG)" in said
    assert list(tmp_path.iterdir()) == []
