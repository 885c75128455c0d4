"""The gallery's scripts run, as a reader starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import PROJECT

SCRIPTS = sorted(PROJECT.glob("examples/[0-9]_*.py"))
TESTED_ELSEWHERE = {"6_deblurring.py"}  # by test_deblurring.py, for what it gains


@pytest.mark.parametrize(
    "script",
    [script for script in SCRIPTS if script.name not in TESTED_ELSEWHERE],
    ids=lambda path: path.stem,
)
def test_an_example_runs(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    if "train" in script.name:
        pytest.importorskip("torch")
    # All warnings are errors, but for the one that there is no screen to show a figure on.
    options = ["-W", "error", "-W", "ignore:FigureCanvasAgg:UserWarning"]
    environment = {**os.environ, "MPLBACKEND": "agg", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *options, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_gallery_has_what_the_readme_promises() -> None:
    assert len(SCRIPTS) >= 6
    assert all(script.read_text().startswith('"""\n') for script in SCRIPTS)
