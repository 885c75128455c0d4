"""The page around the viewer: ways in, messages, looks, and use without a mouse.

Screenshots are left in ``build/screenshots``, to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import PROJECT
from pictures import random_image

from browser.tour import DESKTOP, PHONE, Visit
from nlnet.images import ImageFile, encode

pytestmark = pytest.mark.browser

SCREENSHOTS = PROJECT / "build" / "screenshots"


def test_bad_files_show_their_message(
    visit: Callable[..., Visit], noisy_png: Path, tmp_path: Path
) -> None:
    (tmp_path / "letter.png").write_text("Dear Sir or Madam")
    (tmp_path / "cut.png").write_bytes(noisy_png.read_bytes()[:5000])
    (tmp_path / "empty.png").write_bytes(b"")
    tour = visit()
    for name, part in {"letter": "none of PNG", "empty": "empty", "cut": "damaged"}.items():
        tour.open(tmp_path / f"{name}.png")
        tour.expect("[role=alert]", part)
        # The browser shows what there is of a file that was cut.
        assert tour.page.locator("#start").is_visible() == (name != "cut")
        assert tour.forgive().startswith("Failed to load resource")
    (tmp_path / "huge.png").write_bytes(bytes(5 * 2**20))
    tour.open(tmp_path / "huge.png")
    tour.expect("[role=alert]", "larger than 4 MB")
    tour.page.get_by_role("button", name="Dismiss").click()
    tour.page.locator("#message").wait_for(state="hidden")
    tour.open_and_wait(noisy_png)
    assert tour.page.locator("#message").is_hidden()
    tour.open(tmp_path / "letter.png")
    tour.expect("[role=alert]", "none of PNG")
    tour.forgive()
    tour.page.locator(".file", has_text="noisy photo.png").click()
    tour.expect("#result")  # what was there is still there
    tour.expect("#download")


def test_drop_and_paste(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.hand_over("dragenter", "a.png", b"")
    tour.expect("#veil")
    tour.hand_over("drop", "dropped.png", noisy_png.read_bytes())
    tour.page.locator("#veil").wait_for(state="hidden")
    tour.expect("#result")
    assert tour.fact("image").startswith("300 x 200")
    small = encode(ImageFile(random_image((40, 50))), ".png")
    tour.hand_over("paste", "image.png", small)
    tour.expect("#fact-image", "50 x 40")
    tour.hand_over("paste", "", b"")
    tour.expect("#message", "The clipboard holds no image.")


def test_the_example(visit: Callable[..., Visit]) -> None:
    tour = visit()
    tour.expect("#accepted", "PNG")
    assert tour.page.locator("#sample-noisy").evaluate("canvas => canvas.width") > 300
    button = tour.page.get_by_role("button", name="Try this example")
    button.focus()
    tour.page.keyboard.press("Enter")
    tour.expect("#result")
    assert 22 < float(tour.fact("sigma")) < 28


def test_a_busy_server_is_asked_again(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.be_busy_twice("**/api/denoise")
    tour.open(noisy_png)
    tour.expect("#busy")
    tour.expect("#result")
    assert all(tour.forgive().startswith("Failed to load") for _ in range(2))


def test_a_server_that_is_gone(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.page.route("**/api/denoise", lambda route: route.abort())
    tour.open(noisy_png)
    tour.expect("[role=alert]", "The server does not answer.")
    assert tour.forgive().startswith("Failed to load resource")


def test_everything_is_reached_and_named_without_a_mouse(
    visit: Callable[..., Visit], noisy_png: Path
) -> None:
    tour = visit()
    tour.open(noisy_png)
    tour.expect("#result")
    tour.split()
    tour.page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(22):
        tour.page.keyboard.press("Tab")
        code = "document.activeElement.id || document.activeElement.textContent.trim()"
        reached.append(tour.page.evaluate(code))
    for wanted in (
        "view",
        "handle",
        "Fit",
        "Pixels",
        "hold",
        "removed",
        "grain",
        "chroma",
        "noise",
        "automatic",
        "sigma",
        "format",
        "Advanced",
        "download",
        "Add images",
    ):
        assert wanted in reached
    tree = tour.page.locator("body").aria_snapshot()
    for line in (
        'heading "nlnet"',
        'slider "Boundary of before and after"',
        'toolbar "Zoom"',
        'button "Zoom in"',
        'checkbox "Automatic" [checked]',
        'slider "Grain"',
        'slider "Color blotches"',
        'slider "Noise strength"',
        'combobox "Kind"',
        'combobox "Format"',
        'button "Hold for original"',
        'img "The denoised image"',
    ):
        assert line in tree, tree
    assert "button:" not in tree.replace('button "', "")  # none without a name


def test_the_docs(visit: Callable[..., Visit]) -> None:
    tour = visit("/docs")
    tour.expect("#operations-Images-denoise_api_denoise_post").click()
    tour.expect(".opblock-body", "Standard deviation of the noise")


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
@pytest.mark.parametrize(("device", "options"), [("desktop", DESKTOP), ("phone", PHONE)])
def test_screenshots(
    visit: Callable[..., Visit], device: str, options: dict[str, Any], scheme: str
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    colors = {"forced_colors": "active"} if scheme == "forced" else {"color_scheme": scheme}
    tour = visit(**options, **colors)
    tour.expect("#accepted", "PNG")

    def shoot(name: str) -> None:
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not tour.page.evaluate(wide), "the page is wider than the screen"
        tour.page.screenshot(path=SCREENSHOTS / f"{device}-{scheme}-{name}.png")

    shoot("start")
    background = tour.page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(int(part) for part in re.findall(r"\d+", background)[:3]) > 3 * 128
    assert bright == (scheme != "dark")
    tour.page.get_by_role("button", name="Try this example").click()
    tour.expect("#result")
    tour.split()
    shoot("result")
    tour.expect("footer").scroll_into_view_if_needed()
    shoot("end")
    tour.page.get_by_role("button", name="Pixels").click()
    shoot("pixels")
