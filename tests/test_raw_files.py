from __future__ import annotations

import builtins
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile
from messages import refused

from nlnet.cli import main
from nlnet.errors import Cancelled, FileError, InputError
from nlnet.evaluation.metrics import psnr
from nlnet.files.findings import Outcome
from nlnet.files.one_file import denoise_file
from nlnet.files.settings import Settings
from nlnet.images import read_image
from nlnet.images.raw_files import has_raw_suffix
from nlnet.noise.record import Noise
from nlnet.raw.development import Development
from tests.raw_cases import (
    BLACK,
    GAIN,
    READ,
    WHITE,
    X_TRANS,
    mosaic_of,
    scene,
    shoot,
    stored,
    write_dng,
)

pytest.importorskip("rawpy")

PLAIN = Development(no_auto_bright=True)
REFUSALS = (FileError, InputError)


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    return write_dng(tmp_path / "shot.dng", stored(shoot(mosaic_of(scene()))))


def develop(path: Path, target: Path, **settings: Any) -> np.ndarray:
    denoise_file(path, target, Settings(development=PLAIN, **settings))
    return read_image(target).pixels


def cut(path: Path, share: float) -> Path:
    data = path.read_bytes()
    short = path.with_name("cut.dng")
    short.write_bytes(data[: int(share * len(data))])
    return short


def test_a_shot_comes_near_to_the_one_without_noise(shot: Path, tmp_path: Path) -> None:
    clean = write_dng(tmp_path / "clean.dng", stored(mosaic_of(scene())))
    wanted = develop(clean, tmp_path / "clean.tif") / 257
    noisy = develop(shot, tmp_path / "noisy.tif", strength=0.0) / 257
    denoised = develop(shot, tmp_path / "denoised.tif") / 257
    assert psnr(wanted, denoised) > psnr(wanted, noisy) + 7
    # Black level, white level, colors: every part is as bright as it was.
    np.testing.assert_allclose(denoised.mean(axis=(0, 1)), wanted.mean(axis=(0, 1)), rtol=0.01)


def told_noise(outcome: Outcome) -> list[float]:
    """The gain and the read noise in what is said of a file."""
    return [float(number) for number in re.findall(r"[\d.]+", outcome.findings.noise[0])]


def test_noise_is_found_and_told(shot: Path, tmp_path: Path) -> None:
    large = write_dng(tmp_path / "large.dng", stored(shoot(mosaic_of(scene(384, 512)))))
    outcome = denoise_file(large, tmp_path / "large.tif", Settings())
    assert told_noise(outcome)[0] == pytest.approx(GAIN, rel=0.1)
    assert outcome.before is None
    middle = (WHITE - BLACK) / 4
    expected = np.sqrt(GAIN * middle + READ**2) * 255 / (WHITE - BLACK)
    assert outcome.findings.sigmas == pytest.approx([expected], rel=0.05)


def test_without_denoising_it_is_what_libraw_makes(shot: Path, tmp_path: Path) -> None:
    import rawpy

    ours = develop(shot, tmp_path / "ours.tif", strength=0.0).astype(int)
    with rawpy.imread(str(shot)) as raw:
        theirs = raw.postprocess(
            use_camera_wb=True, no_auto_bright=True, output_bps=16, gamma=(2.4, 12.92)
        ).astype(int)
    # Rounding on another scale may tip the balance where AHD chooses between two directions.
    assert np.quantile(np.abs(ours - theirs), 0.99) < 65535 / 200


@pytest.mark.parametrize("pattern", [((1, 0), (2, 1)), ((1, 2), (0, 1)), ((2, 1), (1, 0))])
def test_other_bayer_patterns(pattern: Any, tmp_path: Path) -> None:
    clean = write_dng(tmp_path / "clean.dng", stored(mosaic_of(scene(), pattern)), pattern)
    noisy = write_dng(tmp_path / "noisy.dng", stored(shoot(mosaic_of(scene(), pattern))), pattern)
    wanted = develop(clean, tmp_path / "clean.tif") / 257
    before = develop(noisy, tmp_path / "before.tif", strength=0.0) / 257
    after = develop(noisy, tmp_path / "after.tif") / 257
    assert psnr(wanted, after) > psnr(wanted, before) + 7


