from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from nlnet.cli import main
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import dct_basis, initial_parameters
from nlnet.plotting.curves import draw_curves
from nlnet.plotting.inspection import draw_model, mean_frequencies, potential, psi_curves


def entries(phases: list[str], step: float = 10.0) -> list[dict[str, Any]]:
    """A log of three epochs a phase, the second of which is not validated."""
    result = []
    for number, phase in enumerate(phases):
        for epoch in (1, 2, 3):
            score = 27 + number + 0.1 * epoch
            result.append(
                {
                    "phase": phase,
                    "epoch": epoch,
                    "epochs": 3,
                    "train_psnr": score + 1,
                    "val_psnr": None if epoch == 2 else score,
                    "rate": 0.01,
                    "seconds": step * (len(result) + 1),
                }
            )
    return result


GREEDY = ["greedy 1", "greedy 2"]


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def words(figure: Figure) -> set[str]:
    return {text.get_text() for panel in figure.axes for text in panel.texts}


def test_a_run_is_drawn_with_its_phases() -> None:
    figure = draw_curves({"one": entries([*GREEDY, "joint"])})
    assert len(figure.axes) == 4
    assert words(figure) == {"1", "2", "joint"}
    assert labels(figure)[0] == "one, best 29.300 dB"
    time, epochs, joint_time, _ = figure.axes
    assert [time.get_xlabel(), epochs.get_xlabel()] == ["seconds", "epochs"]
    train, validation = epochs.get_lines()
    assert np.array(train.get_xydata())[-1].tolist() == [9, 30.3]
    assert np.array(validation.get_xydata())[:, 0].tolist() == [1, 3, 4, 6, 7, 9]
    lines = [line for line in joint_time.get_lines() if len(line.get_xydata())]
    assert [np.array(line.get_xydata())[:, 0].tolist() for line in lines] == [[70, 90]]


def test_several_runs_are_told_apart() -> None:
    runs = {"slow": entries([*GREEDY, "joint"], 1000.0), "warm": entries(["joint"])}
    figure = draw_curves(runs)
    assert figure.axes[0].get_xlabel() == "hours"
    assert labels(figure)[:2] == ["slow, best 29.300 dB", "warm, best 27.300 dB"]
    assert labels(figure)[-1] == "joint training begins"
    assert not words(figure)


@pytest.mark.parametrize("phases", [["joint"], GREEDY])
def test_a_run_of_one_kind_of_phase_has_one_row(phases: list[str]) -> None:
    assert len(draw_curves({"run": entries(phases)}).axes) == 2


def test_a_run_that_was_not_validated_yet() -> None:
    figure = draw_curves({"new": entries(["greedy 1"])[1:2]})
    assert labels(figure)[0] == "new"


def test_curves_command(tmp_path: Path, fails: Callable[..., str]) -> None:
    run = tmp_path / "first"
    run.mkdir()
    lines = [json.dumps(entry) + "\n" for entry in entries(["greedy 1", "joint"])]
    (run / "log.jsonl").write_text("".join(lines))
    out = tmp_path / "curves.png"
    assert main(["curves", str(run), "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "--overwrite" in fails("curves", run, "-o", out)
    assert main(["curves", str(run / "log.jsonl"), "-o", str(tmp_path / "curves.svg")]) == 0
    assert "same name" in fails("curves", run, run / "log.jsonl", "-o", tmp_path / "x.pdf")
    named = run / "second.jsonl"
    named.write_text("".join(lines))
    assert main(["curves", str(run), str(named), "-o", str(tmp_path / "both.svg")]) == 0
    assert ".png" in fails("curves", run, "-o", tmp_path / "curves.txt")
    assert "No such file" in fails("curves", tmp_path / "none", "-o", tmp_path / "x.pdf")
    (run / "log.jsonl").write_text("".join(lines) + '{"phase": "jo')
    assert "Line 7" in fails("curves", run, "-o", tmp_path / "x.pdf")
    (run / "log.jsonl").write_text("")
    assert "no line yet" in fails("curves", run, "-o", tmp_path / "x.pdf")


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path,
    gray_model_file: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(sys.modules):
        if name.startswith(("nlnet.plotting", "matplotlib.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "x.png"
    assert "nlnet[plot]" in fails("curves", tmp_path, "-o", out)
    assert "nlnet[plot]" in fails("inspect", gray_model_file, "-o", out)


def test_inspect_command(tmp_path: Path, gray_model_file: Path, fails: Callable[..., str]) -> None:
    out = tmp_path / "model.png"
    assert main(["inspect", str(gray_model_file), "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "--overwrite" in fails("inspect", gray_model_file, "-o", out)
    assert "Unknown model" in fails("inspect", "gray-9x9", "-o", tmp_path / "x.png")


@pytest.mark.parametrize(("channels", "rows"), [(1, 4), (3, 8)])
def test_a_column_for_each_stage_and_rows_for_each_channel(channels: int, rows: int) -> None:
    config = NetworkConfig(channels=channels, stages=3, patch_size=7)
    model = Model(config, initial_parameters(config), sigma=25, name="drawn")
    figure = draw_model(model)
    *panels, scale = figure.axes
    assert len(panels) == rows * 3
    assert "frequency" in scale.get_ylabel()
    assert len(panels[0].get_images()) == 48
    bars = [bar.get_height() for bar in panels[-1].patches]
    assert bars == [1, 0, 0, 0, 0, 0, 0, 0]


def test_psi_and_potential_of_the_start() -> None:
    config = NetworkConfig(stages=1)
    x = np.linspace(-100, 100, 401)
    psi = psi_curves(initial_parameters(config)[0], config, x)[0, 0]
    inner = np.abs(x) <= 90
    np.testing.assert_allclose(
        psi[inner], (x * np.exp(-((x / 45) ** 2) / 2) / 50)[inner], atol=2e-3
    )
    phi = potential(psi, x)
    wanted = 45**2 / 50 * (1 - np.exp(-((x / 45) ** 2) / 2))
    np.testing.assert_allclose(phi[inner], wanted[inner], atol=0.05)


def test_frequencies_grow_with_those_of_the_dct() -> None:
    frequencies = mean_frequencies(dct_basis(5))
    assert frequencies.argmin() in (0, 4)  # (0, 1) and (1, 0)
    assert frequencies.argmax() == 23  # (4, 4)
    assert 0.1 < frequencies.min() < frequencies.max() < 0.71
