"""Parts of other packages that are used though they are not promised to stay.

Each has an upper bound in pyproject.toml, at the next major version, and is looked for here: if a
release takes it away, this says so in a sentence, before a server or a scan does in the night.
"""

from __future__ import annotations

import importlib
import importlib.resources
import re

import pytest
from paths import PROJECT

USES = {
    # A stop is no error and says what it waits for; no setting limits how many connections there
    # are, or how long the head of a request may take.
    "uvicorn": ("uvicorn", "Server", ("handle_exit", "startup", "shutdown", "on_tick")),
    # No setting keeps uploads of any size in memory.
    "starlette": ("starlette.formparsers", "MultiPartParser", ("spool_max_size",)),
    # Blocks of an output that was given up must not make its folder anew.
    "zarr": ("zarr.storage", "LocalStore", ("set",)),
}


@pytest.mark.parametrize("package", [*USES, "fastapi-offline"])
def test_there_is_an_upper_bound(package: str) -> None:
    text = (PROJECT / "pyproject.toml").read_text()
    wanted = re.findall(rf'"{package}(?:\[\w+\])?([^"]*)"', text)
    assert wanted
    assert all(re.search(r",<\d", bounds) for bounds in wanted)


@pytest.mark.parametrize("package", USES)
def test_it_is_still_there(package: str) -> None:
    module, owner, names = USES[package]
    pytest.importorskip(package)
    found = getattr(importlib.import_module(module), owner)
    assert [name for name in names if not hasattr(found, name)] == []


def test_the_page_of_the_api_finds_its_scripts() -> None:
    """fastapi_offline has them in a folder, and no function that says where."""
    assets = importlib.resources.files(pytest.importorskip("fastapi_offline")) / "static"
    page = (PROJECT / "src" / "nlnet" / "web" / "static" / "docs.html").read_text()
    names = re.findall(r"docs/assets/([\w.-]+)", page)
    assert names
    assert [name for name in names if not (assets / name).is_file()] == []
