"""Series in files, folders and dask arrays: the same bits as in memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from messages import refused

import nlnet
from nlnet.cli import main
from nlnet.denoising import series_pages
from nlnet.errors import InputError
from nlnet.images import ImageFile, read_image, read_pages, write_image, write_pages

da = pytest.importorskip("dask.array")
tifffile = pytest.importorskip("tifffile")
zarr = pytest.importorskip("zarr")

import nlnet.dask  # noqa: E402

PAGES, HEIGHT, WIDTH = 19, 40, 44


@pytest.fixture(scope="module")
def movie() -> np.ndarray:
    """A film that moves, with noise of 20."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    pages = [120 + 60 * np.sin((x - 0.7 * t) / 5) + 30 * (y > 20 + t / 3) for t in range(PAGES)]
    noise = np.random.default_rng(0).normal(0, 20, (PAGES, HEIGHT, WIDTH))
    return np.clip(np.rint(np.stack(pages) + noise), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def denoised(movie: np.ndarray) -> np.ndarray:
    return np.asarray(nlnet.denoise_stack(movie, 20.0, along=0))


def run(*arguments: object) -> None:
    assert main(["denoise", *map(str, arguments), "--sigma", "20"]) == 0


# --- dask ------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [(1, 20, 30), (7, 40, 44), (19, 40, 44)])
def test_chunks_of_a_dask_array(
    movie: np.ndarray, denoised: np.ndarray, chunks: tuple[int, ...]
) -> None:
    lazy = nlnet.dask.denoise(da.from_array(movie, chunks=chunks), 20.0, stacked=1, along=0)
    assert lazy.chunksize == chunks
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), denoised)


@pytest.mark.parametrize(
    "more", [{}, {"sigma": 20.0}, {"sigma": np.full((HEIGHT, WIDTH), 20.0) + np.eye(HEIGHT, WIDTH)}]
)
@pytest.mark.parametrize("window", [4096, 30])
def test_missing_pages_maps_and_windows(
    movie: np.ndarray, more: dict, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_pages, "_WINDOW", window)
    monkeypatch.setattr(series_pages, "_AROUND", 12)
    pages = movie.astype(np.float32)
    pages[7] = np.nan
    pages[3, 5:9, 10:16] = np.nan
    stack = np.stack([pages, pages[::-1, ::-1]], axis=1)
    how = {"along": 0, "data_range": 255.0, **more}
    lazy = da.from_array(stack, chunks=(4, 1, 40, 44))
    result = nlnet.dask.denoise(lazy, stacked=2, **how).compute(scheduler="synchronous")
    np.testing.assert_array_equal(result, nlnet.denoise_stack(stack, **how))
    assert np.isnan(result[7, 0]).all()
    assert np.isfinite(np.delete(result[:, 0], (3, 7), axis=0)).all()


def test_windows_have_no_visible_seams(
    movie: np.ndarray, denoised: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_pages, "_WINDOW", 30)
    monkeypatch.setattr(series_pages, "_AROUND", 20)
    cut = nlnet.denoise_stack(movie, 20.0, along=0)
    assert np.abs(cut.astype(float) - denoised).mean() < 1


def test_masked_arrays_in_windows(movie: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_pages, "_WINDOW", 30)
    monkeypatch.setattr(series_pages, "_AROUND", 20)
    mask = np.zeros(movie[:3].shape, bool)
    mask[1, 10:14, 28:33] = True
    result = nlnet.denoise_stack(np.ma.MaskedArray(movie[:3], mask), 20.0, along=0)
    np.testing.assert_array_equal(result.mask, mask)
    np.testing.assert_array_equal(result.data[mask], movie[:3][mask])


def test_an_axis_that_dask_does_not_have(movie: np.ndarray) -> None:
    with refused(InputError, "along is 1", "(19,)"):
        nlnet.dask.denoise(da.from_array(movie), 20.0, stacked=1, along=1)


