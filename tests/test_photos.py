"""Photos for training: how they are prepared, their list, and the recipes that use them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import PROJECT

from nlnet.images import ImageFile, read_image, write_image
from nlnet.training.settings import read_settings

cv2 = pytest.importorskip("cv2")
sys.path.insert(0, str(PROJECT))
from scripts import photo_list, photos  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two photos: detail on the right, one color on the left."""
    for part in ("train", "val"):
        (tmp_path / part).mkdir()
        detail = np.random.default_rng(0).integers(0, 255, (500, 900, 3), np.uint8)
        detail[:, :450] = 90
        write_image(tmp_path / part / "one.png", ImageFile(detail))
    return tmp_path


def test_photos_become_tiles_and_always_the_same(folder: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / "first", tmp_path / "second"]
    for output in outputs:
        photos.main([str(folder), "-o", str(output)])
    names = [sorted(path.name for path in (output / "train").iterdir()) for output in outputs]
    assert names[0] == names[1]
    assert 50 < len(names[0]) <= 60
    assert 3 < len(list((outputs[0] / "val").iterdir())) <= 6
    for name in names[0]:
        first, second = (output / "train" / name for output in outputs)
        assert first.read_bytes() == second.read_bytes()
        assert read_image(first).pixels.shape == (224, 224, 3)


def test_tiles_with_detail_are_more_likely(folder: Path) -> None:
    photo = cv2.imread(str(folder / "train" / "one.png"))
    rng = np.random.default_rng(1)
    tiles = [photos.draw_tile(photo, rng) for _ in range(40)]
    assert np.mean([photos.detail(tile) > 20 for tile in tiles]) > 0.9


def test_smooth_photos_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    ramp = np.tile(np.linspace(0, 255, 600).astype(np.uint8)[:, np.newaxis], (400, 1, 3))
    write_image(tmp_path / "photos" / "sky.png", ImageFile(ramp))
    assert photos.prepare(tmp_path / "photos", tmp_path / "tiles", 40) < 4


@pytest.mark.parametrize("version", photos.VERSIONS, ids=lambda version: version.__name__)
def test_a_version_still_shows_the_photo(version: object) -> None:
    y, x = np.mgrid[:640, :720]
    waves = 128 + 60 * np.sin(x / 40) * np.cos(y / 30)
    photo = np.dstack([waves, waves * 0.8 + 20, 255 - waves]).astype(np.uint8)
    changed = version(photo, np.random.default_rng(2))  # type: ignore[operator]
    assert changed.dtype == np.uint8
    height, width = changed.shape[:2]
    expected = cv2.resize(photo, (width, height), interpolation=cv2.INTER_AREA)
    assert cv2.PSNR(changed, expected) > 35


def test_every_photo_is_listed_with_its_terms_and_checksum() -> None:
    rows = photo_list.read_list()
    assert len(rows) == len({row["sha256"] for row in rows}) == 251
    for row in rows:
        assert re.fullmatch(r"(train|val)/[^/]+\.jpg", row["file"])
        assert row["terms"] in ("CC0", "CC BY", "CC BY-SA", "Unsplash")
        assert re.fullmatch("[0-9a-f]{64}", row["sha256"])
    page = photo_list.PAGE.read_text(encoding="utf-8")
    credited = page.split("credits:begin")[1]
    assert all(Path(row["file"]).stem in credited for row in rows)
    assert not re.search("^- :", credited, re.MULTILINE)
    assert photo_list.fill_in(page, rows) == page


def test_no_recipe_of_open_models_begins_with_what_no_recipe_makes() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    found = re.search("OPEN_MODELS := (.*)", makefile)
    assert found is not None
    names = found[1].split()
    made: list[str] = []
    for name in names:
        settings = read_settings(PROJECT / "configs" / f"{name}.toml")
        starts = (settings.start, settings.refinement.start)
        assert {start for start in starts if start} <= {f"runs/{n}/best.safetensors" for n in made}
        assert settings.data.folders == ("train",)
        made.append(name)
    assert {path.stem for path in (PROJECT / "configs").glob("open-*.toml")} == set(names)
