"""What the page on raw files claims: its table, and that denoising before demosaicing gains."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from paths import PROJECT

from benchmarks.raw import AFTER, ESTIMATED, SHIPPED, after_demosaicing, format_table
from benchmarks.raw_camera import PATTERN, WHITE_BALANCE, RawCamera, read_picture
from benchmarks.raw_routes import (
    four_gray_planes,
    one_gray_image,
    quads,
    shifted_quads,
    two_color_images,
)
from nlnet.evaluation.metrics import psnr
from nlnet.raw.mosaic import denoise_mosaic


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    """The committed figures, which the source distribution leaves out."""
    path = PROJECT / "docs" / "results" / "raw.json"
    if not path.is_file():
        pytest.skip("no figures here")
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


@pytest.mark.parametrize("figure", ["picture", "mosaic"])
def test_the_tables_are_those_of_the_figures(figure: str, results: list[dict[str, Any]]) -> None:
    assert format_table(results, figure) in (PROJECT / "docs" / "raw.md").read_text()


def test_the_shipped_way_gains_at_every_level_of_light(results: list[dict[str, Any]]) -> None:
    levels = {row["photons"] for row in results}
    assert len(levels) >= 4
    for photons in levels:
        rows = {row["way"]: row["picture"] for row in results if row["photons"] == photons}
        assert min(rows[SHIPPED], rows[ESTIMATED]) > rows[AFTER] + 0.5


@pytest.mark.parametrize("photons", [20.0, 300.0])
def test_it_gains_on_a_photo_that_is_at_hand(photons: float) -> None:
    camera = RawCamera(photons)
    clean = camera.expose(read_picture(str(PROJECT / "examples" / "cat.png"))[60:220, 60:220])
    noisy = camera.add_noise(clean, seed=0)
    truth = camera.develop(clean)
    denoised = denoise_mosaic(noisy, PATTERN, 1.0, camera.read, white_balance=WHITE_BALANCE)
    best = max(after_demosaicing(camera.develop(noisy), truth))
    assert psnr(truth, camera.develop(denoised)) > best + 0.5


def test_the_camera_develops_what_it_saw() -> None:
    camera = RawCamera(1000.0)
    picture = np.full((16, 16, 3), (200, 120, 60), np.uint8)
    np.testing.assert_allclose(camera.develop(camera.expose(picture)), picture, atol=1e-6)


@pytest.mark.parametrize(
    "route", [four_gray_planes, one_gray_image, two_color_images, quads, shifted_quads]
)
def test_every_way_removes_noise_and_nothing_else(route: object) -> None:
    rng = np.random.default_rng(0)
    light = 30 / np.sqrt(np.array([[WHITE_BALANCE[0], 1], [1, WHITE_BALANCE[2]]]))
    mosaic = np.tile(light, (32, 32))
    restored = route(mosaic + rng.standard_normal(mosaic.shape))  # type: ignore[operator]
    assert restored.shape == mosaic.shape
    assert np.std(restored - mosaic) < 0.35
    for row in (0, 1):
        for column in (0, 1):
            assert abs((restored - mosaic)[row::2, column::2].mean()) < 0.15
