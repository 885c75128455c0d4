"""Pages and the guard around all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from paths import PROJECT
from starlette.testclient import TestClient
from web_server import client_of, service_of, told

from nlnet.model.model import Model
from nlnet.web.app import create_app

STATIC = PROJECT / "src" / "nlnet" / "web" / "static"


@pytest.fixture(scope="module")
def client(gray_model: Model) -> Iterator[TestClient]:
    with client_of([gray_model]) as client:
        yield client


def test_pages_load_nothing_from_elsewhere(client: TestClient) -> None:
    for page in ("/", "/docs"):
        text = client.get(page).text
        assert "//" not in text.replace("<!doctype html>", "")
        paths = re.findall(r'(?:src|href)="([^"]+)"', text)
        assert len(paths) >= 4
        for path in paths:
            assert client.get(urljoin(page, path)).status_code == 200, path


def test_the_page_works_under_a_sub_path(client: TestClient) -> None:
    """Nothing in it starts at the root, so a proxy, or a folder of files, may serve it anywhere."""
    assert '="/' not in client.get("/").text
    for script in sorted(STATIC.glob("*.js")):
        if script.name != "docs.js":  # of the page for programmers, which only the server has
            assert not re.search(r"""["'`]/[a-z]""", script.read_text()), script.name


@pytest.mark.parametrize("path", ["/", "/docs", "/static/app.js", "/healthz", "/nowhere"])
def test_every_answer_is_guarded(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_what_is_not_there(client: TestClient) -> None:
    assert "'/nowhere'" in told(client.get("/nowhere"), 404)
    told(client.get("/static/../app.py"), 404)
    told(client.get("/static/nowhere.js"), 404)
    assert "GET" in told(client.get("/api/denoise"), 405)


@pytest.mark.parametrize("host", ["evil.example", "[::1", "localhost.evil.example", ""])
def test_foreign_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/models", headers={"Host": host})
    assert answer.status_code == 400
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_pages_of_other_sites_are_refused(client: TestClient, origin: str) -> None:
    assert origin in told(client.get("/api/models", headers={"Origin": origin}), 403)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:80"])
def test_own_names_and_pages_are_not(client: TestClient, host: str) -> None:
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert client.get("/api/models", headers=headers).status_code == 200


def test_names_are_free_beyond_loopback(gray_model: Model) -> None:
    app = create_app(service_of([gray_model]))
    with TestClient(app, base_url="http://scanner.example") as client:
        assert client.get("/healthz").status_code == 200
