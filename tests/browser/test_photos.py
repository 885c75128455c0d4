"""Many photos: their settings, their list, what fails, and what would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import PROJECT
from raw_cases import mosaic_of, scene, shoot, stored, write_dng

from browser.tour import SECONDS, Visit, Visits, by_command_line
from nlnet.images import ImageFile, read_image, write_image

LAPTOP = {"viewport": {"width": 1366, "height": 850}}


@pytest.fixture
def photos(photo: np.ndarray, tmp_path: Path) -> list[Path]:
    """Three photos that differ."""
    paths = [tmp_path / f"photo {number}.png" for number in (1, 2, 3)]
    for number, path in enumerate(paths):
        write_image(path, ImageFile(np.roll(photo[:120, :160], 40 * number, axis=1)))
    return paths


def open_all(tour: Visit, paths: list[Path]) -> None:
    tour.open(*paths)
    wait_for_all(tour, len(paths))


def wait_for_all(tour: Visit, count: int) -> None:
    for place in range(count):
        row = tour.page.locator("#file-list li").nth(place)
        row.get_by_text("done", exact=True).wait_for(timeout=60_000)


def choose(tour: Visit, place: int) -> None:
    tour.page.locator("#file-list li").nth(place).locator(".file").click()


# settings


def test_settings_are_those_of_a_photo_and_come_back_with_it(
    either: Visits, photos: list[Path], models: list[Path], tmp_path: Path
) -> None:
    tour = either()
    open_all(tour, photos)
    work = tour.work()
    tour.choose_noise("white")
    tour.page.locator("#format").select_option("jpeg")
    tour.expect("#jpeg-quality-row")
    wait_for_all(tour, 3)  # the others are as they were
    assert tour.work() == work + 2
    choose(tour, 1)
    assert tour.page.locator("#noise").input_value() == "auto"
    assert tour.page.locator("#format").input_value() == "same"
    assert tour.page.locator("#stale").is_hidden()
    assert tour.download(tmp_path / "second.png") == "photo 2-denoised.png"
    expected = by_command_line(photos[1], models)
    np.testing.assert_array_equal(read_image(tmp_path / "second.png").pixels, expected)
    choose(tour, 0)
    assert tour.page.locator("#noise").input_value() == "white"
    assert tour.expect("#download").get_attribute("download") == "photo 1-denoised.jpg"
    assert tour.page.locator("#stale").is_hidden()


def test_settings_that_came_to_nothing_are_not_those_of_the_result(
    either: Visits, photos: list[Path]
) -> None:
    tour = either()
    open_all(tour, photos[:2])
    tour.hold()
    tour.page.locator("#noise").select_option("white")
    tour.expect("#busy")
    tour.page.get_by_role("button", name="Cancel").click()
    tour.expect("#stale")
    choose(tour, 1)
    choose(tour, 0)
    assert tour.page.locator("#noise").input_value() == "auto"
    assert tour.page.locator("#stale").is_hidden()


def test_settings_for_all_photos(either: Visits, photos: list[Path], tmp_path: Path) -> None:
    tour = either()
    open_all(tour, photos)
    button = tour.page.get_by_role("button", name="Use for all")
    assert button.is_hidden()
    tour.page.locator("#format").select_option("jpeg")
    tour.set_slider("jpeg-quality", 60)
    button.click()
    for place, number in ((1, 2), (2, 3)):
        choose(tour, place)
        tour.page.locator(f"[download='photo {number}-denoised.jpg']").wait_for(timeout=30_000)
        assert tour.page.locator("#jpeg-quality").input_value() == "60"
    assert button.is_hidden()
    wait_for_all(tour, 3)
    assert tour.download(tmp_path / "result.jpg") == "photo 3-denoised.jpg"
    tour.open(photos[0])  # and for those that are added
    tour.page.locator("#file-list li").nth(3).get_by_text("done", exact=True).wait_for()
    assert tour.page.locator("#format").input_value() == "jpeg"


# strengths


def test_strengths_up_to_one_blend_at_once_and_compute_nothing(
    either: Visits, photos: list[Path], models: list[Path], tmp_path: Path
) -> None:
    tour = either()
    tour.open_and_wait(photos[0])
    tour.page.get_by_role("button", name="Real size").click()
    noisy, denoised = (tour.shown(name)[..., :3].astype(float) for name in ("before", "after"))
    asked = (tour.work(), len(tour.requests))
    for share in (60, 35):
        tour.set_slider("grain", share)
        tour.set_slider("chroma", share)
        expected = noisy + share / 100 * (denoised - noisy)
        assert np.abs(tour.blended() - expected).max() <= 1
    tour.set_slider("chroma", 80)
    shown = tour.blended()
    tour.page.wait_for_timeout(1000)  # longer than the page waits before it works
    assert (tour.work(), len(tour.requests)) == asked
    assert tour.page.locator("#stale").is_hidden()
    assert tour.page.locator("#run").is_hidden()
    assert tour.download(tmp_path / "result.png") == "photo 1-denoised.png"
    result = read_image(tmp_path / "result.png").pixels
    expected = by_command_line(photos[0], models, "--strength", "0.35,0.8")
    np.testing.assert_array_equal(result, expected)
    assert np.abs(shown - result).max() <= 1
    tour.set_slider("grain", 100)
    tour.set_slider("chroma", 100)
    tour.page.locator("#blend").wait_for(state="hidden")
    np.testing.assert_array_equal(tour.shown("after")[..., :3], denoised)


# noise that is not found


@pytest.fixture
def smooth(tmp_path: Path) -> Path:
    """A picture without noise, but with a little grain that may be texture."""
    rows, columns = np.mgrid[:160, :240]
    light = 120 + 60 * np.sin(rows / 40) + 40 * np.cos(columns / 50)
    texture = np.random.default_rng(4).normal(0, 0.45, (160, 240))
    pixels = np.clip(np.rint(light + texture), 0, 255).astype(np.uint8)
    write_image(tmp_path / "smooth.png", ImageFile(pixels))
    return tmp_path / "smooth.png"


def test_missing_noise_is_removed_anyway_in_one_press(
    either: Visits, smooth: Path, photos: list[Path], models: list[Path]
) -> None:
    tour = either(**LAPTOP)
    open_all(tour, [smooth, *photos])
    tour.expect("#found", "No noise was found")
    kind = tour.page.get_by_role("combobox", name="Kind").bounding_box()
    assert kind["y"] + kind["height"] < LAPTOP["viewport"]["height"] - 80
    tour.page.get_by_role("button", name="Remove it anyway").click()
    tour.expect("#found", "Found: camera noise")
    assert tour.page.locator("#noise").input_value() == "camera"
    assert tour.page.locator("#anyway").is_hidden()
    expected = by_command_line(smooth, models, "--noise", "camera")
    np.testing.assert_array_equal(tour.shown("after")[..., 0], expected)


# the list


def test_the_list_shows_pictures_and_how_all_are_doing(
    either: Visits, photos: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "letter.png").write_text("Dear Sir or Madam")
    tour = either()
    tour.open(tmp_path / "letter.png", *photos)
    tour.expect("#tally", "3 of 4 done, 1 failed")
    assert not tour.served or tour.forgive().startswith("Failed to load resource")
    assert "3 of 4 done, 1 failed" in tour.page.locator("#status").text_content()
    assert tour.page.locator("#file-list canvas").count() == 4
    # They are drawn one after the other, which may take longer than the work.
    tour.page.wait_for_function(
        """() => [...document.querySelectorAll("#file-list li:not(:first-child) canvas")].every(
          (canvas) => new Set(canvas.getContext("2d").getImageData(0, 0, 96, 96).data).size > 50)"""
    )
    # What failed is not shown until somebody asks for it; then it says why.
    assert tour.page.locator("#file-list [aria-current=true]").inner_text().startswith("photo 1")
    choose(tour, 0)
    tour.expect("#failure-reason", "none of PNG" if tour.served else "browser cannot read")
    assert tour.page.locator("#viewer").is_hidden()
    assert tour.page.locator("#tools [aria-pressed=true]").count() == 0
    choose(tour, 1)
    tour.expect("#handle")
    assert tour.page.locator("#failure").is_hidden()


def test_the_reason_of_a_failure_is_in_words_for_people(either: Visits, tmp_path: Path) -> None:
    header = np.zeros((8000, 7000), np.uint8)
    for name in ("large.png", "large.tif"):  # shown by browsers, and not
        write_image(tmp_path / name, ImageFile(header))
    assert (tmp_path / "large.png").stat().st_size < 4 * 2**20
    tour = either()
    tour.open(tmp_path / "large.png", tmp_path / "large.tif")
    tour.expect("#tally", "0 of 2 done, 2 failed")
    for place, words in enumerate(("50 m", "50 m" if tour.served else "TIFF")):
        choose(tour, place)
        reason = tour.expect("#failure-reason").text_content()
        assert words in reason
        assert "max" not in reason
        assert "--" not in reason
    assert all(words.startswith("Failed to load") for words in tour.complaints)
    tour.complaints.clear()


def test_nothing_is_cut_off_on_a_laptop(either: Visits, photos: list[Path]) -> None:
    tour = either(**LAPTOP)
    open_all(tour, photos)
    tour.hold()
    tour.page.locator("#noise").select_option("white")
    tour.page.get_by_role("button", name="Cancel").click()
    tour.expect("#run")
    panel = tour.page.locator("#panel").bounding_box()
    for name in ("Download", "Run again", "Add images"):
        button = tour.page.locator("#actions").get_by_text(name).bounding_box()
        assert button["x"] >= panel["x"]
        assert button["x"] + button["width"] <= panel["x"] + panel["width"]
        assert button["y"] + button["height"] <= LAPTOP["viewport"]["height"]


def test_the_list_by_keyboard(either: Visits, photos: list[Path]) -> None:
    tour = either(**LAPTOP)
    open_all(tour, photos * 3)
    shown = "#file-list [aria-current=true]"

    def is_shown(place: int) -> None:
        rows = "() => [...document.querySelectorAll('#file-list .file')]"
        current = f"({rows})().map((row) => row.ariaCurrent === 'true')"
        assert tour.page.evaluate(f"{current}.indexOf(true)") == place

    tour.page.locator(shown).focus()
    for key, place in {"ArrowDown": 1, "End": 8, "ArrowUp": 7, "Home": 0}.items():
        tour.page.keyboard.press(key)
        is_shown(place)
        tour.expect(f"{shown}:focus")
        row, box = (tour.page.locator(name).bounding_box() for name in (shown, "#file-list"))
        assert box["y"] - 1 <= row["y"] <= box["y"] + box["height"] - row["height"] + 1
    assert tour.page.locator("#panel").evaluate("panel => panel.scrollTop") == 0
    tour.page.keyboard.press("Tab")  # its own button to remove it, and then out of the list
    assert tour.page.evaluate("document.activeElement.className") == "remove"
    tour.page.keyboard.press("Tab")
    assert not tour.page.evaluate("document.activeElement.closest('#file-list')")
    tour.page.locator(shown).focus()
    tour.page.keyboard.press("Delete")
    assert tour.page.locator("#file-list li").count() == 8
    tour.expect(f"{shown}:focus")
    tour.page.locator("#view").focus()
    tour.page.keyboard.press("PageDown")
    tour.page.keyboard.press("PageDown")
    is_shown(2)
    tour.page.keyboard.press("PageUp")
    is_shown(1)


def test_a_close_look_stays_from_photo_to_photo(either: Visits, photos: list[Path]) -> None:
    tour = either()
    open_all(tour, photos[:2])
    tour.page.get_by_role("button", name="Pixels").click()
    tour.page.locator("#view").focus()
    tour.page.keyboard.press("ArrowRight")
    place = tour.page.locator("#before").get_attribute("style")
    tour.page.keyboard.press("PageDown")
    tour.expect("#zoom-value", "800%")
    assert tour.page.locator("#before").get_attribute("style") == place


def test_all_work_stops_while_another_photo_is_shown(either: Visits, photos: list[Path]) -> None:
    tour = either()
    tour.open_and_wait(photos[0])
    tour.hold()
    tour.open(*photos)
    choose(tour, 0)
    assert tour.page.locator("#busy").is_hidden()
    tour.page.get_by_role("button", name="Stop all").click()
    tour.expect("#tally", "1 of 4 done, 3 stopped")
    tour.expect("#run-all", "Run 3 again")


# nothing is lost


def closes(tour: Visit) -> bool:
    """Whether the tab closes without a question; it stays if there is one."""
    asked = []

    def dismiss(dialog: Any) -> None:
        asked.append(dialog)
        dialog.dismiss()

    tour.page.on("dialog", dismiss)
    other = tour.page.context.new_page()  # to wait in when the first one is gone
    tour.page.close(run_before_unload=True)
    for _ in range(10 * SECONDS):
        if asked or tour.page.is_closed():
            break
        other.wait_for_timeout(100)
    assert tour.page.is_closed() != bool(asked)
    return not asked


@pytest.mark.parametrize("saved", [False, True])
def test_closing_asks_if_a_result_was_not_saved(
    either: Visits, noisy_png: Path, tmp_path: Path, saved: bool
) -> None:
    tour = either()
    tour.open_and_wait(noisy_png)
    if saved:
        tour.download(tmp_path / "result.png")
    assert closes(tour) == saved


def test_axe_finds_nothing(either: Visits, photos: list[Path], tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    (tmp_path / "letter.png").write_text("Dear Sir or Madam")
    for scheme in ("light", "dark"):
        tour = either(color_scheme=scheme)
        tour.expect("#accepted", "PNG")
        assert axe.run(tour.page).response["violations"] == []
        tour.open(*photos, tmp_path / "letter.png")
        tour.expect("#tally", "3 of 4 done, 1 failed")
        if tour.served:
            tour.forgive()
        tour.page.locator("#advanced summary").click()
        assert axe.run(tour.page).response["violations"] == []
        choose(tour, 3)
        tour.expect("#failure")
        assert axe.run(tour.page).response["violations"] == []


@pytest.mark.browser
def test_raw_files_and_heic(visit: Visits, tmp_path: Path) -> None:
    pytest.importorskip("rawpy")
    pytest.importorskip("pi_heif")
    write_dng(tmp_path / "raw.dng", stored(shoot(mosaic_of(scene()))))
    tour = visit()
    tour.expect("#accepted", "HEIC")
    tour.expect("#accepted", "raw files of cameras")
    open_all(tour, [tmp_path / "raw.dng", PROJECT / "tests" / "data" / "turned.heic"])
    tour.expect("#handle")
    tour.expect("#found", "Found: photon noise of the sensor")
    assert tour.download(tmp_path / "result.tif") == "raw-denoised.tif"
    assert read_image(tmp_path / "result.tif").pixels.dtype == np.uint16
    choose(tour, 1)
    tour.expect("#handle")
    assert tour.expect("#download").get_attribute("download") == "turned-denoised.avif"
