from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from messages import refused
from training_cases import (
    ADAM,
    LBFGS,
    assert_same_run,
    final_bytes,
    picture,
    read_lines,
    recipe,
    train,
    write_data,
)

from nlnet.errors import FileError, InputError, ModelError
from nlnet.evaluation.protocol import evaluate_folder
from nlnet.model.family import Family
from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.torch import NLNet
from nlnet.training.checkpoints import FILE_NAME, load_checkpoint
from nlnet.training.data import CropSource
from nlnet.training.phase import GreedyPhase, Phase, Setup, StagesPhase
from nlnet.training.pictures import Pictures
from nlnet.training.settings import VALIDATION_SIGMAS, settings_from_mapping
from nlnet.training.start import rescale_mixtures, starting_parameters
from nlnet.training.team import Team

BOTH = {
    "adam": recipe(),
    "lbfgs": recipe(greedy=LBFGS, joint=LBFGS),
    "average": recipe(joint={**ADAM, "average": 0.9}),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole_runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each recipe trained without interruption."""
    runs = {name: tmp_path_factory.mktemp(name) for name in BOTH}
    for name, run in runs.items():
        assert train(BOTH[name], data, run)
    return runs


def at_call(number: int, action: Callable[[], bool]) -> Callable[[], bool]:
    """Do something the n-th time a step is over."""
    calls = iter(range(1, 10**6))
    return lambda: action() if next(calls) == number else False


def crash() -> bool:
    raise RuntimeError("killed")


# What a run leaves behind


@pytest.mark.parametrize("name", BOTH)
def test_a_run_learns_and_says_so(whole_runs: dict[str, Path], name: str) -> None:
    lines = read_lines(whole_runs[name])
    phases = [line["phase"] for line in lines]
    epochs = BOTH[name]["greedy"]["epochs"]
    assert (
        phases
        == ["greedy 1"] * epochs
        + ["greedy 2"] * epochs
        + ["joint"] * (BOTH[name]["joint"]["epochs"])
    )
    scores = [line["val_psnr"] for line in lines if line["val_psnr"] is not None]
    assert len(scores) == len(lines) // 2  # validate_every
    # Stage after stage is better than the noisy image, and so is each than the one before.
    noisy = 10 * np.log10(255**2 / 25**2)
    assert scores[0] > noisy + 1
    assert scores[-1] > scores[0] + 1


@pytest.mark.parametrize("name", BOTH)
def test_the_best_model_is_kept_and_reaches_its_figure_by_the_protocol(
    whole_runs: dict[str, Path], data: Path, name: str
) -> None:
    run = whole_runs[name]
    model = load_model(run / "best.safetensors")
    last = [line for line in read_lines(run) if line["phase"] in ("greedy 2", "joint")]
    best = max(line["val_psnr"] or 0 for line in last)
    assert model.figures["validation_psnr"] == pytest.approx(best, abs=1e-4)
    assert evaluate_folder(data / "val", model, 25).mean.psnr == pytest.approx(best, abs=2e-3)


def test_a_model_says_where_it_comes_from(whole_runs: dict[str, Path]) -> None:
    model = load_model(whole_runs["lbfgs"] / "best.safetensors")
    told = model.provenance
    assert told["recipe"] == (
        "4 iterations of L-BFGS per stage, 4 iterations of L-BFGS jointly, 4 crops of 20x20"
    )
    assert settings_from_mapping(told["settings"]) == settings_from_mapping(BOTH["lbfgs"])
    assert told["data"] == "images of the user, 4 images"
    assert set(told) == {
        "recipe", "settings", "data", "data_terms", "selection", "seed", "seconds", "megapixels",
        "earlier", "commit", "licence",
    }  # fmt: skip
    assert told["earlier"] == []
    # Two stages greedily, then both: at most four iterations each, on 4 crops of 20x20.
    assert 0 < told["megapixels"] <= round(3 * 4 * 4 * 20**2 / 1e6, 3)


def test_a_model_says_how_what_it_began_with_was_trained(
    data: Path, tmp_path: Path, trained: Path
) -> None:
    values = recipe(start=str(trained))
    assert not train(values, data, tmp_path, stop=at_call(1, lambda: True))
    assert train(values, data, tmp_path, resume=True)
    told = load_model(tmp_path / "best.safetensors").provenance
    (before,) = told["earlier"]
    first = load_model(trained).provenance
    assert before["name"] == str(trained)
    assert [before[key] for key in ("recipe", "seconds", "megapixels")] == [
        first[key] for key in ("recipe", "seconds", "megapixels")
    ]
    assert told["megapixels"] == round(2 * 4 * 20**2 / 1e6, 3)


def test_greedy_training_moves_one_stage_and_joint_training_all(data: Path, tmp_path: Path) -> None:
    seen = []

    def look() -> bool:
        seen.append(load_checkpoint(tmp_path).network)
        return False

    train(recipe(checkpoint_minutes=0), data, tmp_path, stop=look)
    steps = {"greedy 1": (seen[0], seen[3]), "greedy 2": (seen[4], seen[7])}
    moved = {
        title: {key[:8] for key in first if not torch.equal(first[key], last[key])}
        for title, (first, last) in steps.items()
    }
    assert moved == {"greedy 1": {"stages.0"}, "greedy 2": {"stages.1"}}
    joint = {key[:8] for key in seen[8] if not torch.equal(seen[8][key], seen[-1][key])}
    assert joint == {"stages.0", "stages.1"}


# Resuming


@pytest.mark.parametrize(
    ("name", "stop_at"),
    [*itertools.product(("adam", "lbfgs"), (1, 4, 6, 11)), ("average", 10)],
)
def test_a_run_goes_on_to_the_same_bits(
    whole_runs: dict[str, Path], data: Path, tmp_path: Path, name: str, stop_at: int
) -> None:
    values = BOTH[name]
    # Stopped, then resumed and crashed three steps later, which are lost.
    assert not train(values, data, tmp_path, stop=at_call(stop_at, lambda: True))
    with contextlib.suppress(RuntimeError):
        train(values, data, tmp_path, resume=True, stop=at_call(3, crash))
    assert train(values, data, tmp_path, resume=True)
    assert_same_run(tmp_path, whole_runs[name])


def test_a_finished_run_is_left_alone(
    whole_runs: dict[str, Path], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = whole_runs["adam"]
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert train(BOTH["adam"], data, run, resume=True)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert "Finished" in capsys.readouterr().err


def test_a_checkpoint_that_is_none(data: Path, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    for content in (b"", b"no checkpoint", b"PK\x03\x04"):
        path.write_bytes(content)
        with refused(ModelError, "damaged"):
            load_checkpoint(tmp_path)
    torch.save({"version": 7}, path)
    with refused(ModelError, "version 7"):
        load_checkpoint(tmp_path)
    torch.save({"version": 1, "settings": recipe()}, path)
    with refused(ModelError, "damaged"):
        load_checkpoint(tmp_path)


# What can go wrong


@pytest.mark.parametrize("optimizer", [ADAM, LBFGS])
def test_a_loss_that_is_not_a_number_keeps_the_last_good_checkpoint(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: dict[str, Any]
) -> None:
    honest = StagesPhase._losses
    calls = iter(range(10**6))

    def poisoned(self: StagesPhase, batch: Any) -> Any:
        return honest(self, batch) * (float("nan") if next(calls) >= 8 else 1)

    monkeypatch.setattr(StagesPhase, "_losses", poisoned)
    values = recipe(greedy=optimizer, joint=optimizer, checkpoint_minutes=0, validate_every=99)
    with refused(ModelError, "in phase", "lower rate") as caught:
        train(values, data, tmp_path)
    assert str(caught.value).count(". ") == 0
    assert all(tensor.isfinite().all() for tensor in load_checkpoint(tmp_path).network.values())
    monkeypatch.setattr(StagesPhase, "_losses", honest)
    assert train(values, data, tmp_path, resume=True)


def test_parameters_that_are_lost_are_not_saved(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gradient that is not finite spoils the parameters while the loss still looks good."""
    honest = Phase._loss

    def spoiled(self: Phase, batches: Any) -> Any:
        loss = honest(self, batches)
        self._moving[0].grad[0] = float("inf")
        return loss

    monkeypatch.setattr(Phase, "_loss", spoiled)
    with refused(ModelError, "parameters are not finite"):
        train(recipe(checkpoint_minutes=0), data, tmp_path)
    assert all(tensor.isfinite().all() for tensor in load_checkpoint(tmp_path).network.values())


def test_a_full_disk_is_one_sentence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    train(recipe(), data, tmp_path, stop=at_call(2, lambda: True))
    before = (tmp_path / FILE_NAME).read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with refused(FileError, "Cannot write", "checkpoint.pt'", "No space left"):
        train(recipe(checkpoint_minutes=0), data, tmp_path, resume=True)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert not list(tmp_path.glob(".*tmp"))
    # A run that could not be saved does not even begin.
    with refused(FileError, "No space left"):
        train(recipe(), data, tmp_path / "new", stop=lambda: pytest.fail("it has begun"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_log_that_cannot_be_written_is_one_sentence(data: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with refused(FileError, "Cannot write", "log.jsonl'", "No space left"):
        train(recipe(), data, tmp_path)


# Recipes of all kinds


@pytest.mark.parametrize("optimizer", [ADAM, LBFGS])
def test_a_batch_larger_than_all_crops(
    data: Path, tmp_path: Path, optimizer: dict[str, Any]
) -> None:
    values = recipe(greedy={**optimizer, "batch": 99}, joint={**optimizer, "batch": 99})
    assert train(values, data, tmp_path)
    assert all(np.isfinite(line["train_psnr"]) for line in read_lines(tmp_path))


def test_parts_of_a_full_batch_add_up(data: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for run, size in ((whole, 4), (parts, 3)):
        phase = {**LBFGS, "batch": size}
        train(recipe(precision="float64", greedy=phase, joint=phase), data, run)
    for one, other in zip(read_lines(whole), read_lines(parts), strict=True):
        assert one["train_psnr"] == pytest.approx(other["train_psnr"], abs=1e-9)


def test_color_and_kept_crops(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", (26, 30, 3))
    values = recipe(network={"channels": 3}, data={"fresh": False})
    assert train(values, data, tmp_path / "run")
    model = load_model(tmp_path / "run" / "best.safetensors")
    wanted = model.figures["validation_psnr"]
    assert evaluate_folder(data / "val", model, 25).mean.psnr == pytest.approx(wanted, abs=2e-3)


def test_greedy_training_alone_gives_a_model(data: Path, tmp_path: Path) -> None:
    assert train(recipe(joint={"epochs": 0}), data, tmp_path)
    assert load_model(tmp_path / "best.safetensors").provenance["recipe"].startswith("2 epochs")


def test_the_team_of_one_and_the_plain_network_see_the_same_loss(data: Path) -> None:
    """A device other than the CPU runs in torch operations; their gradients train the same."""
    settings = settings_from_mapping(recipe(precision="float64", greedy=LBFGS))
    crops = CropSource(Pictures([picture(n)[np.newaxis] for n in range(4)], []), settings)
    losses = []
    for backend in ("engine", "plain"):
        with Team(threads=1) as team:
            network = NLNet(settings.network, *starting_parameters(settings), threads=1)
            network.backend = backend
            phase = GreedyPhase(0, Setup(settings, network, crops, team))
            losses.append([loss for epoch in range(4) for loss in phase.epoch(epoch, 0)])
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


# Starting from another model


@pytest.fixture
def trained(whole_runs: dict[str, Path]) -> Path:
    return whole_runs["adam"] / "best.safetensors"


def test_a_start_skips_greedy_training(data: Path, tmp_path: Path, trained: Path) -> None:
    values = recipe(start=str(trained), sigma=50)
    assert train(values, data, tmp_path)
    assert {line["phase"] for line in read_lines(tmp_path)} == {"joint"}
    assert load_model(tmp_path / "best.safetensors").sigma == 50


def test_a_run_goes_on_without_the_model_it_started_from(
    data: Path, tmp_path: Path, trained: Path
) -> None:
    start = tmp_path / "start.safetensors"
    start.write_bytes(trained.read_bytes())
    values = recipe(start=str(start))
    train(values, data, tmp_path / "whole")
    train(values, data, tmp_path / "run", stop=at_call(1, lambda: True))
    start.unlink()
    assert train(values, data, tmp_path / "run", resume=True)
    assert final_bytes(tmp_path / "run") == final_bytes(tmp_path / "whole")


def for_every_sigma(trained: Path) -> dict[str, Any]:
    values = recipe(start=str(trained), sigmas=[5, 20, 80], joint={"epochs": 3})
    del values["sigma"]
    return values


def test_a_model_for_every_sigma_is_trained_and_goes_on_to_the_same_bits(
    data: Path, tmp_path: Path, trained: Path
) -> None:
    values = for_every_sigma(trained)
    train(values, data, tmp_path / "whole")
    train(values, data, tmp_path / "run", stop=at_call(3, lambda: True))
    assert train(values, data, tmp_path / "run", resume=True)
    assert final_bytes(tmp_path / "run") == final_bytes(tmp_path / "whole")
    family = load_model(tmp_path / "run" / "best.safetensors")
    assert isinstance(family, Family)
    assert family.sigmas == (5, 20, 80)
    # What was measured on the validation images, once more through the engine's own way.
    scores = [
        evaluate_folder(data / "val", family.at(sigma), sigma).mean.psnr
        for sigma in VALIDATION_SIGMAS
    ]
    assert np.mean(scores) == pytest.approx(family.figures["validation_psnr"], abs=2e-3)


def test_a_model_for_every_sigma_starts_as_the_one_it_starts_from(trained: Path) -> None:
    model = load_model(trained)
    settings = settings_from_mapping(for_every_sigma(trained))
    sets = starting_parameters(settings)
    assert len(sets) == 3
    network = NLNet(settings.network, *sets, sigmas=settings.sigmas, threads=1)
    image = torch.from_numpy(picture(1)[np.newaxis, np.newaxis].astype(np.float32))
    with torch.no_grad():
        for sigma in (5.0, 33.0):
            scale = model.sigma / sigma
            alone = NLNet(model.config, model.stages, box=(0.0, 255 * scale), threads=1)
            expected = alone(scale * image) / scale
            torch.testing.assert_close(network(image, sigma=sigma), expected, atol=0.02, rtol=0)
        with refused(InputError, "sigma is missing"):
            network(image)


def test_the_start_must_fit_the_recipe(trained: Path) -> None:
    with refused(ModelError, "another network"):
        starting_parameters(
            settings_from_mapping(recipe(start=str(trained), network={"window": 9}))
        )


@pytest.mark.parametrize("odd", [True, False])
@pytest.mark.parametrize("factor", [0.6, 1.0, 2.0])
def test_mixtures_are_rescaled_to_another_noise_level(odd: bool, factor: float) -> None:
    config = NetworkConfig(stages=1, odd=odd)
    coefficients = initial_parameters(config)[0].coefficients[0]
    scaled = rescale_mixtures(coefficients, factor, config)
    x = np.linspace(-55, 55, 221)
    centres = np.linspace(-100, 100, config.rbf_count)

    def psi(mixture: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((at[:, None] - centres) / config.gaussian_std) ** 2) @ mixture

    wanted = factor * psi(coefficients[0], x / factor)
    assert np.abs(psi(scaled[0], x) - wanted).max() < 5e-3 * np.abs(wanted).max()
    if odd:
        Model(config, _with(config, scaled[np.newaxis]), sigma=25, name="still odd")


def _with(config: NetworkConfig, coefficients: np.ndarray) -> Any:
    from nlnet.network.parameters import StageParameters

    first = initial_parameters(config)[0]
    return (StageParameters(first.filters, first.group_weights, coefficients, first.step_size),)
