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

from browser.tour import DESKTOP, SECONDS, Visit, Visits
from nlnet.defaults import FAMILIES, FAST
from nlnet.images import ImageFile, read_image, write_image
from nlnet.model.loading import shipped_models
from nlnet.noise import add_noise
from scripts.file_server import serve_files
from scripts.site import SITE

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


def close(contexts: list[Any], visits: list[Visit]) -> None:
    """Close what was open; nothing may have left the host, and nothing have gone wrong."""
    for context in contexts:
        context.close()
    for visit in visits:
        assert visit.requests
        own = (visit.url, "blob:http", "data:")
        assert [url for url in visit.requests if not url.startswith(own)] == []
        assert visit.complaints == []


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
    close(contexts, visits)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page without a server, below a sub-path, as a project's page on GitHub is."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(SITE, folder / "projects" / "nlnet")
    with serve_files(folder) as url:
        yield f"{url}projects/nlnet/"


WATCH_WORK = """
  globalThis.asked = 0; // images that workers were asked to denoise
  globalThis.isHeld = () => false; // whether the next one is not to be passed on before letGo()
  globalThis.letGo = null;
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, transferred) {
    const send = () => postMessage.call(this, message, transferred);
    if (message.type !== "denoise") return send();
    asked++;
    if (!isHeld()) return send();
    globalThis.letGo = send;
  };
"""


@pytest.fixture
def site(browser: Any, address: str) -> Iterator[Visits]:
    """Open the page without a server; nothing may leave the host, and nothing go wrong."""
    contexts, visits = [], []

    def start(*, isolated: bool = True, **options: Any) -> Visit:
        workers = "allow" if isolated else "block"
        context = browser.new_context(**{**DESKTOP, **options}, service_workers=workers)
        contexts.append(context)
        context.set_default_timeout(1000 * SECONDS)
        context.add_init_script(WATCH_WORK)
        tour = Visit(context.new_page(), address, [], [], served=False)
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
    close(contexts, visits)


BUILT = pytest.mark.skipif(not SITE.exists(), reason="make site builds it")
BOTH = (
    pytest.param("visit", marks=pytest.mark.browser),
    pytest.param("site", marks=(pytest.mark.site, BUILT)),
)


@pytest.fixture(params=BOTH)
def either(request: pytest.FixtureRequest) -> Visits:
    """Open the page of the server, and in another test the page without one."""
    start: Visits = request.getfixturevalue(request.param)
    return start


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    clean = read_image(PROJECT / "examples" / "cat.png").pixels[40:240, 60:360]
    return np.rint(np.clip(add_noise(clean, 25, seed=0), 0, 255)).astype(np.uint8)


@pytest.fixture
def noisy_png(photo: np.ndarray, tmp_path: Path) -> Path:
    write_image(tmp_path / "noisy photo.png", ImageFile(photo))
    return tmp_path / "noisy photo.png"