def test_a_pattern_that_begins_behind_a_margin(tmp_path: Path) -> None:
    # The pattern of a DNG begins where its active area does, here at odd pixels; of these LibRaw
    # takes another row and column away.
    area = (50829, "H", 4, (5, 3, 95, 127), True)
    clean = mosaic_of(scene(), ((2, 1), (1, 0)))
    pictures = []
    for name, mosaic in (("clean", clean), ("noisy", shoot(clean))):
        pixels = stored(mosaic)
        pixels[:5], pixels[:, :3] = 0, 0
        path = write_dng(tmp_path / f"{name}.dng", pixels, more_tags=[area])
        pictures.append(develop(path, tmp_path / f"{name}.tif") / 257)
    assert pictures[0].shape == (89, 123, 3)
    before = develop(path, tmp_path / "before.tif", strength=0.0) / 257
    assert psnr(pictures[0], pictures[1]) > psnr(pictures[0], before) + 6


def test_a_sensor_without_colors(tmp_path: Path) -> None:
    gray = np.asarray(scene().mean(axis=2) * (WHITE - BLACK))
    clean = write_dng(tmp_path / "clean.dng", stored(gray), None)
    noisy = write_dng(tmp_path / "noisy.dng", stored(shoot(gray)), None)
    wanted = develop(clean, tmp_path / "clean.tif") / 257
    before = develop(noisy, tmp_path / "before.tif", strength=0.0) / 257
    after = develop(noisy, tmp_path / "after.tif") / 257
    assert after.shape == (96, 128)
    assert psnr(wanted, after) > psnr(wanted, before) + 7
    with refused(InputError, "grayscale"):
        develop(noisy, tmp_path / "pair.tif", strength=(0.5, 1.0))


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_orientation_is_applied_once(orientation: int, tmp_path: Path) -> None:
    pixels = stored(shoot(mosaic_of(scene())))
    upright = develop(write_dng(tmp_path / "0.dng", pixels), tmp_path / "0.tif")
    path = write_dng(tmp_path / "turned.dng", pixels, orientation=orientation)
    turned = develop(path, tmp_path / "turned.tif")
    quarters = {3: 2, 6: -1, 8: 1}[orientation]
    np.testing.assert_array_equal(turned, np.rot90(upright, quarters))
    with tifffile.TiffFile(tmp_path / "turned.tif") as file:
        assert file.pages[0].tags.valueof("Orientation", 1) == 1
    develop(path, tmp_path / "turned.jpg")
    with PIL.Image.open(tmp_path / "turned.jpg") as image:
        assert image.getexif().get(274, 1) == 1


def test_profile_and_exif_are_written(shot: Path, tmp_path: Path) -> None:
    profiles = []
    for color in ("sRGB", "P3D65"):
        settings = Settings(development=Development(output_color=color))
        denoise_file(shot, tmp_path / f"{color}.tif", settings)
        with tifffile.TiffFile(tmp_path / f"{color}.tif") as file:
            tags = file.pages[0].tags
            assert file.pages[0].dtype == np.uint16
            assert tags["Make"].value == "Testmaker"
            assert tags["Model"].value == "Model One"
            profiles.append(tags["InterColorProfile"].value)
    assert profiles[0] != profiles[1]


def test_the_format_decides_on_the_depth(shot: Path, tmp_path: Path) -> None:
    assert develop(shot, tmp_path / "a.png").dtype == np.uint16
    assert develop(shot, tmp_path / "a.jpg").dtype == np.uint8
    with refused(InputError, "suffix"):
        develop(shot, tmp_path / "a.dng2")


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.99])
def test_a_file_cut_short(
    shot: Path, tmp_path: Path, share: float, capfd: pytest.CaptureFixture[str]
) -> None:
    short = cut(shot, share)
    with refused(FileError, "cut.dng"):
        develop(short, tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"no raw file", b"II*\0\x08\0\0\0" + bytes(500)])
