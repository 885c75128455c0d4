"""Denoising in the browser: files in, before and after, zoom, files out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from browser.tour import PHONE, Visit, by_command_line
from nlnet.images import ImageFile, decode, read_image, write_image

pytestmark = pytest.mark.browser


def test_from_a_noisy_file_to_the_same_pixels_as_the_command_line(
    visit: Callable[..., Visit], noisy_png: Path, models: list[Path], tmp_path: Path
) -> None:
    tour = visit()
    tour.open(noisy_png)
    tour.expect("#result")
    assert re.fullmatch(r"sigma 2[3-7]\.\d", tour.expect("#fact-noise").text_content())
    assert re.fullmatch(r"\d+\.\d\d s", tour.expect("#fact-time").text_content())
    assert tour.expect("#fact-image").text_content() == "300 x 200, 8-bit color PNG"
    assert "Done in" in tour.page.locator("#status").text_content()
    assert tour.download(tmp_path / "result.png") == "noisy photo-denoised.png"
    expected = by_command_line(noisy_png, models)
    np.testing.assert_array_equal(read_image(tmp_path / "result.png").pixels, expected)
    np.testing.assert_array_equal(tour.shown("after")[..., :3], expected)
    np.testing.assert_array_equal(tour.shown("before")[..., :3], read_image(noisy_png).pixels)


def roughness(pixels: np.ndarray) -> float:
    return float(np.mean(np.abs(np.diff(pixels[..., :3].astype(float), axis=1))))


def test_the_boundary_moves_by_mouse(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.open(noisy_png)
    assert tour.split() == 50
    mouse, view = tour.page.mouse, tour.expect("#view").bounding_box()
    handle = tour.expect("#handle").bounding_box()
    middle = handle["y"] + handle["height"] / 2
    mouse.move(handle["x"] + handle["width"] / 2, middle)
    mouse.down()
    mouse.move(view["x"] + 0.5 * view["width"], middle)
    mouse.move(view["x"] + 0.3 * view["width"], middle, steps=4)
    mouse.up()
    assert abs(tour.split() - 30) <= 1
    screen = decode(tour.page.locator("#view").screenshot(), "screen").pixels
    rows, edge = slice(60, -60), int(0.3 * screen.shape[1])
    assert roughness(screen[rows, 10 : edge - 40]) > 2 * roughness(screen[rows, edge + 40 : -10])
    mouse.click(view["x"] + 0.8 * view["width"], middle)  # anywhere else takes it there
    assert abs(tour.split() - 80) <= 1


def test_the_boundary_moves_by_keyboard(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.open(noisy_png)
    assert tour.split() == 50
    tour.page.get_by_role("slider", name="Boundary").focus()
    keys = {
        "ArrowRight": 51,
        "ArrowUp": 52,
        "ArrowLeft": 51,
        "ArrowDown": 50,
        "Shift+ArrowRight": 60,
        "PageUp": 70,
        "PageDown": 60,
        "Home": 0,
        "End": 100,
    }
    for key, place in keys.items():
        tour.page.keyboard.press(key)
        assert tour.place() == place, key
    text = tour.expect("#handle").get_attribute("aria-valuetext")
    assert text == "100% noisy, 0% denoised"


def test_the_boundary_moves_by_touch(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit(**PHONE)
    tour.open(noisy_png)
    assert tour.split() == 50
    view = tour.expect("#view").bounding_box()
    fingers = tour.page.context.new_cdp_session(tour.page)

    def touch(kind: str, *shares: float) -> None:
        y = view["y"] + view["height"] / 2
        points = [{"x": view["x"] + share * view["width"], "y": y} for share in shares]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.5)
    for share in (0.55, 0.6, 0.7, 0.75):
        touch("touchMove", share)
    touch("touchEnd")
    assert abs(tour.split() - 75) <= 1
    before = tour.expect("#zoom-value").text_content()
    touch("touchStart", 0.45, 0.55)
    for spread in (0.1, 0.2, 0.3):
        touch("touchMove", 0.5 - spread, 0.5 + spread)
    touch("touchEnd")
    assert int(tour.expect("#zoom-value").text_content()[:-1]) > 3 * int(before[:-1])


def test_zoom(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.open(noisy_png)
    tour.expect("#result")
    tour.page.get_by_role("button", name="Pixels").click()
    tour.expect("#zoom-value", "800%")
    assert "pixelated" in tour.expect("#view").get_attribute("class")
    # One image pixel is 8 by 8 screen pixels of the same color.
    screen = decode(tour.page.locator("#view").screenshot(), "screen").pixels[..., :3].astype(int)
    steps = np.abs(np.diff(screen[100:102, 20:220], axis=1)).sum(axis=(0, 2))
    assert np.unique(np.flatnonzero(steps) % 8).size == 1
    transform = "document.getElementById('before').style.transform"
    place = tour.page.evaluate(transform)
    view = tour.expect("#view")
    view.focus()
    tour.page.keyboard.press("ArrowRight")
    assert tour.page.evaluate(transform) != place
    for key, level in {"-": "400%", "+": "800%", "1": "100%"}.items():
        tour.page.keyboard.press(key)
        tour.expect("#zoom-value", level)
    tour.page.keyboard.press("0")
    fit = tour.expect("#zoom-value").text_content()
    tour.page.mouse.move(500, 400)
    tour.page.mouse.wheel(0, -300)
    assert int(tour.expect("#zoom-value").text_content()[:-1]) == pytest.approx(
        2 * int(fit[:-1]), abs=1
    )
    tour.page.get_by_role("button", name="Fit").click()
    tour.expect("#zoom-value", fit)
    tour.page.mouse.dblclick(400, 300)
    tour.expect("#zoom-value", "800%")


def test_sigma_and_model_by_hand(
    visit: Callable[..., Visit], noisy_png: Path, models: list[Path]
) -> None:
    tour = visit()
    tour.open(noisy_png)
    tour.expect("#result")
    slider = tour.page.get_by_role("slider", name="Sigma")
    assert slider.is_disabled()
    tour.page.get_by_role("switch").click()
    slider.fill("40")
    tour.expect("#fact-sigma", "sigma 40.0")
    expected = by_command_line(noisy_png, models, "--sigma", 40)
    np.testing.assert_array_equal(tour.shown("after")[..., :3], expected)
    names = tour.page.locator("#model option").evaluate_all("options => options.map(o => o.value)")
    assert names[0] == "auto"
    gray = next(name for name in names[1:] if name.startswith(("gray", "small-1")))
    tour.page.locator("#model").select_option(gray)
    tour.expect("#message", "made for grayscale images")
    assert tour.complaints.pop().startswith("Failed to load resource")
    tour.page.locator("#model").select_option("auto")
    tour.page.locator("#message").wait_for(state="hidden")


def test_a_format_that_browsers_cannot_show(
    visit: Callable[..., Visit], models: list[Path], tmp_path: Path
) -> None:
    noise = np.random.default_rng(2).normal(0, 3000, (120, 160))
    pixels = np.clip(20000 + 100 * np.arange(160) + noise, 0, 65535).astype(np.uint16)
    write_image(tmp_path / "scan.tif", ImageFile(pixels))
    tour = visit()
    tour.open(tmp_path / "scan.tif")
    tour.expect("#fact-image", "160 x 120, 16-bit gray TIF")
    assert tour.download(tmp_path / "result.tif") == "scan-denoised.tif"
    result = read_image(tmp_path / "result.tif").pixels
    np.testing.assert_array_equal(result, by_command_line(tmp_path / "scan.tif", models))
    np.testing.assert_array_equal(tour.shown("after")[..., 0], np.rint(result / 257))
