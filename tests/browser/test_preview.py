"""The preview of strengths above 1: what is visible, as the result will be, without seams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from browser.tour import Visit, Visits
from nlnet.images import ImageFile, decode, write_image

SMALL = {"viewport": {"width": 860, "height": 560}, "device_scale_factor": 1.25}
WIDTH, HEIGHT = 701, 501
BRIGHTEST = 36


@pytest.fixture
def night(photo: np.ndarray, tmp_path: Path) -> Path:
    """A dark photo, beside which light lines are seen."""
    dark = 12 + 0.04 * np.tile(photo, (3, 3, 1))[:HEIGHT, :WIDTH].astype(float)
    noisy = dark + np.random.default_rng(6).normal(0, 4, dark.shape)
    write_image(tmp_path / "night.png", ImageFile(np.clip(noisy, 0, BRIGHTEST).astype(np.uint8)))
    return tmp_path / "night.png"


def look(tour: Visit) -> np.ndarray:
    """What the view shows of the image, without what lies above it."""
    above = "#busy, #line, #handle, #viewer .tag"
    show = "(elements, shown) => { for (const { style } of elements) style.visibility = shown; }"
    tour.page.locator(above).evaluate_all(show, "hidden")
    screen = decode(tour.page.locator("#view").screenshot(), "view").pixels[..., :3]
    tour.page.locator(above).evaluate_all(show, "")
    return screen.astype(int)[30:-30, 30:-30]  # beside its rounded border


@pytest.mark.parametrize("zoom", ["Fit", "Real size", "Zoom in"])
def test_the_preview_has_no_seams(either: Visits, night: Path, zoom: str) -> None:
    tour = either(**SMALL, color_scheme="dark", reduced_motion="reduce")
    tour.open_and_wait(night)
    tour.page.locator("#handle").press("Home")
    for _ in range(2):
        tour.page.get_by_role("button", name=zoom, exact=True).click()
    if zoom != "Fit":
        drag(tour, 33.25, 21.75)
    assert (
        look(tour).max() <= BRIGHTEST + 2
    )  # no line of the light pattern below transparent images
    tour.hold_whole(night)
    tour.set_slider("grain", 150)
    tour.expect("#quick")
    tour.page.wait_for_function("() => letGo !== null")
    preview = look(tour)
    assert preview.max() <= BRIGHTEST + 2
    if zoom == "Zoom in":  # the end of the part is not seen where it comes into view, either
        drag(tour, 120.5, 90.25)
        assert look(tour).max() <= BRIGHTEST + 2
        drag(tour, -120.5, -90.25)
    tour.page.evaluate("() => letGo()")
    tour.page.locator("#quick").wait_for(state="hidden")
    result = look(tour)
    if zoom == "Fit":  # of a part that is computed at a smaller size, the means are alike
        assert np.abs((preview - result).mean(axis=(0, 2))).max() < 2
        assert np.abs((preview - result).mean(axis=(1, 2))).max() < 2
    else:
        assert np.abs(preview - result).max() <= 6  # the estimate comes rounded from the server


def drag(tour: Visit, x: float, y: float) -> None:
    mouse = tour.page.mouse
    mouse.move(300, 300)
    mouse.down()
    mouse.move(300 + x, 300 + y, steps=3)
    mouse.up()
    tour.settle()
