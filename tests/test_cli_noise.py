"""``nlnet noise`` on noise that is known."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from paths import PROJECT

from nlnet.cli import main
from nlnet.images import ImageFile, read_image, write_image, write_pages
from nlnet.noise import add_noise, store
from nlnet.noise.camera import Camera
from nlnet.noise.record import Noise

GAIN = 4.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with white noise of sigma 20 in 8 and 16 bits, photon noise, and no noise."""
    folder = tmp_path_factory.mktemp("noise")
    photo = read_image(PROJECT / "examples" / "cat.png").pixels
    write_image(
        folder / "clean.png", ImageFile(np.tile(np.arange(20, 220, dtype=np.uint8), (99, 1)))
    )
    white = add_noise(photo[..., 1], 20, seed=0)
    write_image(folder / "white.png", ImageFile(store(white, np.dtype(np.uint8), 255)))
    deep = store(white * 257, np.dtype(np.uint16), 65535)
    write_image(folder / "deep.tif", ImageFile(deep))
    ramp = np.tile(np.linspace(20.0, 200.0, 256), (256, 1))
    photons = GAIN * np.random.default_rng(0).poisson(ramp / GAIN)
    write_image(folder / "photons.tif", ImageFile(photons.astype(np.uint16)))
    return folder


def sigma_of(line: str) -> float:
    return float(line.rsplit("sigma ", 1)[1])


@pytest.mark.parametrize("name", ["white.png", "deep.tif"])
def test_white_noise_is_said_on_the_8_bit_scale(
    name: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["noise", str(files / name)]) == 0
    line = capsys.readouterr().out.strip()
    assert line.startswith(f"{files / name}: white noise, sigma ")
    assert sigma_of(line) == pytest.approx(20, rel=0.06)


def test_records_are_in_the_images_own_units(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["noise", str(files / "deep.tif"), "--json"]) == 0
    found = Noise.from_json(capsys.readouterr().out)
    assert found.kind == "white"
    assert found.sigma == pytest.approx(20 * 257, rel=0.06)
    assert main(["noise", str(files / "photons.tif"), "--json", "--data-range", "255"]) == 0
    found = Noise.from_json(capsys.readouterr().out)
    assert found.kind == "poisson"
    assert found.levels[0].gain == pytest.approx(GAIN, rel=0.12)


def test_a_data_range_sets_the_scale_of_the_sentence(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["noise", str(files / "photons.tif"), "--data-range", "510"]) == 0
    own, scaled = capsys.readouterr().out.split(" in the units of the file; on the 8-bit scale ")
    gains = [float(words.split("gain ")[1].split(",")[0]) for words in (own, scaled)]
    assert gains == pytest.approx([GAIN, GAIN / 2], rel=0.12)


def test_floating_counts_have_no_other_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ramp = np.tile(np.linspace(20.0, 200.0, 200), (200, 1))
    np.save(tmp_path / "counts.npy", np.random.default_rng(0).poisson(ramp).astype(np.float32))
    assert main(["noise", str(tmp_path / "counts.npy")]) == 0
    line = capsys.readouterr().out
    assert "scale" not in line
    assert float(line.split("gain ")[1].split(",")[0]) == pytest.approx(1, rel=0.12)


