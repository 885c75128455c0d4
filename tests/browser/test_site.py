"""The page without a server, from a plain file server under a sub-path, in chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import PROJECT

from benchmarks.browser_cases import KINDS, noisy_image
from benchmarks.main_thread import CATEGORIES, LONG, longest_task
from browser.conftest import BUILT
from browser.tour import SECONDS, Visits, by_command_line
from nlnet.images import ImageFile, read_image, write_image
from scripts.site import MOST, SITE, first_visit

pytestmark = [pytest.mark.site, BUILT]


def test_a_first_visit_loads_little() -> None:
    assert first_visit(SITE) <= MOST


@pytest.mark.parametrize("isolated", [True, False])
def test_it_says_how_many_threads_work(site: Visits, isolated: bool, noisy_png: Path) -> None:
    tour = site(isolated=isolated)
    tour.expect("#place", "threads" if isolated else "on one thread, because the page is not")
    tour.open_and_wait(noisy_png)
    tour.expect("#found", "Found: white noise, about 2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 3])
def test_results_are_those_of_the_command(
    site: Visits, tmp_path: Path, kind: str, channels: int
) -> None:
    path = tmp_path / "noisy.png"
    write_image(path, ImageFile(noisy_image(kind, channels)))
    tour = site()
    tour.open_and_wait(path)
    assert tour.download(tmp_path / "result.png") == "noisy-denoised.png"
    result = read_image(tmp_path / "result.png").pixels
    expected = by_command_line(path, [])
    if result.ndim > expected.ndim:
        result = result[..., 0]
    np.testing.assert_array_equal(result, expected)


def test_it_works_offline(site: Visits, noisy_png: Path) -> None:
    tour = site()
    tour.expect("#accepted", "PNG")
    kept = "() => caches.keys().then(([name]) => caches.open(name)).then((all) => all.keys())"
    tour.page.wait_for_function(f"() => ({kept})().then((keys) => keys.length > 40)")
    tour.page.context.set_offline(True)
    tour.page.reload()
    tour.open_and_wait(noisy_png)
    tour.expect("#found", "Found: white noise")


PATIENCE = 10_000 * SECONDS
"""Milliseconds for 3 megapixels, on a machine that is busy with other things."""

CANCEL = """async () => {
  const began = performance.now();
  document.getElementById("cancel").click();
  while (!document.getElementById("busy").hidden) {
    await new Promise((next) => setTimeout(next, 5));
  }
  return performance.now() - began;
}"""


@pytest.fixture
def large(photo: np.ndarray, tmp_path: Path) -> Path:
    """A photo of 3 megapixels."""
    write_image(tmp_path / "large.png", ImageFile(np.tile(photo, (8, 6, 1))))
    return tmp_path / "large.png"


@pytest.mark.parametrize("isolated", [True, False])
def test_cancel_answers_at_once(site: Visits, large: Path, isolated: bool) -> None:
    tried = []
    for _ in range(3):  # a busy machine may keep the page waiting as well: the best of three counts
        tour = site(isolated=isolated)
        tour.open(large)
        tour.expect("#busy-text", "Denoising 2")
        tried.append(tour.page.evaluate(CANCEL))
        if tried[-1] < 200:
            return
    assert min(tried) < 200


def test_the_page_never_keeps_people_waiting(
    browser: Any, site: Visits, large: Path, noisy_png: Path
) -> None:
    tour = site()
    tour.page.locator("#noise").select_option("white")
    browser.start_tracing(page=tour.page, categories=CATEGORIES)
    tour.open(large, noisy_png)
    tour.expect("#busy-text", "Denoising")
    tour.page.evaluate(CANCEL)
    tour.page.get_by_role("button", name="Run 2 again").click()
    tour.page.locator("#tally", has_text="2 of 2 done").wait_for(timeout=PATIENCE)
    tour.set_slider("grain", 40)
    tour.expect("#blend[data-drawn]")
    tour.page.get_by_role("button", name="Real size").click()
    tour.expect("#blend[data-drawn]")
    tour.page.mouse.move(500, 400)
    tour.page.mouse.wheel(0, -300)
    tour.expect("#blend[data-drawn]")
    tour.page.locator("#download-all").click()
    tour.page.locator("#status", has_text="saved").wait_for(state="attached", timeout=PATIENCE)
    assert 1 < longest_task(browser.stop_tracing()) < LONG


def test_strengths_blend_and_are_saved(site: Visits, noisy_png: Path, tmp_path: Path) -> None:
    tour = site()
    tour.open_and_wait(noisy_png)
    tour.set_slider("grain", 40)
    tour.expect("#blend")
    tour.download(tmp_path / "result.png")
    expected = by_command_line(noisy_png, [], "--strength", "0.4,1")
    np.testing.assert_array_equal(read_image(tmp_path / "result.png").pixels, expected)


def test_a_jpeg_keeps_what_it_says(site: Visits, photo: np.ndarray, tmp_path: Path) -> None:
    pyvips = pytest.importorskip("pyvips")
    image = pyvips.Image.new_from_array(photo).copy(interpretation="srgb")
    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "orientation", 6)
    image.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Artist", "A. Photographer")
    path = tmp_path / "photo.jpg"
    image.jpegsave(str(path), Q=92, profile="p3")
    tour = site()
    tour.open_and_wait(path)
    assert tour.download(tmp_path / "result.jpg") == "photo-denoised.jpg"
    result = pyvips.Image.new_from_file(str(tmp_path / "result.jpg"))
    assert (result.width, result.height) == (photo.shape[1], photo.shape[0])
    assert result.get("orientation") == 6
    assert "A. Photographer" in result.get("exif-ifd0-Artist")
    profile = pyvips.Image.new_from_file(str(path)).get("icc-profile-data")
    assert result.get("icc-profile-data") == profile


def test_a_file_of_another_format_says_the_same(
    site: Visits, photo: np.ndarray, tmp_path: Path
) -> None:
    pyvips = pytest.importorskip("pyvips")
    image = pyvips.Image.new_from_array(photo).copy(interpretation="srgb")
    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "orientation", 6)
    image.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Artist", "A. Photographer")
    for first, other in (("jpg", "png"), ("png", "jpg")):
        path = tmp_path / f"photo.{first}"
        image.write_to_file(str(path), profile="p3")
        tour = site()
        tour.page.locator("#format").select_option({"jpg": "jpeg"}.get(other, other))
        tour.open_and_wait(path)
        assert tour.page.locator("#notes").is_hidden()
        assert tour.download(tmp_path / f"result.{other}") == f"photo-denoised.{other}"
        result = pyvips.Image.new_from_file(str(tmp_path / f"result.{other}"))
        profile = pyvips.Image.new_from_file(str(path)).get("icc-profile-data")
        assert result.get("icc-profile-data") == profile
        assert (result.width, result.get("orientation")) == (photo.shape[1], 6)
        assert "A. Photographer" in result.get("exif-ifd0-Artist")


def test_other_colors_are_converted_and_other_images_left_out(
    site: Visits, photo: np.ndarray, tmp_path: Path
) -> None:
    pyvips = pytest.importorskip("pyvips")
    image = pyvips.Image.new_from_array(photo).copy(interpretation="srgb")
    paths = [tmp_path / f"photo.{name}" for name in ("webp", "jpg")]
    wide = image.icc_transform("p3", input_profile="srgb")
    wide.write_to_file(str(paths[0]), lossless=True, profile="p3")
    image.colourspace("cmyk").write_to_file(str(paths[1]), Q=100, profile="cmyk")
    for path in paths:
        tour = site()
        tour.page.locator("#format").select_option("png")
        tour.page.locator("#noise").select_option("white")
        tour.open_and_wait(path)
        tour.expect("#notes", "converted to sRGB")
        tour.download(tmp_path / "result.png")
        result = pyvips.Image.new_from_file(str(tmp_path / "result.png"))
        assert "icc-profile-data" not in result.get_fields()
        means = result.numpy().reshape(-1, result.bands)[:, :3].mean(axis=0)
        given = photo.reshape(-1, 3).mean(axis=0)
        np.testing.assert_allclose(means, given, atol=1.5 if path.suffix == ".webp" else 12)
    image.write_to_file(str(tmp_path / "double.jpg"), Q=95)
    jpeg = (tmp_path / "double.jpg").read_bytes()
    index = b"\xff\xe2\x00\x0eMPF\0" + bytes(8)
    (tmp_path / "double.jpg").write_bytes(jpeg[:2] + index + jpeg[2:])
    tour = site()
    tour.open_and_wait(tmp_path / "double.jpg")
    tour.expect("#notes", "its further images (previews or a gain map) are left out")
    tour.download(tmp_path / "single.jpg")
    assert b"MPF\0" not in (tmp_path / "single.jpg").read_bytes()


def test_what_only_the_command_can_do_is_said(site: Visits, tmp_path: Path) -> None:
    deep = np.random.default_rng(2).normal(30000, 3000, (60, 80)).astype(np.uint16)
    write_image(tmp_path / "deep.png", ImageFile(deep))
    write_image(tmp_path / "scan.tif", ImageFile(deep))
    tour = site()
    tour.open(tmp_path / "scan.tif")
    tour.expect("[role=alert]", "need the nlnet command, or its server")
    tour.open_and_wait(tmp_path / "deep.png")
    tour.expect("#notes", "its 16 bits become 8; the nlnet command and its server keep them")
    pyvips = pytest.importorskip("pyvips")
    image = pyvips.Image.new_from_array(deep).copy(interpretation="grey16")
    image.heifsave(str(tmp_path / "deep.avif"), compression="av1", bitdepth=10)
    tour.open(tmp_path / "deep.avif")
    choose = tour.page.locator(".file", has_text="deep.avif")
    choose.click()
    tour.expect("#notes", "its 10 bits become 8")


def test_axe_finds_nothing(site: Visits, noisy_png: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tour = site()
    tour.open_and_wait(noisy_png)
    assert axe.run(tour.page).response["violations"] == []
    shots = PROJECT / "build" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    tour.page.screenshot(path=shots / "site.png")
