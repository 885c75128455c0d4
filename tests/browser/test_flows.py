"""What people do in more than one step: stop, run again, several files, sliders, a busy server."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_server import ServerProcess, model_options, server_process

from browser.tour import HOLD_BACK, PHONE, Visits, by_command_line
from nlnet.images import ImageFile, decode, read_image, write_image

pytestmark = pytest.mark.browser


def write_tiff(path: Path, shape: tuple[int, ...]) -> Path:
    values = np.random.default_rng(2).normal(30000, 3000, shape)
    write_image(path, ImageFile(np.clip(values, 0, 65535).astype(np.uint16)))
    return path


# nothing is lost


@pytest.fixture
def small_server(models: list[Path]) -> Iterator[ServerProcess]:
    with server_process(*model_options(*models), "--max-upload", 1) as server:
        yield server


def test_a_result_that_is_larger_than_an_upload_may_be_is_there(
    visit: Visits, small_server: ServerProcess, tmp_path: Path
) -> None:
    noise = np.random.default_rng(5).normal(0, 20, (600, 800, 3))
    ramp = np.linspace(60, 190, 800)[:, None]
    write_image(tmp_path / "large.jpg", ImageFile(np.clip(ramp + noise, 0, 255).astype(np.uint8)))
    tour = visit(at=small_server)
    tour.page.locator("#format").select_option("tiff")
    tour.set_slider("grain", 5)  # the noise stays, and with it the size
    tour.set_slider("chroma", 5)
    tour.open(tmp_path / "large.jpg")
    tour.page.locator("#download").wait_for(timeout=120_000)
    tour.expect("#handle")
    assert tour.download(tmp_path / "result.tif") == "large-denoised.tif"
    assert (tmp_path / "result.tif").stat().st_size > 2**20
    assert tour.count("/api/preview") == 0
    result = read_image(tmp_path / "result.tif").pixels
    tour.page.locator("#blend").wait_for(state="hidden")  # now that there is the file itself
    np.testing.assert_array_equal(tour.shown("after")[..., :3], result)


def test_a_result_that_cannot_be_shown_can_be_saved(visit: Visits, tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "scan.tif", (60, 80))
    tour = visit()

    # As if the server had not been able to make a preview.
    tour.page.evaluate(
        """() => {
          const read = Response.prototype.formData;
          Response.prototype.formData = async function () {
            const form = await read.call(this);
            form.delete("preview");
            return form;
          };
        }"""
    )
    tour.open(path)
    tour.expect("#message", "cannot show the result, but it is there")
    assert tour.download(tmp_path / "result.tif") == "scan-denoised.tif"
    assert read_image(tmp_path / "result.tif").pixels.shape == (60, 80)


# stop, and run again


@pytest.mark.parametrize("phase", ["preview", "denoise"])
def test_work_can_be_cancelled_in_every_phase(visit: Visits, tmp_path: Path, phase: str) -> None:
    path = write_tiff(tmp_path / "scan.tif", (60, 80))
    tour = visit()
    tour.page.route(f"**/api/{phase}", lambda route: None)  # no answer yet
    with tour.page.expect_request(f"**/api/{phase}"):
        tour.open(path)
    tour.expect("#busy")
    tour.page.get_by_role("button", name="Cancel").click()
    tour.page.locator("#busy").wait_for(state="hidden")
    tour.page.locator("#status", has_text="Stopped.").wait_for(state="attached")
    tour.page.unroute(f"**/api/{phase}")
    assert tour.count("/api/denoise") == (phase == "denoise")
    tour.page.wait_for_timeout(300)
    assert tour.count("/api/denoise") == (phase == "denoise")  # it does not go on by itself
    tour.expect("#run:focus")
    tour.page.get_by_role("button", name="Run again").click()
    tour.expect("#result")
    assert tour.page.locator("#run").is_hidden()


def test_work_can_be_cancelled_while_it_is_read(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    # An image that takes for ever to decode.
    tour.page.evaluate("() => { Image.prototype.decode = () => new Promise(() => {}); }")
    tour.open(noisy_png)
    tour.expect("#busy", "Reading")
    tour.page.get_by_role("button", name="Cancel").click()
    tour.page.locator("#busy").wait_for(state="hidden")
    assert tour.count("/api/denoise") == 0


def test_an_old_result_is_told_from_the_new_settings(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    assert tour.page.locator("#stale").is_hidden()
    tour.page.route("**/api/denoise", lambda route: None)
    tour.page.locator("#noise").select_option("white")
    tour.expect("#busy")
    tour.expect("#stale")
    tour.expect("#after-tag", "Denoised, other settings")
    tour.page.get_by_role("button", name="Cancel").click()
    tour.page.locator("#busy").wait_for(state="hidden")
    tour.expect("#stale")
    tour.expect("#download")  # of the old result, which is not lost
    tour.page.unroute("**/api/denoise")
    tour.page.get_by_role("button", name="Run again").click()
    tour.page.locator("#stale").wait_for(state="hidden")
    tour.page.route("**/api/denoise", lambda route: route.abort())
    tour.page.locator("#noise").select_option("auto")
    tour.expect("[role=alert]", "The server does not answer.")
    tour.expect("#stale")
    tour.expect("#run")
    assert tour.forgive().startswith("Failed to load resource")
    tour.page.unroute("**/api/denoise")
    tour.page.get_by_role("button", name="Run again").click()
    tour.page.locator("#stale").wait_for(state="hidden")
    assert tour.page.locator("#message").is_hidden()


# several files


def test_several_files_and_a_zip(
    visit: Visits, noisy_png: Path, models: list[Path], tmp_path: Path
) -> None:
    scan = write_tiff(tmp_path / "scan.tif", (60, 80))
    (tmp_path / "other").mkdir()
    double = tmp_path / "other" / noisy_png.name
    double.write_bytes(noisy_png.read_bytes())
    (tmp_path / "letter.png").write_text("Dear Sir or Madam")
    tour = visit()
    tour.open(noisy_png, tmp_path / "letter.png", scan, double)
    rows = tour.page.locator("#file-list li")
    assert rows.count() == 4
    tour.expect("#download-all")
    for place, words in enumerate(("done", "none of PNG", "done", "done")):
        rows.nth(place).filter(has_text=words).wait_for(timeout=60_000)
    assert tour.forgive().startswith("Failed to load resource")
    assert tour.page.locator("#message").is_hidden()  # the file that is shown is well
    with tour.page.expect_download() as download:
        tour.page.locator("#download-all").click()
    assert download.value.suggested_filename == "denoised.zip"
    content = zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes()))
    assert content.testzip() is None
    assert content.namelist() == [
        "noisy photo-denoised.png",
        "scan-denoised.tif",
        "noisy photo-denoised (2).png",
    ]
    expected = by_command_line(scan, models)
    np.testing.assert_array_equal(decode(content.read("scan-denoised.tif"), "x").pixels, expected)
    rows.nth(2).locator(".file").click()
    assert tour.fact("image").startswith("80 x 60")
    rows.nth(1).get_by_role("button", name="Remove").click()
    assert rows.count() == 3


def test_a_second_file_waits_its_turn(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    held: list[Any] = []

    def hold_first(route: Any) -> None:
        if held:
            route.continue_()
        held.append(route)

    tour.page.route("**/api/denoise", hold_first)
    with tour.page.expect_request("**/api/denoise"):
        tour.open(noisy_png)
    tour.expect("#busy")
    tour.hand_over("drop", "second.png", noisy_png.read_bytes())
    tour.expect("#file-list", "second.png")
    assert "waits its turn" in tour.page.locator("#status").text_content()
    tour.page.wait_for_timeout(200)
    assert len(held) == 1
    held[0].continue_()
    tour.expect("#result")
    for place in range(2):
        tour.page.locator("#file-list li").nth(place).filter(has_text="done").wait_for()


# sliders


PRESS_KEYS = """async (slider) => {
  for (let press = 0; press < 10; press += 1) {
    slider.stepUp();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((next) => setTimeout(next, 30));
  }
}"""
"""In the page, as an arrow key that is held down: presses from here may take longer, on a busy
machine, than the page waits for the next one."""


def test_ten_presses_are_not_ten_uploads(visit: Visits, tmp_path: Path, photo: np.ndarray) -> None:
    large = np.tile(photo, (5, 3, 1))
    write_image(tmp_path / "large.jpg", ImageFile(large))
    tour = visit()
    tour.open_and_wait(tmp_path / "large.jpg")
    whole = (tmp_path / "large.jpg").stat().st_size
    tour.page.evaluate(HOLD_BACK, whole)
    tour.page.locator("#grain").evaluate(PRESS_KEYS)
    tour.expect("#quick")
    part = tour.shown("quick")
    assert part.shape[0] * part.shape[1] < 710_000  # all of the image is in view, at this size
    tour.page.wait_for_function("() => letGo !== null")
    tour.page.evaluate("() => letGo()")
    tour.page.locator("#quick").wait_for(state="hidden")
    tour.page.locator("#stale").wait_for(state="hidden")
    sizes = tour.page.evaluate("sizes")
    assert sizes.count(whole) == 1
    assert sizes[-1] == whole  # the visible part came first
    assert len(sizes) <= 5  # and parts of it, one after the other
    assert tour.expect("#grain-value").text_content() == "150 %"


def test_what_is_visible_is_computed_first_and_covered(
    visit: Visits, tmp_path: Path, photo: np.ndarray
) -> None:
    write_image(tmp_path / "large.png", ImageFile(np.tile(photo, (5, 3, 1))))
    tour = visit()
    tour.open_and_wait(tmp_path / "large.png")
    tour.page.get_by_role("button", name="Real size").click()
    tour.split()
    tour.page.evaluate(HOLD_BACK, (tmp_path / "large.png").stat().st_size)
    tour.page.locator("#grain").evaluate(PRESS_KEYS)
    tour.expect("#quick")
    view, part = (tour.page.locator(name).bounding_box() for name in ("#view", "#quick"))
    image = tour.page.locator("#before").bounding_box()
    for start, length in (("x", "width"), ("y", "height")):
        low = max(view[start], image[start])
        high = min(view[start] + view[length], image[start] + image[length])
        assert part[start] <= low
        assert part[start] + part[length] >= high
    assert tour.page.locator("#quick").evaluate("image => image.style.clipPath") == ""


def test_grain_and_color_have_strengths_of_their_own(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    tour.page.get_by_role("button", name="Real size").click()
    whole = tour.shown("after")[..., :3].astype(float)
    noisy = tour.shown("before")[..., :3].astype(float)
    tour.set_slider("grain", 0)
    tour.expect("#blend")
    chroma_only = tour.blended()
    assert np.abs(chroma_only.mean(-1) - noisy.mean(-1)).mean() < 1.5
    difference = chroma_only[..., 0] - chroma_only[..., 2]
    assert np.abs(difference - (whole[..., 0] - whole[..., 2])).mean() < 3


# a busy server, and what it tells


def test_a_busy_server_is_asked_again_whatever_the_format(visit: Visits, tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "scan.tif", (60, 80))
    tour = visit()
    tour.be_busy_twice("**/api/preview")
    tour.open(path)
    tour.expect("#busy", "The server is busy; again in 1 s")
    tour.expect("#result")
    # What is shown is the time of the work, without that of the waiting.
    assert float(tour.fact("time").split()[0]) < 2.4
    assert all(tour.forgive().startswith("Failed to load") for _ in range(2))


def test_percent_and_place_are_told(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    standing = {"state": "waiting", "ahead": 2, "share": 0.0}
    tour.page.route("**/api/denoise", lambda route: None)
    tour.page.route("**/api/jobs/*", lambda route: route.fulfill(json=standing))
    # The answer never comes, so the upload has to be said to have ended.
    tour.page.evaluate(
        """() => {
          const send = XMLHttpRequest.prototype.send;
          XMLHttpRequest.prototype.send = function (body) {
            send.call(this, body);
            setTimeout(() => this.upload.onload(), 50);
          };
        }"""
    )
    tour.open(noisy_png)
    tour.expect("#busy-text", "2 images are before yours")
    standing["ahead"] = 1
    tour.expect("#busy-text", "Next in line")
    standing.update(state="running", ahead=0, share=0.42)
    tour.expect("#busy-text", "Denoising 42 %")
    assert tour.page.locator("#busy-bar").evaluate("bar => bar.value") == 0.42


# phones, colors, memory


def test_errors_are_in_view_on_a_phone_and_move_nothing(visit: Visits, tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "scan.tif", (60, 80))
    (tmp_path / "letter.png").write_text("Dear Sir or Madam")
    tour = visit(**PHONE)
    tour.open_and_wait(path)
    tour.expect("footer").scroll_into_view_if_needed()
    before = tour.page.locator("#panel").bounding_box()
    tour.page.locator("#white").evaluate("field => field.closest('details').open = true")
    tour.page.locator("#white").fill("1e31")
    tour.page.locator("#white").blur()
    message = tour.expect("#message", "data_range")
    box = message.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= PHONE["viewport"]["height"]
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["viewport"]["width"]
    stage = tour.page.locator("#stage").bounding_box()
    tour.page.get_by_role("button", name="Dismiss").click()
    assert tour.page.locator("#stage").bounding_box() == stage
    assert tour.page.locator("#panel").bounding_box()["width"] == before["width"]
    tour.forgive()


def test_the_switch_is_seen_in_forced_colors(visit: Visits) -> None:
    tour = visit(forced_colors="active")
    box = tour.page.locator("#automatic")

    def look() -> np.ndarray:
        return decode(box.screenshot(), "box").pixels[..., :3].astype(int)

    checked = look()
    box.uncheck()
    unchecked = look()
    assert np.abs(checked - unchecked).max() > 100
    for state in (checked, unchecked):
        assert np.ptp(state) > 100  # it has an outline, whatever its state


def test_focus_stays_on_the_page(visit: Visits) -> None:
    tour = visit()
    tour.expect("#accepted", "PNG")
    button = tour.page.get_by_role("button", name="Try this example")
    button.focus()
    tour.page.keyboard.press("Enter")
    tour.expect("#result")
    tour.expect("#view:focus")


def test_urls_of_blobs_are_released(visit: Visits, noisy_png: Path) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    live = []
    for number in range(4):
        tour.choose_noise("white" if number % 2 == 0 else "auto")
        tour.expect("#handle")
        live.append(tour.page.evaluate("liveUrls.size"))
    assert max(live) <= 4  # before, after, the download
    tour.open(noisy_png)
    tour.page.locator("#file-list li").nth(1).filter(has_text="done").wait_for()
    assert tour.page.evaluate("liveUrls.size") <= 4
