"""Several processes, started by torchrun on this machine, against a single one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import read_lines, recipe, train, write_data, write_toml

from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.training.checkpoints import load_checkpoint

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or sys.platform == "win32", reason="no torchrun here"
)

# 20 losses of each optimiser; five crops, which four processes cannot share evenly.
RECIPE = recipe(
    precision="float64",
    validate_every=10,
    checkpoint_minutes=0,
    network={"stages": 1},
    data={"crops": 5},
    greedy={"optimizer": "adam", "epochs": 20, "batch": 5},
    joint={"optimizer": "lbfgs", "epochs": 20, "batch": 2},
)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the data, the recipe, and a run of one process."""
    folder = tmp_path_factory.mktemp("single")
    write_data(folder / "data")
    write_toml(folder / "tiny.toml", RECIPE)
    train(RECIPE, folder / "data", folder / "run")
    return folder


def torchrun(count: int, entry: list[str], folder: Path, run: Path, *more: str) -> Any:
    start = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(count), *entry, str(folder / "tiny.toml")),
            *("--data", str(folder / "data"), "--out", str(run), "--threads", "1", *more),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "DIE_AFTER": "30"},
    )
    return done, time.monotonic() - start


def assert_same_losses(one: Path, other: Path) -> None:
    lines, others = read_lines(one), read_lines(other)
    assert [line["phase"] for line in lines] == ["greedy 1"] * 20 + ["joint"] * 20
    for key in ("train_psnr", "val_psnr"):
        for line, its in zip(lines, others, strict=True):
            assert line[key] == pytest.approx(its[key], abs=1e-5), line


def test_four_processes_take_the_steps_of_one(single: Path, tmp_path: Path) -> None:
    done, _ = torchrun(4, ["-m", "nlnet.training"], single, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("joint 20/20") == 1  # only one of them speaks
    assert_same_losses(tmp_path / "run", single / "run")


def test_two_processes_one_of_which_dies(single: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    script = str(Path(__file__).with_name("dying_rank.py"))
    done, seconds = torchrun(2, [script], single, run)
    assert done.returncode != 0
    assert seconds < 60
    assert "Signal 9 (SIGKILL)" in done.stderr
    assert 20 < len(read_lines(run)) < 40
    done, _ = torchrun(2, ["-m", "nlnet.training"], single, run, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same_losses(run, single / "run")


def test_two_processes_refine_as_one_does(tmp_path: Path) -> None:
    """In float32, of which five digits are left."""
    data, config = write_data(tmp_path / "data"), NetworkConfig(stages=1, window=7)
    start = tmp_path / "stages.safetensors"
    Model(config, initial_parameters(config), sigma=25.0, name="stages").save(start)
    values = recipe(
        start=str(start),
        sigmas=[5, 50],
        network={"stages": 1},
        joint={"epochs": 0},
        refinement={"epochs": 4, "batch": 3, "cut": 16, "reuse": 2},
    )
    del values["sigma"]
    sizes = {"widths": [8], "down": [1], "up": []}
    path = write_toml(tmp_path / "tiny.toml", values)
    path.write_text(f"{path.read_text()}[network.refinement]\n{_toml(sizes)}")
    values["network"]["refinement"] = sizes
    train(values, data, tmp_path / "one")
    done, _ = torchrun(2, ["-m", "nlnet.training"], tmp_path, tmp_path / "two")
    assert done.returncode == 0, done.stderr
    for line, its in zip(*(read_lines(tmp_path / run) for run in ("one", "two")), strict=True):
        assert line["phase"] == "refinement"
        assert line["rate"] == its["rate"]
        for key in ("train_psnr", "val_psnr"):
            assert line[key] == pytest.approx(its[key], abs=2e-3), line
    one, two = (load_checkpoint(tmp_path / run).network for run in ("one", "two"))
    gamma = "refinement.values.step_size"
    assert not torch.equal(one[gamma], torch.tensor([0.5, 0.0]))
    torch.testing.assert_close(one[gamma], two[gamma], rtol=0, atol=1e-4)


def _toml(table: dict[str, list[int]]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in table.items())


def test_a_wrong_recipe_is_said_once(single: Path, tmp_path: Path) -> None:
    write_toml(tmp_path / "tiny.toml", recipe(sigma=-1))
    done, _ = torchrun(2, ["-m", "nlnet.training"], tmp_path, tmp_path / "run")
    assert done.returncode != 0
    assert done.stderr.count("The setting 'sigma'") == 1
