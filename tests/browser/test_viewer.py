"""Denoising in the browser: files in, before and after, zoom, files out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from browser.tour import PHONE, Visit, by_command_line
from nlnet.defaults import FAMILIES
from nlnet.images import ImageFile, decode, read_image, write_image

pytestmark = pytest.mark.browser


def test_from_a_noisy_file_to_the_same_pixels_as_the_command_line(
    visit: Callable[..., Visit], noisy_png: Path, models: list[Path], tmp_path: Path
) -> None:
    tour = visit()
    tour.open(noisy_png)
    tour.expect("#result")
    assert re.fullmatch(r"Found: .* about 2[3-7]", tour.expect("#found").text_content())
    assert re.fullmatch(r"2[3-7]\.\d", tour.fact("sigma"))
    assert re.fullmatch(r"\d+\.\d\d s", tour.fact("time"))
    assert tour.fact("image") == "300 x 200, 8-bit color PNG"
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
    tour.settle()
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
    tour.page.wait_for_function(
        "fit => document.getElementById('zoom-value').textContent !== fit", arg=fit
    )
    assert int(tour.expect("#zoom-value").text_content()[:-1]) == pytest.approx(
        2 * int(fit[:-1]), abs=1
    )
    tour.page.get_by_role("button", name="Fit").click()
    tour.expect("#zoom-value", fit)
    tour.page.mouse.dblclick(400, 300)
    tour.expect("#zoom-value", "800%")


def test_a_swipe_up_scrolls_and_leaves_the_boundary(
    visit: Callable[..., Visit], noisy_png: Path
) -> None:
    tour = visit(**PHONE)
    tour.open_and_wait(noisy_png)
    assert tour.split() == 50
    view = tour.expect("#view").bounding_box()
    fingers = tour.page.context.new_cdp_session(tour.page)
    for share in (0.5, 0.75):  # on the handle, and beside it
        x = view["x"] + share * view["width"]
        fingers.send("Input.dispatchTouchEvent", touches("touchStart", x, view["y"] + 200))
        for step in range(1, 9):  # a finger never goes straight
            point = touches("touchMove", x + 1.5 * step, view["y"] + 200 - 20 * step)
            fingers.send("Input.dispatchTouchEvent", point)
        fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert tour.split() == 50
        tour.page.evaluate("scrollTo(0, 0)")


def touches(kind: str, x: float, y: float) -> dict[str, object]:
    return {"type": kind, "touchPoints": [{"x": x, "y": y}]}


def test_strength_of_the_noise_and_model_by_hand(
    visit: Callable[..., Visit], noisy_png: Path, models: list[Path]
) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    automatic = tour.page.get_by_role("checkbox", name="Automatic")
    assert automatic.is_checked()
    tour.page.get_by_role("slider", name="Noise strength").fill("40")
    assert not automatic.is_checked()
    tour.expect("#found", "Removed: ")
    assert tour.fact("sigma") == "40.0"
    expected = by_command_line(noisy_png, models, "--sigma", 40)
    np.testing.assert_array_equal(tour.shown("after")[..., :3], expected)
    automatic.check()
    tour.expect("#found", "Found: ")


def test_only_models_that_fit_the_image_are_offered(
    visit: Callable[..., Visit], noisy_png: Path, tmp_path: Path
) -> None:
    gray = np.asarray(np.random.default_rng(3).normal(128, 20, (60, 80)), np.uint8)
    write_image(tmp_path / "gray.png", ImageFile(gray))
    tour = visit()
    tour.page.locator("#advanced summary").click()
    assert tour.page.locator("#model").is_disabled()
    code = "options => options.map(option => option.value)"
    for path, prefixes in ((noisy_png, ("color", "small-3")), (tmp_path / "gray.png", ("gray",))):
        tour.open_and_wait(path)
        names = tour.page.locator("#model option").evaluate_all(code)
        assert names[0] == "auto"
        assert len(names) > 1
        assert all(
            name.removeprefix("open-").startswith((*prefixes, "small")) for name in names[1:]
        )
        tour.page.locator("#model").select_option(names[-1])
        tour.expect("#fact-model", names[-1])
    assert tour.page.locator("#model").input_value() == names[-1]
    assert tour.page.locator("#quality").is_disabled()  # it only chooses if no model is named
    assert tour.page.locator("#message").is_hidden()


def test_the_best_quality(visit: Callable[..., Visit], tmp_path: Path) -> None:
    gray = np.asarray(np.random.default_rng(3).normal(128, 20, (60, 80)), np.uint8)
    write_image(tmp_path / "gray.png", ImageFile(gray))
    tour = visit()
    tour.open_and_wait(tmp_path / "gray.png")
    tour.page.locator("#advanced summary").click()
    for quality in ("best", "fast"):
        tour.page.locator("#quality").select_option(quality)
        tour.expect("#fact-model", re.compile(f"^{FAMILIES[quality][1]}(-s.*)?$"))
    assert tour.page.locator("#message").is_hidden()


def test_the_original_while_something_is_held(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    tour.page.keyboard.press("Tab")
    tour.split()

    def right_side() -> float:
        screen = decode(tour.page.locator("#view").screenshot(), "screen").pixels
        return roughness(screen[60:-60, screen.shape[1] // 2 + 60 : -10])

    denoised = right_side()
    hold = tour.page.get_by_role("button", name="Hold for original")
    hold.hover()
    tour.page.mouse.down()
    assert right_side() > 2 * denoised
    assert hold.get_attribute("aria-pressed") == "true"
    tour.page.mouse.up()
    assert right_side() == pytest.approx(denoised, rel=0.05)
    tour.page.locator("#view").focus()
    tour.page.keyboard.down("o")
    assert right_side() > 2 * denoised
    tour.page.keyboard.up("o")
    assert right_side() == pytest.approx(denoised, rel=0.05)


def test_what_was_removed(visit: Callable[..., Visit], noisy_png: Path) -> None:
    tour = visit()
    tour.open_and_wait(noisy_png)
    tour.split()
    tour.page.get_by_role("button", name="Real size").click()
    tour.page.get_by_role("button", name="Removed").click()
    box = tour.page.locator("#before").bounding_box()
    screen = decode(tour.page.screenshot(clip=box), "screen").pixels[..., :3].astype(float)
    before, after = (tour.shown(name)[..., :3].astype(float) for name in ("before", "after"))
    removed = before - after
    assert abs(screen.mean() - 127.5) < 4  # noise goes both ways
    correlation = np.corrcoef(screen.ravel(), removed.ravel())[0, 1]
    assert correlation > 0.95
    tour.page.locator("#view").press("r")
    assert tour.page.locator("#removed").get_attribute("aria-pressed") == "false"


def test_transparent_images_are_shown_right_on_both_sides(
    visit: Callable[..., Visit], photo: np.ndarray, tmp_path: Path
) -> None:
    black = np.where(np.random.default_rng(1).random(photo.shape) < 0.5, 0, 40).astype(np.uint8)
    alpha = np.zeros(photo.shape[:2], np.uint8)
    alpha[50:150, 100:] = 255
    write_image(tmp_path / "clear.png", ImageFile(np.where(alpha[..., None], photo, black), alpha))
    tour = visit()
    tour.open_and_wait(tmp_path / "clear.png")
    tour.split()
    tour.page.get_by_role("button", name="Real size").click()
    box = tour.page.locator("#before").bounding_box()
    screen = decode(tour.page.screenshot(clip=box), "screen").pixels[..., :3].astype(int)
    # On the right the denoised image alone: its pixels, and the pattern where it is clear.
    after = tour.shown("after")[..., :3].astype(int)
    inside = (slice(55, 80), slice(200, 290))
    assert np.abs(screen[inside] - after[inside]).max() <= 2
    clear = screen[160:195, 160:290]
    assert clear.min() > 190  # no dark pixel of the noisy image shines through
    assert len(np.unique(clear.reshape(-1, 3), axis=0)) <= 12


def test_a_format_that_browsers_cannot_show(
    visit: Callable[..., Visit], models: list[Path], tmp_path: Path
) -> None:
    noise = np.random.default_rng(2).normal(0, 3000, (120, 160))
    pixels = np.clip(20000 + 100 * np.arange(160) + noise, 0, 65535).astype(np.uint16)
    write_image(tmp_path / "scan.tif", ImageFile(pixels))
    tour = visit()
    tour.open(tmp_path / "scan.tif")
    tour.expect("#handle")
    assert tour.fact("image") == "160 x 120, 16-bit gray TIF"
    assert tour.count("/api/preview") == 1  # of the upload; the result brings its own
    assert tour.download(tmp_path / "result.tif") == "scan-denoised.tif"
    result = read_image(tmp_path / "result.tif").pixels
    np.testing.assert_array_equal(result, by_command_line(tmp_path / "scan.tif", models))
    np.testing.assert_array_equal(tour.shown("after")[..., 0], np.rint(result / 257))
