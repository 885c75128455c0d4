"""Zarr folders and TIFF files, block by block: exact, complete, and whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import noisy_pixels

import nlnet
from nlnet.cli import main
from nlnet.errors import FileError
from nlnet.model.model import Model
from tests.messages import refused

pytest.importorskip("distributed")
tifffile = pytest.importorskip("tifffile")
zarr = pytest.importorskip("zarr")

Denoise = Callable[..., Path]


@pytest.fixture
def denoise(tmp_path: Path, gray_model_file: Path, color_model_file: Path) -> Denoise:
    """Denoise a file with the models of the tests, whose reach is 20 pixels."""

    def run(source: Path, name: str, *options: object, channels: int = 1) -> Path:
        target = tmp_path / name
        model = gray_model_file if channels == 1 else color_model_file
        arguments = ["denoise", source, "-o", target, "--model", model, *options]
        assert main([str(argument) for argument in arguments]) == 0
        assert not list(tmp_path.glob(".nlnet-*"))
        return target

    return run


def noisy_values(*shape: int) -> np.ndarray:
    return (128 + 25 * np.random.default_rng(1).standard_normal(shape)).astype(np.float32)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_keeps_what_it_is(
    tmp_path: Path, denoise: Denoise, gray_model: Model, version: Any
) -> None:
    noisy = noisy_values(301, 517)
    source = zarr.create_array(
        str(tmp_path / "in.zarr"),
        data=noisy,
        chunks=(33, 50),
        zarr_format=version,
        attributes={"unit": "nm"},
    )
    target = denoise(tmp_path / "in.zarr", "out.zarr", "--sigma", 25, "--data-range", 255)
    result = zarr.open(str(target))
    assert result.metadata == source.metadata
    whole = nlnet.denoise(noisy, 25, model=gray_model, data_range=255, clip=False)
    np.testing.assert_allclose(result[:], whole, rtol=0, atol=1e-3)


def test_shards_and_color(tmp_path: Path, denoise: Denoise, color_model: Model) -> None:
    noisy = noisy_values(310, 290, 3)
    layout: dict[str, Any] = {"chunks": (10, 15, 1), "shards": (60, 90, 3)}
    zarr.create_array(str(tmp_path / "in.zarr"), data=noisy, **layout)
    options = ["--sigma", 25, "--data-range", 255, "--workers", 2]
    result = zarr.open(str(denoise(tmp_path / "in.zarr", "out.zarr", *options, channels=3)))
    assert (result.chunks, result.shards) == (layout["chunks"], layout["shards"])
    whole = nlnet.denoise(noisy, 25, model=color_model, data_range=255, clip=False)
    np.testing.assert_allclose(result[:], whole, rtol=0, atol=1e-3)


@pytest.fixture
def pages() -> np.ndarray:
    return np.array([[noisy_pixels(np.uint16, seed=3 * t + z) for z in range(3)] for t in range(2)])


@pytest.fixture
def clean_pages(pages: np.ndarray, gray_model: Model) -> np.ndarray:
    return np.asarray(nlnet.denoise_stack(pages, model=gray_model))


@pytest.fixture
def ome_zarr(tmp_path: Path, pages: np.ndarray) -> Path:
    """An OME-Zarr image of two levels, as microscopes write them."""
    path = tmp_path / "in.ome.zarr"
    axes = [{"name": name} for name in "tzyx"]
    levels = [{"path": "0"}, {"path": "1"}]
    image = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}
    group = zarr.open_group(str(path), mode="w", attributes={"ome": image, "who": "us"})
    # Chunks of two pages: no two tasks may write the same one.
    group.create_array("0", data=pages, chunks=(1, 2, 11, 13))
    group.create_array("1", data=pages[..., ::2, ::2])
    return path


def test_a_pyramid_with_pages(
    denoise: Denoise,
    ome_zarr: Path,
    clean_pages: np.ndarray,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = zarr.open(str(denoise(ome_zarr, "out.zarr", "--workers", 2)))
    np.testing.assert_array_equal(group["0"][:], clean_pages)
    assert group["0"].chunks == (1, 2, 11, 13)
    assert group.attrs["who"] == "us"
    assert group.attrs["ome"]["multiscales"][0]["datasets"] == [{"path": "0"}]
    assert "only its array '0' is denoised and written" in capsys.readouterr().out


def test_json_for_scripts(
    denoise: Denoise, ome_zarr: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = denoise(ome_zarr, "out.zarr", "--sigma", 25, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["source"]) == ("written", str(ome_zarr))
    assert told["target"] == str(target)
    assert told["sigmas"] == [25.0] * 6
    assert told["notes"] == ["only its array '0' is denoised and written"]


@pytest.mark.parametrize("name", ["out.ome.tif", "out.tif"])
def test_zarr_to_tiff(denoise: Denoise, ome_zarr: Path, clean_pages: np.ndarray, name: str) -> None:
    with tifffile.TiffFile(denoise(ome_zarr, name)) as file:
        assert file.is_ome == (name == "out.ome.tif")
        assert file.series[0].axes == "TZYX"
        np.testing.assert_array_equal(file.asarray(), clean_pages)


@pytest.mark.parametrize(
    ("layout", "shape", "chunks"),
    [
        ({"tile": (64, 80)}, (70, 95), (64, 80)),
        ({"rowsperstrip": 7, "compression": "zlib"}, (70, 95), (70, 95)),
        ({"tile": (32, 32), "photometric": "rgb"}, (70, 95, 3), (32, 32, 3)),
        ({"photometric": "rgb", "planarconfig": "separate"}, (3, 70, 95), (3, 70, 95)),
    ],
)
def test_ome_tiff_to_zarr_and_back(
    tmp_path: Path,
    denoise: Denoise,
    gray_model: Model,
    color_model: Model,
    layout: dict[str, Any],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> None:
    noisy = np.clip(noisy_values(*shape), 0, 255).astype(np.uint8)
    tifffile.imwrite(tmp_path / "in.ome.tif", noisy, **layout)
    channels = 3 if 3 in shape else 1
    axis = None if channels == 1 else shape.index(3)
    model = {1: gray_model, 3: color_model}[channels]
    wanted = nlnet.denoise(noisy, 25, model=model, channel_axis=axis)
    target = denoise(tmp_path / "in.ome.tif", "out.zarr", "--sigma", 25, channels=channels)
    result = zarr.open(str(target))
    assert result.chunks == chunks
    if axis != 0:  # zarr has no axis for planes of RGB: what is first counts pages
        denoise(target, "again.tif", "--sigma", 1, "--strength", 0, channels=channels)
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "again.tif"), result[:])
    assert np.abs(result[:].astype(int) - wanted).max() <= 1


def test_overwrite(
    tmp_path: Path, denoise: Denoise, fails: Callable[..., str], gray_model_file: Path
) -> None:
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8))
    zarr.create_array(str(target), data=np.zeros(3))
    options = ["--sigma", 25, "--model", gray_model_file]
    assert "replace it with --overwrite" in fails("denoise", source, "-o", target, *options)
    assert zarr.open(str(target)).shape == (3,)
    assert zarr.open(str(denoise(source, "out.zarr", "--sigma", 25, "--overwrite"))).shape == (
        24,
        32,
    )
    message = fails("denoise", source, "-o", source / "x.zarr", *options, "--overwrite")
    assert "lie in each other" in message
    (tmp_path / "notes.zarr").mkdir()
    (tmp_path / "notes.zarr" / "diary.txt").write_text("mine")
    message = fails("denoise", source, "-o", tmp_path / "notes.zarr", *options, "--overwrite")
    assert "exists, but is not zarr" in message
    assert names(tmp_path / "notes.zarr") == ["diary.txt"]


def break_metadata(path: Path) -> None:
    (path / "zarr.json").write_text("{")


def break_codec(path: Path) -> None:
    metadata = json.loads((path / "zarr.json").read_text())
    metadata["codecs"] = [{"name": "no such codec"}]
    (path / "zarr.json").write_text(json.dumps(metadata))


def break_chunk(path: Path) -> None:
    (path / "c/0/1").write_bytes(b"\0" * 7)


def empty_folder(path: Path) -> None:
    (path / "zarr.json").unlink()


@pytest.mark.parametrize("damage", [break_metadata, break_codec, break_chunk, empty_folder])
@pytest.mark.parametrize("sigma", ["25", "auto"])
def test_a_broken_zarr(
    tmp_path: Path,
    fails: Callable[..., str],
    gray_model_file: Path,
    damage: Callable[[Path], None],
    sigma: str,
) -> None:
    source = tmp_path / "in.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(24, 16))
    damage(source)
    options = ["--sigma", sigma, "--model", gray_model_file]
    message = fails("denoise", source, "-o", tmp_path / "out.zarr", *options)
    assert f"Cannot read {str(source)!r}" in message
    assert names(tmp_path) == ["in.zarr"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(7, np.uint8), r"has shape (7,), but must be (H, W) for gray"),
        (np.zeros((9, 0), np.uint8), r"has shape (9, 0)"),
        (np.zeros((9, 9), np.int64), "dtype is int64"),
        (np.zeros((9, 2), np.uint8), "at least the patch size"),
        (np.full((9, 9), np.nan, np.float32), "81 of the image's 81 pixels are masked or NaN"),
    ],
)
def test_a_zarr_that_cannot_be_denoised(
    tmp_path: Path,
    fails: Callable[..., str],
    gray_model_file: Path,
    values: np.ndarray,
    message: str,
) -> None:
    zarr.create_array(str(tmp_path / "in.zarr"), data=values, chunks=(9,) * values.ndim)
    options = ["--sigma", 25, "--model", gray_model_file]
    assert message in fails("denoise", tmp_path / "in.zarr", "-o", tmp_path / "out.zarr", *options)
    assert names(tmp_path) == ["in.zarr"]


def test_other_inputs_and_outputs_that_cannot_be(
    tmp_path: Path, noisy_file: Path, fails: Callable[..., str]
) -> None:
    group, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.open_group(str(group), mode="w").create_array("a", data=np.zeros((9, 9)))
    zarr.open_group(str(group)).create_array("b", data=np.zeros((9, 9)))
    assert "group of 2 arrays (a, b)" in fails("denoise", group, "-o", out)
    assert "No such file" in fails("denoise", tmp_path / "missing.zarr", "-o", out)
    assert "must end in .zarr, .tif or .tiff" in fails("denoise", group, "-o", tmp_path / "a.png")
    assert "one of several inputs" in fails("denoise", noisy_file, group, "-o", tmp_path / "x")
    assert "--preview" in fails("denoise", group, "-o", out, "--preview", tmp_path / "p.png")
    assert "Cannot read" in fails("denoise", noisy_file, "-o", out)
    assert "--scheduler is for zarr" in fails(
        "denoise", noisy_file, "-o", tmp_path / "y.png", "--scheduler", "127.0.0.1:1"
    )
    assert names(tmp_path) == ["in.zarr", "noisy.png"]


def test_too_little_memory_says_how_much_it_takes(
    tmp_path: Path, fails: Callable[..., str], gray_model_file: Path, denoise: Denoise
) -> None:
    zarr.create_array(str(tmp_path / "in.zarr"), data=noisy_values(200, 400), chunks=(50, 50))
    options = ["--sigma", 25, "--data-range", 255, "--model", gray_model_file]
    message = fails(
        "denoise", tmp_path / "in.zarr", "-o", tmp_path / "x.zarr", *options, "--max-memory", "1M"
    )
    needed = int(message.partition("takes at least ")[2].partition(";")[0])
    assert "--max-memory" in message
    options = ["--sigma", 25, "--data-range", 255, "--max-memory", str(needed)]
    denoise(tmp_path / "in.zarr", "out.zarr", *options)
    assert "out.zarr" in names(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a small file system")
@pytest.mark.parametrize("name", ["out.zarr", "out.ome.tif"])
def test_no_room_for_the_output(
    tmp_path: Path, gray_model_file: Path, fails: Callable[..., str], name: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no permission to mount a small file system")
    try:
        source = tmp_path / "in.zarr"
        zarr.create_array(str(source), data=noisy_values(300, 300), chunks=(60, 60))
        options = ["--sigma", 25, "--data-range", 255, "--model", gray_model_file]
        assert "No space left" in fails("denoise", source, "-o", disk / name, *options)
        assert names(disk) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("name", ["out.zarr", "out.tif"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_is_interrupted(
    tmp_path: Path,
    gray_model_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    overwrite: bool,
) -> None:
    """Nothing new under the output's name, and what was there is there still."""
    from nlnet.dask import targets

    source, target = tmp_path / "in.zarr", tmp_path / name
    zarr.create_array(str(source), data=noisy_pixels(np.uint8))
    if overwrite:
        target.mkdir() if name == "out.zarr" else target.write_bytes(b"old")
        if name == "out.zarr":
            (target / "zarr.json").write_text("old")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for kind in (targets.ZarrTarget, targets.TiffTarget):
        monkeypatch.setattr(kind, "write", stop)
    options = ["--sigma", "25", "--model", str(gray_model_file)]
    options += ["--overwrite"] if overwrite else []
    assert main(["denoise", str(source), "-o", str(target), *options]) == 130
    assert names(tmp_path) == (["in.zarr", name] if overwrite else ["in.zarr"])
    if overwrite:
        left = target / "zarr.json" if name == "out.zarr" else target
        assert left.read_text() == "old"


