"""What docs/paper_map.md and the walks of docs/design.md name, code and tests, exists."""

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
NAME = re.compile(r"`([a-z_]+(?:\.\w+)*)`")
ENGINE = re.compile(r"`([\w/]+\.(?:h|cpp)):(\w+)`")
TEST = re.compile(r"`(test_\w+\.py)?::(\w+)`")


def named_functions() -> list[str]:
    """The functions of each row; a bare name is of the module that the one before it is of."""
    found = []
    for row in ROWS:
        module = ""
        for name in NAME.findall(row[2]):
            module = name.rpartition(".")[0] or module
            found.append(name if "." in name else f"{module}.{name}")
    return found


def walked_functions() -> list[str]:
    """The functions that a pixel and a step of training pass."""
    design = (PROJECT / "docs" / "design.md").read_text()
    walks = design.split("## A pixel from file to file")[1].split("## A tile on its way")[0]
    return [name for name in NAME.findall(walks) if "." in name]


def named_kernels() -> list[tuple[str, str]]:
    """The files of the engine, and what is named of them."""
    return [found for row in ROWS for found in ENGINE.findall(row[2])]


def named_tests() -> list[tuple[str, str]]:
    """The tests of each row; without a file they are of the one before."""
    found = []
    for row in ROWS:
        file = ""
        for named, test in TEST.findall(row[3]):
            file = named or file
            found.append((file, test))
    return found


def test_the_map_is_read() -> None:
    assert len(ROWS) > 30
    assert len(named_functions()) > 20
    assert len(walked_functions()) > 25
    assert len(named_kernels()) > 30
    assert len(named_tests()) > 40


@pytest.mark.parametrize("name", sorted({*named_functions(), *walked_functions()}))
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


@pytest.mark.parametrize(("file", "name"), sorted(set(named_kernels())))
def test_what_is_named_of_the_engine_exists(file: str, name: str) -> None:
    source = (PROJECT / "engine" / "src" / file).read_text()
    assert re.search(rf"\b{name}\b", source)


@pytest.mark.parametrize(("file", "test"), sorted(set(named_tests())))
def test_tests_exist(file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (PROJECT / "tests" / file).read_text(), re.MULTILINE)
