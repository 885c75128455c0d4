"""The package's folders are its layers, in the order of docs/design.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import PROJECT

import nlnet

PACKAGE = Path(nlnet.__file__).parent

DESIGN = (PROJECT / "docs" / "design.md").read_text()
LAYERS = re.findall(r"^(\w+)  +\w", DESIGN.split("```text\n")[1].split("```")[0], re.MULTILINE)
RANKS = {name: rank for rank, name in enumerate(LAYERS)}

# Denoising on a GPU is done by the torch module, which is loaded when a device is named.
EXCEPTIONS = {("denoising/devices.py", "torch")}

# Doors: the package itself hands out the public names, and `python -m` is the command line.
DOORS = {"__init__.py", "__main__.py", "training/__main__.py"}


def modules() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def layer_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def imported(source: str) -> Iterator[str]:
    """Yield what a module imports of nlnet, wherever in it: lazy imports count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole path"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "nlnet" and rest.split(".")[0] in RANKS:
                yield rest.split(".")[0]


def test_every_module_is_in_a_layer() -> None:
    assert {layer_of(module) for module in modules()} - {"__init__", "__main__"} == set(RANKS)


@pytest.mark.parametrize("module", [module for module in modules() if module not in DOORS])
def test_a_module_knows_only_the_layers_above_it(module: str) -> None:
    own = layer_of(module)
    known = {
        name
        for name in imported((PACKAGE / module).read_text())
        if name != own and (module, name) not in EXCEPTIONS
    }
    assert not {name for name in known if RANKS[name] >= RANKS[own]}


def test_the_exceptions_are_needed() -> None:
    for module, name in EXCEPTIONS:
        assert name in set(imported((PACKAGE / module).read_text()))


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("from nlnet.web.app import make_app", {"web"}),
        ("import nlnet.dask", {"dask"}),
        ("from nlnet import cli, denoise", {"cli"}),
        ("def late():\n    from nlnet.torch import NLNet", {"torch"}),
        ("import numpy, nlnet", set()),
    ],
)
def test_every_way_to_import_is_seen(source: str, known: set[str]) -> None:
    assert set(imported(source)) == known