def test_a_block_does_not_bring_back_a_folder_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nlnet.dask import targets
    from nlnet.dask.volumes import open_volume

    zarr.create_array(str(tmp_path / "in.zarr"), data=noisy_values(8, 8))
    open_to_write = targets._open_to_write

    def give_up_meanwhile(path: Path, key: str, run: str) -> Any:
        opened = open_to_write(path, key, run)
        shutil.rmtree(path)
        return opened

    monkeypatch.setattr(targets, "_open_to_write", give_up_meanwhile)
    volume = open_volume(tmp_path / "in.zarr")
    given_up = refused(FileError, "The unfinished output is gone")
    with given_up, targets.new_target(tmp_path / "out.zarr", volume, "run") as target:
        try:
            target.write((slice(0, 8), slice(0, 8)), noisy_values(8, 8))
        finally:
            assert [name for name in names(tmp_path) if not name.endswith(".lock")] == ["in.zarr"]


def test_an_old_output_comes_back_if_the_new_one_cannot_be_renamed(
    tmp_path: Path,
    gray_model_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[..., str],
) -> None:
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8))
    zarr.create_array(str(target), data=np.zeros(3))
    rename = os.rename

    def refuse(old: Any, new: Any) -> None:
        if Path(new) == target and zarr.open(str(old)).ndim == 2:
            raise OSError(errno.EIO, "Input/output error")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    options = ["--sigma", 25, "--model", gray_model_file, "--overwrite"]
    assert "Input/output error" in fails("denoise", source, "-o", target, *options)
    assert names(tmp_path) == ["in.zarr", "out.zarr"]
    assert zarr.open(str(target)).shape == (3,)
