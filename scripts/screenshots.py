"""The pictures of the web pages in ``docs/web.md``: ``make screenshots``. It needs chromium.

Without ``build/site``, which ``make site`` builds, the picture of that page stays as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
from playwright.sync_api import sync_playwright

from nlnet.atomic import write_atomically
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise
from scripts.file_server import serve_files
from scripts.results import PROJECT
from scripts.site import SITE

IMAGES = PROJECT / "docs" / "images"
PHOTO = PROJECT / "examples" / "cat.png"
DESKTOP = {"viewport": {"width": 1366, "height": 850}}
PHONE = {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 2, "is_mobile": True}
SIGMAS = {"cat.png": 25, "cat at dusk.png": 40, "cat by day.png": 10, "cat in the rain.png": 15}


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("there is no chromium")
    with (
        tempfile.TemporaryDirectory() as folder,
        serve() as url,
        sync_playwright() as playwright,
    ):
        files = make_files(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shoot_result(browser.new_context(**DESKTOP).new_page(), url, files)
        shoot_phone(browser.new_context(**PHONE, color_scheme="dark").new_page(), url, files)
        if SITE.exists():
            with serve_files(SITE) as site:
                dark = browser.new_context(**DESKTOP, color_scheme="dark")
                shoot_site(dark.new_page(), site, files)
        browser.close()


@contextmanager
def serve() -> Iterator[str]:
    """Run a server, and give its address."""
    command = [sys.executable, "-m", "nlnet", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[2]
        finally:
            server.terminate()


def make_files(folder: Path) -> list[Path]:
    """Write the bundled photo with noise of several strengths."""
    clean = read_image(PHOTO).pixels
    for name, sigma in SIGMAS.items():
        noisy = np.rint(np.clip(add_noise(clean, sigma, seed=0), 0, 255)).astype(np.uint8)
        write_image(folder / name, ImageFile(noisy))
    return [folder / name for name in SIGMAS]


def shoot_result(page: Any, url: str, files: list[Path]) -> None:
    """Take several files, of which one is shown."""
    page.goto(url)
    page.locator("#file").set_input_files(files)
    for place in range(len(files)):
        page.locator("#file-list li").nth(place).get_by_text("done", exact=True).wait_for()
    page.wait_for_timeout(1000)
    save(page, "web-files.jpg")


def shoot_phone(page: Any, url: str, files: list[Path]) -> None:
    """Take one file on a phone, at night."""
    page.goto(url)
    page.locator("#file").set_input_files(files[0])
    page.locator("#handle").wait_for()
    page.wait_for_timeout(1000)
    save(page, "web-phone.jpg")


def shoot_site(page: Any, url: str, files: list[Path]) -> None:
    """Take the page without a server, at night, with a photo that keeps some of its grain."""
    page.goto(url)
    page.locator("#place", has_text="threads").wait_for()
    page.locator("#file").set_input_files(files)
    page.locator("#tally", has_text=f"{len(files)} of {len(files)} done").wait_for(timeout=120_000)
    page.locator("#grain").fill("60")
    page.locator("#grain").blur()
    page.wait_for_timeout(1000)
    save(page, "web-site.jpg")


def save(page: Any, name: str) -> None:
    """Write what the page shows, small enough to be kept."""
    shown = pyvips.Image.new_from_buffer(page.screenshot(), "")
    shown = shown.flatten() if shown.hasalpha() else shown
    write_atomically(IMAGES / name, shown.jpegsave_buffer(Q=70, strip=True))


if __name__ == "__main__":
    main()
