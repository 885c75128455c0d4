"""The second run of the numerical tests, with fewer CPU features, really has fewer of them."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from paths import PROJECT

import nlnet
from nlnet.engine.library import SETS, available_sets, instruction_set

pytest.importorskip("torch")
baseline = pytest.importorskip("scripts.baseline")


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="names x86-64's features")
def test_no_library_uses_more_than_the_baseline() -> None:
    assert baseline.features_of_the_smallest() == {
        "numpy": [],
        "openblas": ["Nehalem"],
        "engine": "nlnet engine 3, SSE2",
        "torch": "DEFAULT",
    }


def test_no_numerical_test_is_missed_by_looking_at_few_files() -> None:
    """Neither a test module nor an example in a docstring, which count as numerical, too."""
    chosen = set(baseline.numerical_files())
    assert "src" in chosen
    for path in PROJECT.glob("tests/*.py"):
        text = path.read_text()
        if path != Path(__file__) and ("mark.numerical" in text or "\n    >>> " in text):
            assert str(path) in chosen or path.name == "conftest.py"


def test_tests_that_do_not_call_the_engine_run_once_less() -> None:
    (marks, environment), *others = baseline.passes()
    assert "engineless" not in marks
    assert environment["NLNET_INSTRUCTION_SET"] == available_sets()[0]
    assert all("not engineless" in more for more, _ in others)
    best = {name for name in available_sets() if SETS[name] == instruction_set()}
    met = {environment["NLNET_INSTRUCTION_SET"] for _, environment in baseline.passes()}
    assert met | best == set(available_sets())


def test_it_runs_again_only_after_a_change_of_what_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in baseline.COMPUTING:
        assert (PROJECT / name).exists(), name
    kernel = tmp_path / "engine" / "src" / "kernels.h"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("one")
    monkeypatch.setattr(baseline, "ROOT", tmp_path)
    monkeypatch.setattr(baseline, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(baseline, "features", dict)
    monkeypatch.setattr(baseline, "features_of_the_smallest", dict)
    runs: list[object] = []

    def run(command: object, **_: object) -> subprocess.CompletedProcess[str]:
        runs.append(command)
        return subprocess.CompletedProcess("", returncode=len(runs) == 1)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("sys.argv", ["baseline", "--if-changed", "-q"])
    assert baseline.main() == 1  # and a run that failed does not count
    for expected in (len(baseline.passes()) + 1, len(baseline.passes()) + 1):
        assert baseline.main() == 0
        assert len(runs) == expected
    assert "last passed" in capsys.readouterr().out
    kernel.write_text("two")
    assert baseline.main() == 0
    assert len(runs) == 2 * len(baseline.passes()) + 1


@pytest.mark.engineless
def test_a_test_without_the_engine_cannot_call_it() -> None:
    with pytest.raises(AssertionError, match="engineless"):
        nlnet.denoise(np.zeros((16, 16), np.uint8), 25)
