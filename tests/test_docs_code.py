"""Every block of code in the README and the docs is run, or says why it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from documented_code import Block, read_blocks
from paths import PROJECT

from nlnet.training.settings import settings_from_mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = sorted(
    str(path.relative_to(PROJECT))
    for path in [
        *PROJECT.glob("*.md"),
        *PROJECT.glob("examples/*.md"),
        *PROJECT.glob("docs/*.md"),
        *PROJECT.glob("docs/models/*.md"),
    ]
)
RUN = {"sh", "python", "toml"}
NOT_CODE = {"text", "bibtex"}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone to whoever types the commands of a page."""
    (tmp_path / "examples").mkdir()
    shutil.copy(PROJECT / "examples" / "cat.png", tmp_path / "examples")
    shutil.copytree(PROJECT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    scripts = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page: str, workplace: Path) -> None:
    namespace: dict[str, Any] = {}
    for block in read_blocks(PROJECT / page, page):
        if block.reason is not None or block.language in NOT_CODE or block.language[:1] == "{":
            continue  # braces are directives of Sphinx, which its build runs
        assert block.language in RUN, f"{block}: the language {block.language!r} is not known"
        if block.language == "sh":
            run_shell(block)
        elif block.language == "toml":
            check_recipe(tomllib.loads(block.code))
        else:
            exec(compile("\n" * block.line + block.code, str(PROJECT / page), "exec"), namespace)


def check_recipe(values: dict[str, Any]) -> None:
    """A recipe can be used; that of a model may have a setting that is gone by now."""
    values.get("refinement", {}).pop("blind", None)
    settings_from_mapping(values)


def run_shell(block: Block) -> None:
    command = ["bash", "-euo", "pipefail", "-c", block.code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{block}: {done.stderr or done.stdout}"
    assert "Traceback" not in done.stderr


def test_few_blocks_are_not_run() -> None:
    """Marks are for what installs, serves or takes the data set; most code has to run."""
    blocks = [block for page in PAGES for block in read_blocks(PROJECT / page, page)]
    code = [block for block in blocks if block.language in {"sh", "python"}]
    assert len([block for block in code if block.reason is not None]) < len(code) / 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("```sh\nls\n```\n", [("sh", "ls\n", None)]),
        ("- a list\n\n  ```python\n  x = 1\n  ```\n", [("python", "x = 1\n", None)]),
        ("<!-- not run: a server -->\n```sh\nserve\n```\n", [("sh", "serve\n", "a server")]),
        (
            "<!-- python\nx = 1\n-->\n\n```\nx\n```\n",
            [("python", "x = 1\n", None), ("", "x\n", None)],
        ),
        ("````text\n```sh\n```\n````\n", [("text", "```sh\n```\n", None)]),
    ],
)
def test_blocks_are_found(text: str, wanted: list[object], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    found = [(block.language, block.code, block.reason) for block in read_blocks(page, "page.md")]
    assert found == wanted


@pytest.mark.parametrize(
    "text", ["<!-- not run: x -->\nwords\n```sh\nls\n```\n", "<!-- not run: x -->\n"]
)
def test_a_mark_stands_before_its_block(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="not run"):
        list(read_blocks(page, "page.md"))
