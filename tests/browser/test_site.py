"""The page without a server, from a plain file server under a sub-path, in chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import PROJECT

from benchmarks.browser_cases import KINDS, noisy_image
from browser.file_server import serve_files
from browser.tour import DESKTOP, SECONDS, Visit, by_command_line
from nlnet.images import ImageFile, read_image, write_image
from scripts.site import MOST, SITE, first_visit

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not SITE.exists(), reason="make site builds it"),
]

Sites = Callable[..., Visit]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_files(SITE, tmp_path_factory.mktemp("site")) as url:
        yield url


@pytest.fixture
def site(browser: Any, address: str) -> Iterator[Sites]:
    """Open the page; at the end nothing may have left the host, and nothing have gone wrong."""
    contexts, visits = [], []

    def start(*, isolated: bool = True, **options: Any) -> Visit:
        workers = "allow" if isolated else "block"
        context = browser.new_context(**{**DESKTOP, **options}, service_workers=workers)
        contexts.append(context)
        context.set_default_timeout(1000 * SECONDS)
        tour = Visit(context.new_page(), address, [], [])
        context.on("request", lambda request: tour.requests.append(request.url))
        tour.page.on("pageerror", lambda error: tour.complaints.append(str(error)))
        tour.page.on(
            "console",
            lambda message: message.type == "error" and tour.complaints.append(message.text),
        )
        tour.page.goto(address)
        tour.expect("#place", "never leave this device")
        assert tour.page.evaluate("crossOriginIsolated") == isolated
        visits.append(tour)
        return tour

    yield start
    for context in contexts:
        context.close()
    for tour in visits:
        own = (address, "blob:http", "data:")
        assert [url for url in tour.requests if not url.startswith(own)] == []
        assert tour.complaints == []


def test_a_first_visit_loads_little() -> None:
    assert first_visit(SITE) <= MOST


@pytest.mark.parametrize("isolated", [True, False])
def test_it_says_how_many_threads_work(site: Sites, isolated: bool, noisy_png: Path) -> None:
    tour = site(isolated=isolated)
    tour.expect("#place", "threads" if isolated else "on one thread, because the page is not")
    tour.open_and_wait(noisy_png)
    tour.expect("#found", "Found: white noise, about 2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 3])
def test_results_are_those_of_the_command(
    site: Sites, tmp_path: Path, kind: str, channels: int
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


def test_it_works_offline(site: Sites, noisy_png: Path) -> None:
    tour = site()
    tour.expect("#accepted", "PNG")
    kept = "() => caches.keys().then(([name]) => caches.open(name)).then((all) => all.keys())"
    tour.page.wait_for_function(f"() => ({kept})().then((keys) => keys.length > 40)")
    tour.page.context.set_offline(True)
    tour.page.reload()
    tour.open_and_wait(noisy_png)
    tour.expect("#found", "Found: white noise")


@pytest.mark.parametrize("isolated", [True, False])
def test_cancel_answers_at_once_and_the_page_never_waits(
    site: Sites, tmp_path: Path, photo: np.ndarray, isolated: bool
) -> None:
    write_image(tmp_path / "large.png", ImageFile(np.tile(photo, (8, 6, 1))))
    tour = site(isolated=isolated)
    tour.page.evaluate(
        """() => {
          globalThis.longest = 0;
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
          }).observe({ type: "longtask" });
        }"""
    )
    tour.open(tmp_path / "large.png")
    tour.expect("#busy-text", "Denoising 2")
    took = tour.page.evaluate(
        """async () => {
          const began = performance.now();
          document.getElementById("cancel").click();
          while (!document.getElementById("busy").hidden) {
            await new Promise((next) => setTimeout(next, 5));
          }
          return performance.now() - began;
        }"""
    )
    assert took < 200
    tour.page.get_by_role("button", name="Run again").click()
    tour.expect("#busy-text", "Denoising")
    tour.expect("#result")
    # A busy machine may keep the page waiting as well, so not every task counts.
    assert tour.page.evaluate("longest") < 200


def test_strengths_blend_and_are_saved(site: Sites, noisy_png: Path, tmp_path: Path) -> None:
    tour = site()
    tour.open_and_wait(noisy_png)
    tour.set_slider("grain", 40)
    tour.expect("#blend")
    tour.download(tmp_path / "result.png")
    expected = by_command_line(noisy_png, [], "--strength", "0.4,1")
    np.testing.assert_array_equal(read_image(tmp_path / "result.png").pixels, expected)


def test_a_jpeg_keeps_what_it_says(site: Sites, photo: np.ndarray, tmp_path: Path) -> None:
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


def test_what_only_the_command_can_do_is_said(site: Sites, tmp_path: Path) -> None:
    deep = np.random.default_rng(2).normal(30000, 3000, (60, 80)).astype(np.uint16)
    write_image(tmp_path / "deep.png", ImageFile(deep))
    write_image(tmp_path / "scan.tif", ImageFile(deep))
    tour = site()
    tour.open(tmp_path / "scan.tif")
    tour.expect("[role=alert]", "need the nlnet command, or its server")
    tour.open_and_wait(tmp_path / "deep.png")
    tour.expect("#notes", "its 16 bits become 8; the nlnet command and its server keep them")


def test_axe_finds_nothing(site: Sites, noisy_png: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tour = site()
    tour.open_and_wait(noisy_png)
    assert axe.run(tour.page).response["violations"] == []
    shots = PROJECT / "build" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    tour.page.screenshot(path=shots / "site.png")