@pytest.mark.parametrize("kind", ["zarr", "npy"])
def test_channels_of_a_microscope(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    ramp = np.tile(np.linspace(20.0, 200.0, 200), (200, 1))
    counts = np.random.default_rng(0).poisson(ramp, (3, 2, 200, 200))
    stack = (counts * np.array([1, 4])[:, None, None]).astype(np.uint16)  # time, channel, y, x
    path = tmp_path / f"cells.{kind}"
    options = []
    if kind == "npy":
        np.save(path, stack)
        options = ["--noise-axis", "1"]
    else:
        zarr = pytest.importorskip("zarr")
        pytest.importorskip("dask")
        names = list("tcyx")
        array = zarr.create_array(
            str(path), data=stack, chunks=(1, 1, 99, 99), dimension_names=names
        )
        assert array.shape == stack.shape
    assert main(["noise", str(path), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"{path}, channel 1", f"{path}, channel 2"]
    gains = [float(line.split("gain ")[1].split(",")[0]) for line in lines]
    assert gains == pytest.approx([1, 4], rel=0.12)
    assert main(["noise", str(path), *options, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["channel"] for record in records] == [1, 2]


def test_several_files_have_their_names(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(files / "white.png"), str(files / "clean.png")]
    assert main(["noise", *paths, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["source"] for line in lines] == paths
    records = [Noise.from_json(json.dumps(json.loads(line)["noise"])) for line in lines]
    assert [record.kind for record in records] == ["white", "none"]
    assert main(["noise", paths[1]]) == 0
    assert capsys.readouterr().out == f"{paths[1]}: no noise worth removing\n"


def test_pages_are_looked_at_together_or_one_by_one(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = read_image(PROJECT / "examples" / "cat.png").pixels[..., 1]
    pages = [store(add_noise(photo, s, seed=s), np.dtype(np.uint8), 255) for s in (10, 30)]
    stack = tmp_path / "stack.tif"
    write_pages(stack, [ImageFile(page) for page in pages])
    assert main(["noise", str(stack)]) == 0
    (together,) = capsys.readouterr().out.splitlines()
    assert 9 < sigma_of(together) < 30
    assert main(["noise", str(stack), "--per-page"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"{stack}, page 1", f"{stack}, page 2"]
    assert [sigma_of(line) for line in lines] == pytest.approx([10, 30], rel=0.06)
    assert main(["noise", str(stack), "--json", "--per-page"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["page"] for record in records] == [1, 2]


def test_a_file_that_cannot_be_read_does_not_keep_others_away(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    assert main(["noise", str(tmp_path / "broken.png"), str(files / "white.png")]) == 1
    out, err = capsys.readouterr()
    assert "white noise" in out
    assert err.startswith("nlnet: error: ")
    assert err.count("\n") == 1


def test_errors_are_one_sentence(files: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    assert "No such file" in fails("noise", tmp_path / "missing.png")
    assert "at least 1" in fails("noise", files / "white.png", "--max-pixels", 0)
    bad = tmp_path / "nan.npy"
    np.save(bad, np.full((32, 32), np.nan, np.float32))
    assert "nan.npy" in fails("noise", bad)
    raw = tmp_path / "shot.cr3"
    raw.write_bytes(b"")
    assert "--data-range" in fails("noise", raw, "--data-range", 4095)
    assert "empty" in fails("noise", raw)


def test_larger_images_are_refused(tmp_path: Path, fails: Callable[..., str]) -> None:
    write_image(tmp_path / "large.png", ImageFile(np.zeros((1000, 1100), np.uint8)))
    assert "1100x1000 pixels" in fails("noise", tmp_path / "large.png", "--max-pixels", 1)


def test_a_sensor_is_looked_at_before_development(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rawpy")
    from raw_cases import BLACK, READ, WHITE, mosaic_of, scene, shoot, stored, write_dng
    from raw_cases import GAIN as SENSOR_GAIN

    mosaic = shoot(mosaic_of(scene(384, 512)))
    path = write_dng(tmp_path / "shot.dng", stored(mosaic))
    assert main(["noise", str(path), "--json"]) == 0
    found = Noise.from_json(capsys.readouterr().out)
    assert found.kind == "poisson"
    at = (WHITE - BLACK) / 4
    assert found.sigma_at(at) == pytest.approx((SENSOR_GAIN * at + READ**2) ** 0.5, rel=0.1)
    assert main(["noise", str(path)]) == 0
    gain = float(capsys.readouterr().out.split("gain ")[1].split(",")[0])
    assert gain == pytest.approx(found.levels[0].gain, rel=0.01)


def test_noise_is_drawn(
    files: Path, tmp_path: Path, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "noise.png"
    assert main(["noise", str(files / "photons.tif"), "-o", str(figure)]) == 0
    assert "photon noise" in capsys.readouterr().out
    assert figure.read_bytes()[:4] == b"\x89PNG"
    assert "exists" in fails("noise", files / "photons.tif", "-o", figure)
    assert ".svg" in fails("noise", files / "photons.tif", "-o", tmp_path / "noise.jpg")
    before = (files / "white.png").read_bytes()
    own = fails("noise", files / "white.png", "-o", files / "white.png", "--overwrite")
    assert "the input itself" in own
    assert (files / "white.png").read_bytes() == before


def test_the_figure_shows_level_and_spectrum() -> None:
    pytest.importorskip("matplotlib")
    from nlnet.noise.levels import Level
    from nlnet.noise.record import Photon
    from nlnet.plotting.noise import draw_noise

    camera = Camera.even(9.0, (1.0, 1.5, 2.0))
    photons = Noise.poisson(gain=2.0, read=3.0)
    figure = draw_noise({"photo": camera, "cells": photons})
    levels, spectra = figure.axes
    flat, rising = (np.array(line.get_xydata()) for line in levels.get_lines())
    assert np.unique(flat[:, 1]).tolist() == [9.0]
    assert rising[[0, -1], 1] == pytest.approx([3.0, (2 * 255 + 9) ** 0.5])
    correlated, white = (np.array(line.get_xydata()) for line in spectra.get_lines()[:2])
    assert correlated.tolist() == [[0.5, 1.0], [0.25, 2.25], [0.125, 4.0]]
    assert white[:, 1].tolist() == [1.0, 1.0, 1.0]
    colors = Photon(tuple(Level(gain=gain) for gain in (1.0, 2.0, 3.0)))
    for shown, names in (
        (draw_noise({"rgb": colors}), ["red", "green", "blue"]),
        (figure, ["photo", "cells"]),
    ):
        assert [text.get_text() for text in shown.legends[0].get_texts()] == names


def test_looking_needs_neither_matplotlib_nor_torch(files: Path) -> None:
    code = (
        "import sys; from nlnet.cli import main; "
        f"code = main(['noise', {str(files / 'white.png')!r}]); "
        "sys.exit(code or bool({'matplotlib', 'torch'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