# --- Zarr and TIFF ---------------------------------------------------------------------------


def make_zarr(path: Path, movie: np.ndarray) -> None:
    array = zarr.create_array(
        str(path),
        shape=movie.shape,
        dtype="uint8",
        chunks=(1, 20, 20),
        dimension_names=["t", "y", "x"],
    )
    array[:] = movie


@pytest.mark.parametrize("along", ["t", "0", "pages"])
def test_zarr(movie: np.ndarray, denoised: np.ndarray, along: str, tmp_path: Path) -> None:
    make_zarr(tmp_path / "in.zarr", movie)
    run(tmp_path / "in.zarr", "-o", tmp_path / "out.zarr", "--along", along)
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "out.zarr"))[:], denoised)
    named = nlnet.denoise_stack(zarr.open(str(tmp_path / "in.zarr")), 20.0, along="t")
    np.testing.assert_array_equal(named, denoised)


def test_a_run_that_was_killed_goes_on(movie: np.ndarray, tmp_path: Path) -> None:
    long = np.concatenate([movie] * 4)
    make_zarr(tmp_path / "in.zarr", long)
    command = ["in.zarr", "-o", "out.zarr", "--along", "t", "--sigma", "20"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nlnet", "denoise", *command], cwd=tmp_path, stderr=subprocess.PIPE
    )
    marks = tmp_path / ".nlnet-out.zarr.partial" / ".nlnet" / "blocks"
    while process.poll() is None and not (marks.is_dir() and any(marks.iterdir())):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert any(marks.iterdir())
    run(tmp_path / "in.zarr", "-o", tmp_path / "out.zarr", "--along", "t")
    whole = nlnet.denoise_stack(long, 20.0, along=0)
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "out.zarr"))[:], whole)


@pytest.mark.parametrize("how", [{"imagej": True}, {"ome": True}, {}])
def test_tiff_files_that_name_their_axes(movie: np.ndarray, how: dict, tmp_path: Path) -> None:
    stack = np.stack([movie[:6], movie[:6, ::-1]], axis=1)
    tifffile.imwrite(tmp_path / "in.tif", stack, metadata={"axes": "TCYX"}, **how)
    run(tmp_path / "in.tif", "-o", tmp_path / "out.tif", "--along", "t")
    pages = [page.pixels for page in read_pages(tmp_path / "out.tif")]
    expected = nlnet.denoise_stack(stack, 20.0, along=0)
    np.testing.assert_array_equal(np.reshape(pages, stack.shape), expected)


def test_all_pages_of_a_tiff_file(movie: np.ndarray, denoised: np.ndarray, tmp_path: Path) -> None:
    write_pages(tmp_path / "in.tif", [ImageFile(page) for page in movie])
    for along in ("pages", "0"):
        run(tmp_path / "in.tif", "-o", tmp_path / "out.tif", "--along", along, "--overwrite")
        pages = [page.pixels for page in read_pages(tmp_path / "out.tif")]
        np.testing.assert_array_equal(pages, denoised)


def test_axes_that_a_file_does_not_have(
    movie: np.ndarray, tmp_path: Path, fails: Callable[..., str]
) -> None:
    write_pages(tmp_path / "in.tif", [ImageFile(page) for page in movie])
    wrong = fails("denoise", tmp_path / "in.tif", "-o", tmp_path / "out.tif", "--along", "t")
    assert "'t'" in wrong
    assert "pages" in wrong
    wrong = fails("denoise", tmp_path / "in.tif", "-o", tmp_path / "out.tif", "--along", "files")
    assert "folder" in wrong


# --- Folders of numbered images --------------------------------------------------------------


@pytest.fixture
def frames(movie: np.ndarray, tmp_path: Path) -> Path:
    (tmp_path / "frames").mkdir()
    for number, page in enumerate(movie):
        write_image(tmp_path / "frames" / f"f{number}.png", ImageFile(page))
    return tmp_path / "frames"