def test_files_that_libraw_does_not_know(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.cr3"
    path.write_bytes(content)
    with refused(FileError, "Cannot read", "a.cr3"):
        develop(path, tmp_path / "a.tif")
    with refused(FileError, "No such file"):
        develop(tmp_path / "none.nef", tmp_path / "a.tif")
    (tmp_path / "folder.nef").mkdir()
    with refused(FileError, "Cannot read"):
        develop(tmp_path / "folder.nef", tmp_path / "a.tif")


def test_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    x_trans = stored(mosaic_of(scene(), X_TRANS))
    path = write_dng(tmp_path / "x.dng", x_trans, X_TRANS)
    with refused(InputError, "X-Trans"):
        develop(path, tmp_path / "a.tif")
    linear = np.dstack([stored(mosaic_of(scene()))] * 3)
    with refused(InputError, "linear DNG"):
        develop(write_dng(tmp_path / "l.dng", linear, None), tmp_path / "a.tif")
    tiny = write_dng(tmp_path / "t.dng", stored(mosaic_of(scene()))[:40, :12])
    with refused(REFUSALS, "t.dng"):
        develop(tiny, tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()


def test_large_files_are_refused_before_they_are_unpacked(shot: Path, tmp_path: Path) -> None:
    with refused(InputError, "128x96 pixels"):
        develop(shot, tmp_path / "a.tif", max_pixels=10_000)


@pytest.mark.parametrize("level", [0, BLACK, WHITE])
def test_mosaics_without_noise_are_left_as_they_are(level: int, tmp_path: Path) -> None:
    path = write_dng(tmp_path / "flat.dng", np.full((64, 64), level, np.uint16))
    outcome = denoise_file(path, tmp_path / "flat.tif", Settings(development=PLAIN))
    assert any("left as it is" in note for note in outcome.findings.notes)
    assert np.ptp(read_image(tmp_path / "flat.tif").pixels, axis=(0, 1)).max() == 0


def test_noise_that_does_not_grow_with_the_light(tmp_path: Path) -> None:
    clean = mosaic_of(scene())
    grain = np.random.default_rng(0).normal(0, 20.0, clean.shape)
    truth = write_dng(tmp_path / "clean.dng", stored(clean))
    noisy = write_dng(tmp_path / "noisy.dng", stored(clean + grain))
    wanted = develop(truth, tmp_path / "clean.tif", strength=0.0) / 257
    before = develop(noisy, tmp_path / "before.tif", strength=0.0) / 257
    after = develop(noisy, tmp_path / "after.tif", noise=Noise.poisson(1e-9, 20.0)) / 257
    assert psnr(wanted, after) > psnr(wanted, before) + 5


def test_two_levels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pixels = np.where(rng.random((64, 64)) < 0.5, BLACK, WHITE).astype(np.uint16)
    path = write_dng(tmp_path / "two.dng", pixels)
    assert develop(path, tmp_path / "two.tif").shape == (64, 64, 3)


def test_damaged_bytes_raise_nothing_else(shot: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = np.frombuffer(shot.read_bytes(), np.uint8)
    path = tmp_path / "damaged.dng"
    for _ in range(25):
        damaged = data.copy()
        # The directory is at the start or the end, the pixels are elsewhere.
        places = rng.integers(0, 600, 6) * rng.choice([-1, 1], 6)
        damaged[places] = rng.integers(0, 256, 6)
        path.write_bytes(damaged.tobytes())
        (tmp_path / "a.tif").unlink(missing_ok=True)
        try:
            develop(path, tmp_path / "a.tif", max_pixels=1_000_000)
        except REFUSALS:
            assert not (tmp_path / "a.tif").exists()


def test_given_noise_is_used(shot: Path, tmp_path: Path) -> None:
    weak = develop(shot, tmp_path / "weak.tif", noise=Noise.poisson(GAIN / 100, READ / 10)).astype(
        float
    )
    found = develop(shot, tmp_path / "found.tif").astype(float)
    noisy = develop(shot, tmp_path / "noisy.tif", strength=0.0).astype(float)
    assert np.abs(weak - noisy).mean() < np.abs(found - noisy).mean() / 2
    with refused(InputError, "white noise, sigma 5"):
        develop(shot, tmp_path / "white.tif", noise=Noise.white(5.0))


def test_a_run_that_is_stopped_writes_nothing(shot: Path, tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        denoise_file(shot, tmp_path / "a.tif", Settings(), lambda share: share < 0.5)
    assert not (tmp_path / "a.tif").exists()


@pytest.mark.parametrize("given", [{"sigma": 5.0}, {"model": "gray-5x5"}, {"data_range": 4095.0}])
def test_what_a_raw_file_says_itself_cannot_be_given(
    given: dict[str, Any], shot: Path, tmp_path: Path
) -> None:
    with refused(InputError, "is a raw file"):
        denoise_file(shot, tmp_path / "a.tif", dataclasses.replace(Settings(), **given))


def test_without_rawpy(shot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "rawpy":
            raise ModuleNotFoundError("No module named 'rawpy'", name="rawpy")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with refused(InputError, "pip install 'nlnet[raw]'"):
        denoise_file(shot, tmp_path / "a.tif", Settings())


def test_options_of_development(shot: Path, tmp_path: Path) -> None:
    plain = develop(shot, tmp_path / "plain.tif").mean()
    settings = Settings(development=Development(no_auto_bright=True, bright=2.0))
    denoise_file(shot, tmp_path / "bright.tif", settings)
    assert read_image(tmp_path / "bright.tif").pixels.mean() > 1.2 * plain
    for wrong in ({"output_color": "CMYK"}, {"highlight_mode": "x"}, {"bright": 0.0}):
        with refused(InputError, "but must be"):
            Development(**wrong)


def test_the_command(shot: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target, preview = tmp_path / "a.tif", tmp_path / "look.png"
    options = ["--highlight-mode", "Blend", "--preview", str(preview)]
    assert main(["denoise", str(shot), "-o", str(target), *options]) == 0
    assert "photon noise, gain" in capfd.readouterr().out
    assert target.exists()
    assert preview.exists()
    assert main(["denoise", str(cut(shot, 0.5)), "-o", str(tmp_path / "b.tif")]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert not (tmp_path / "b.tif").exists()


def test_a_folder(shot: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "IMG.DNG").write_bytes(shot.read_bytes())
    (folder / "cut.nef").write_bytes(shot.read_bytes()[:9000])
    PIL.Image.fromarray(np.full((32, 32), 99, np.uint8)).save(folder / "IMG.jpg")
    assert main(["denoise", str(folder), "-o", str(tmp_path / "out")]) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["IMG.jpg", "IMG.tif"]


def test_a_real_file(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "real" / "raw" / "colorchart.dng"
    if not path.is_file():
        pytest.skip("no raw file in the data folder")
    outcome = denoise_file(path, tmp_path / "chart.tif", Settings(), keep_before=True)
    # By eye, from the flat fields of the chart: variance 2.1 x + 150.
    gain, read = told_noise(outcome)
    assert gain == pytest.approx(2.1, rel=0.1)
    assert read == pytest.approx(12, rel=0.2)
    assert outcome.before is not None
    after, before = (image.pixels.astype(float) for image in (outcome.after, outcome.before))
    assert after.shape == (1156, 1734, 3)
    field = np.s_[900:960, 895:955]  # one of the chart's fields
    assert (after[field].std(axis=(0, 1)) < before[field].std(axis=(0, 1)) / 3).all()
    np.testing.assert_allclose(
        after[field].mean(axis=(0, 1)), before[field].mean(axis=(0, 1)), rtol=0.01
    )


def test_names() -> None:
    assert has_raw_suffix(Path("a/B.NEF"))
    assert not has_raw_suffix("a.tif")
