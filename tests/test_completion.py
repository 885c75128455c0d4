"""``nlnet completion``: real shells complete what is typed into a terminal."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nlnet.cli import main
from nlnet.cli.completion import SHELLS

START = {
    "bash": ["bash", "--noprofile", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SETUP = {
    "bash": "PS1='rea''dy> '; bind 'set bell-style none'; source {script}",
    "zsh": "PS1='rea''dy> '; fpath=({script.parent} $fpath); autoload -Uz compinit; compinit -uD",
}
PATIENCE = 30.0


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    def write(shell: str) -> Path:
        if shutil.which(shell) is None:
            pytest.skip(f"there is no {shell}")
        assert main(["completion", shell]) == 0
        path = tmp_path / "_nlnet"  # the name zsh looks for
        path.write_text(capsys.readouterr().out)
        return path

    return write


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._terminal, end = os.openpty()
        self._shell = subprocess.Popen(
            command,
            stdin=end,
            stdout=end,
            stderr=end,
            cwd=folder,
            env={**os.environ, "TERM": "dumb", "HOME": str(folder), "COLUMNS": "200"},
            start_new_session=True,
        )
        os.close(end)
        self._shown = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str) -> None:
        """Read until the shell has shown the pattern, and forget what came before it."""
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self._shown)) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} is not in {self._shown!r}"
            if select.select([self._terminal], [], [], left)[0]:
                self._shown += os.read(self._terminal, 4096).decode(errors="replace")
        self._shown = self._shown[match.end() :]

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._terminal)


@pytest.fixture(params=sorted(START))
def terminal(
    request: pytest.FixtureRequest, script: Callable[[str], Path], tmp_path: Path
) -> Iterator[Terminal]:
    shell = request.param
    path = script(shell)
    (tmp_path / "unusual-name.png").touch()
    (tmp_path / "trained.safetensors").touch()
    opened = Terminal(START[shell], tmp_path)
    try:
        opened.type(SETUP[shell].format(script=path) + "\n")
        opened.wait_for("ready> ")
        yield opened
    finally:
        opened.close()


# What is typed before Tab, and what must then stand there.
CASES = [
    ("nlnet comple", "nlnet completion "),
    ("nlnet denoise unus", "nlnet denoise unusual-name.png"),
    ("nlnet denoise a.png --over", "nlnet denoise a.png --overwrite"),
    ("nlnet denoise a.png --model color-5x5-s2", "--model color-5x5-s25"),
    ("nlnet denoise a.png --model trai", "--model trained.safetensors"),
    ("nlnet inspect gray-7x7-s2", "nlnet inspect gray-7x7-s25"),
    ("nlnet completion fi", "nlnet completion fish"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")
def test_tab_completes(terminal: Terminal) -> None:
    for typed, completed in CASES:
        terminal.type(f"{typed}\t")
        terminal.wait_for(re.escape(completed))
        terminal.type("\x15\n")  # clear the line
        terminal.wait_for("ready> ")


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_fish_completes(
    script: Callable[[str], Path], tmp_path: Path, typed: str, completed: str
) -> None:
    path = script("fish")
    (tmp_path / "unusual-name.png").touch()
    (tmp_path / "trained.safetensors").touch()
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {path}; complete -C '{typed}'"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        timeout=PATIENCE,
    )
    assert completed.split()[-1] in [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_other_shells(fails: Callable[..., str]) -> None:
    assert "'tcsh'" in fails("completion", "tcsh")
    assert "SHELL" in fails("completion")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for word in (
        "denoise",
        "noise",
        "add-noise",
        "evaluate",
        "inspect",
        "serve",
        "train",
        "gray-5x5-s25",
    ):
        assert word in text
