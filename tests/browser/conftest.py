"""A browser, a server for it, and what must hold at the end of every visit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import PROJECT
from web_server import ServerProcess, model_options, server_process

from browser.tour import DESKTOP, SECONDS, Visit
from nlnet.defaults import FAMILIES, FAST
from nlnet.images import ImageFile, read_image, write_image
from nlnet.model.loading import shipped_models
from nlnet.noise import add_noise

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


COUNT_URLS = """
  globalThis.liveUrls = new Set();
  const [create, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
  URL.createObjectURL = (blob) => {
    const url = create.call(URL, blob);
    liveUrls.add(url);
    return url;
  };
  URL.revokeObjectURL = (url) => {
    liveUrls.delete(url);
    revoke.call(URL, url);
  };
"""
"""What keeps count of the blobs that the page holds by a URL."""


@pytest.fixture(scope="module")
def models(gray_model_file: Path, color_model_file: Path) -> list[Path]:
    """Model files to serve: none where the shipped models do for gray and color."""
    shipped = set(FAMILIES[FAST].values()) <= set(shipped_models())
    return [] if shipped else [gray_model_file, color_model_file]


@pytest.fixture(scope="module")
def server(models: list[Path]) -> Iterator[ServerProcess]:
    with server_process(*model_options(*models), "--max-upload", 4) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium")
    # Root, as in containers, may not use the sandbox. Names other than the host's do not resolve.
    arguments = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, server: ServerProcess) -> Iterator[Callable[..., Visit]]:
    """Open the page; at the end nothing may have left the host, and nothing have gone wrong."""
    contexts = []
    visits = []

    def start(path: str = "/", at: ServerProcess = server, **options: Any) -> Visit:
        contexts.append(browser.new_context(**{**DESKTOP, **options}))
        contexts[-1].set_default_timeout(1000 * SECONDS)
        contexts[-1].add_init_script(COUNT_URLS)
        visit = Visit(contexts[-1].new_page(), at.url, [], [])
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning") and visit.complaints.append(message.text)
            ),
        )
        visit.page.goto(at.url + path)
        visits.append(visit)
        return visit

    yield start
    for context in contexts:
        context.close()
    for visit in visits:
        assert visit.requests
        own = (visit.url, "blob:http")
        foreign = [url for url in visit.requests if not url.startswith(own)]
        assert [url for url in foreign if not url.startswith("data:")] == []
        assert visit.complaints == []


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    clean = read_image(PROJECT / "examples" / "cat.png").pixels[40:240, 60:360]
    return np.rint(np.clip(add_noise(clean, 25, seed=0), 0, 255)).astype(np.uint8)


@pytest.fixture
def noisy_png(photo: np.ndarray, tmp_path: Path) -> Path:
    write_image(tmp_path / "noisy photo.png", ImageFile(photo))
    return tmp_path / "noisy photo.png"