def test_the_images_of_a_folder_and_those_that_are_left(
    frames: Path, denoised: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    out = frames.parent / "out"
    run(frames, "-o", out, "--along", "files")
    (out / "f2.png").unlink()
    (out / "f11.png").unlink()
    run(frames, "-o", out, "--along", "files")
    assert "2 written, 17 skipped" in capsys.readouterr().out
    for number, page in enumerate(denoised):
        np.testing.assert_array_equal(read_image(out / f"f{number}.png").pixels, page)


def test_noise_is_estimated_once(frames: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["denoise", str(frames), "-o", str(frames.parent / "out"), "--along", "files"]
    assert main(arguments) == 0
    found = {line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()[:PAGES]}
    assert len(found) == 1


def test_images_of_another_size(frames: Path, fails: Callable[..., str]) -> None:
    write_image(frames / "f5.png", ImageFile(np.zeros((20, 30), np.uint8)))
    wrong = fails("denoise", frames, "-o", frames.parent / "out", "--along", "files")
    assert "f5.png" in wrong
    assert "30x20" in wrong
    assert "44x40" in wrong


@pytest.mark.parametrize("start", [b"\0\0\0 ftypisom", b"\x1aE\xdf\xa3", b"RIFF\0\0\0\0AVI LIST"])
def test_video_files_are_told_the_way(
    start: bytes, tmp_path: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "film").write_bytes(start.ljust(64, b"\0"))
    wrong = fails("denoise", tmp_path / "film", "-o", tmp_path / "out.png")
    assert "ffmpeg" in wrong
    assert "--along files" in wrong


# --- Animations ------------------------------------------------------------------------------


@pytest.fixture
def animation(movie: np.ndarray, tmp_path: Path) -> Path:
    frames = [PIL.Image.fromarray(page) for page in movie]
    delays = [50 + 10 * number for number in range(PAGES)]
    path = tmp_path / "in.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=delays, loop=3)
    return path


def test_the_frames_of_a_gif_and_how_long_they_are_shown(
    animation: Path, denoised: np.ndarray
) -> None:
    out = animation.parent / "out.gif"
    run(animation, "-o", out, "--along", "pages")
    # A palette of 256 colors for all frames, one of which is transparent, has not every gray.
    written = np.array([page.pixels for page in read_pages(out)], float)
    np.testing.assert_allclose(written, denoised, atol=2)
    with PIL.Image.open(out) as film:
        assert film.info["loop"] == 3
        for number in range(PAGES):
            film.seek(number)
            assert film.info["duration"] == 50 + 10 * number


def test_the_frames_of_a_gif_as_pages_of_a_tiff_file(
    animation: Path, denoised: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    out = animation.parent / "out.tif"
    run(animation, "-o", out, "--along", "pages")
    np.testing.assert_array_equal([page.pixels for page in read_pages(out)], denoised)
    assert "how long its frames are shown" in "".join(capsys.readouterr())


def test_frames_of_colors_and_transparency(tmp_path: Path) -> None:
    colors = np.random.default_rng(0).integers(0, 8, (40, 12, 10, 3)).astype(np.uint8) * 32
    colors[:, :, :, 1:] = colors[:, :, :, :1]
    colors[33, 2, 3] = 200, 0, 0  # one pixel makes all frames color
    write_pages(tmp_path / "a.gif", [ImageFile(page) for page in colors])
    np.testing.assert_array_equal([page.pixels for page in read_pages(tmp_path / "a.gif")], colors)
    alpha = np.where(np.eye(12, 10) > 0, 0, 255).astype(np.uint8)
    write_pages(tmp_path / "b.gif", [ImageFile(page, alpha) for page in colors[:3]])
    for page in read_pages(tmp_path / "b.gif"):
        np.testing.assert_array_equal(page.alpha, alpha)
