"""What docs/paper_map.md says of the paper leads to code and tests that exist."""

from __future__ import annotations

import importlib
import re

import pytest
from paths import PROJECT

TABLES = re.findall(r"^\|.*\|$", (PROJECT / "docs" / "paper_map.md").read_text(), re.MULTILINE)
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TABLES
    if not re.fullmatch(r"[|\s:-]+", line)
]
PYTHON = re.compile(r"`([a-z_]+(?:\.\w+)+)`")
NATIVE = re.compile(r"`([\w/]+\.(?:h|cpp))::(\w+)`")
TEST = re.compile(r"`(test_\w+\.py)?::(\w+)`")


def python_functions() -> list[str]:
    return sorted({name for row in ROWS for name in PYTHON.findall(row[2])})


def native_functions() -> list[tuple[str, str]]:
    return sorted({found for row in ROWS for found in NATIVE.findall(row[2])})


def named_tests() -> list[tuple[str, str]]:
    """The tests of each row; without a file they are of the one before."""
    found = set()
    for row in ROWS:
        file = ""
        for named, test in TEST.findall(row[3]):
            file = named or file
            found.add((file, test))
    return sorted(found)


def test_the_map_is_read() -> None:
    assert len(ROWS) > 30
    assert len(python_functions()) > 10
    assert len(native_functions()) > 15
    assert len(named_tests()) > 20


@pytest.mark.parametrize("name", python_functions())
def test_functions_exist(name: str) -> None:
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: object = importlib.import_module(".".join(["nlnet", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return
    pytest.fail(f"there is no module of {name}")


@pytest.mark.parametrize(("file", "name"), native_functions())
def test_functions_of_the_engine_exist(file: str, name: str) -> None:
    source = (PROJECT / "engine" / "src" / file).read_text()
    assert re.search(rf"^(?:struct {name} |static .*\b{name}\()", source, re.MULTILINE)


@pytest.mark.parametrize(("file", "test"), named_tests())
def test_tests_exist(file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (PROJECT / "tests" / file).read_text(), re.MULTILINE)
