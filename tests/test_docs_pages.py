"""The pages of the documentation hang together, without building them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import PROJECT

import nlnet
from nlnet.cli import build_parser

DOCS = PROJECT / "docs"
MARKDOWN = [
    path for path in (*PROJECT.glob("*.md"), *DOCS.rglob("*.md")) if "gallery" not in path.parts
]


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = {DOCS / "index.md"}
    for index in (DOCS / "index.md", DOCS / "models" / "index.md"):
        for body in re.findall(r"```{toctree}\n(.*?)```", index.read_text(), re.DOTALL):
            for entry in re.findall(r"^[^:\s]\S*$", body, re.MULTILINE):
                found = [*index.parent.glob(f"{entry}.md"), *index.parent.glob(f"{entry}.rst")]
                # The gallery's pages are written by the build, from the scripts in examples/.
                assert found or entry == "gallery/index", entry
                listed.update(path for path in found if "gallery" not in path.parts)
    pages = {*DOCS.glob("*.md"), *DOCS.glob("*.rst"), *DOCS.glob("models/*.md")}
    assert pages - {DOCS / "sg_execution_times.rst"} == listed  # that one a build leaves behind


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target and not target.startswith("gallery/"):
            assert (page.parent / target).exists(), target


def test_links_lead_to_headings_that_are_there() -> None:
    for page in MARKDOWN:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
            if "://" not in target:
                text = (page.parent / target if target else page).read_text()
                anchors = [
                    re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
                    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
                ]
                assert anchor in anchors, f"{page.name}: {target}#{anchor}"


REFERENCE = (DOCS / "api.rst").read_text()
WHOLE_MODULES = re.findall(r"automodule:: (\S+)\n   :members:", REFERENCE)


def test_what_is_public_is_in_the_reference() -> None:
    single = set(re.findall(r"auto(?:function|class):: (\S+)", REFERENCE))
    for name in nlnet.__all__:
        thing = getattr(nlnet, name)
        if not name.startswith("_"):
            assert f"nlnet.{name}" in single or thing.__module__ in WHOLE_MODULES, name
    assert {"nlnet.dask", "nlnet.images", "nlnet.torch"} <= set(WHOLE_MODULES)


@pytest.mark.parametrize("module_name", WHOLE_MODULES)
def test_what_the_reference_shows_has_docstrings(module_name: str) -> None:
    module = pytest.importorskip(module_name)
    for name in getattr(module, "__all__", vars(module)):
        thing = getattr(module, name)
        ours = inspect.isfunction(thing) or inspect.isclass(thing)
        if ours and not name.startswith("_") and thing.__module__.startswith(module_name):
            assert inspect.getdoc(thing), f"{module_name}.{name} has no docstring"


@pytest.mark.parametrize("command", build_parser().commands)
def test_help_of_every_command_teaches_by_example(command: str) -> None:
    assert f"examples:\n  nlnet {command}" in build_parser().commands[command].format_help()


def test_make_help_lists_every_target_that_has_words() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    wanted = re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE)
    done = subprocess.run(
        ["make", "--silent", "help"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == wanted
    assert {"test-browser", "docs"} <= set(wanted)


def test_python_m_nlnet_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nlnet", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout == build_parser().format_help()
