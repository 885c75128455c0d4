"""Training a refinement: by Muon, on pieces of crops, after the stages, to the same bits."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from messages import refused
from test_training_run import at_call, crash
from training_cases import assert_same_run, picture, read_lines, recipe, train, write_data

from nlnet.errors import NLNetError
from nlnet.evaluation.protocol import evaluate_folder
from nlnet.model.family import Family
from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.network.refinement import RefinementConfig
from nlnet.torch import NLNet
from nlnet.torch.refinement import initial_refinement
from nlnet.training.checkpoints import load_checkpoint, summarize
from nlnet.training.data import Batch, CropSource
from nlnet.training.phase import Setup
from nlnet.training.pictures import Pictures
from nlnet.training.refinement import RefinementPhase
from nlnet.training.settings import (
    VALIDATION_SIGMAS,
    settings_from_mapping,
)
from nlnet.training.start import starting_parameters, starting_refinement
from nlnet.training.team import Team

pytestmark = pytest.mark.numerical

SIZES = RefinementConfig((8, 8), (1, 0), (0,))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained stages to begin with."""
    path = tmp_path_factory.mktemp("start") / "stages.safetensors"
    config = NetworkConfig(stages=2, window=7)
    Model(config, initial_parameters(config), sigma=25.0, name="stages").save(path)
    return path


def refining(start: Path | str, **changes: Any) -> dict[str, Any]:
    """The tiny recipe, for a refinement; an epoch has 3 steps, and a set of crops serves two."""
    values = recipe(
        start=str(start),
        sigmas=[5, 20, 80],
        network={"refinement": dataclasses.asdict(SIZES)},
        joint={"epochs": 0},
        refinement={"epochs": 5, "batch": 2, "cut": 16, "reuse": 2, "often": [10, 30]},
    )
    del values["sigma"]
    for key, value in changes.items():
        values[key] = {**values[key], **value} if isinstance(value, dict) else value
    return values


@pytest.fixture(scope="module")
def whole_run(data: Path, start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe trained without interruption."""
    run = tmp_path_factory.mktemp("run")
    assert train(refining(start), data, run)
    return run


# --- A run ------------------------------------------------------------------------------------


def test_a_run_learns_and_its_best_model_reaches_its_figure(
    whole_run: Path, data: Path, start: Path
) -> None:
    lines = read_lines(whole_run)
    assert [line["phase"] for line in lines] == ["refinement"] * 5
    assert [line["val_psnr"] is None for line in lines] == [True, False, True, False, False]
    assert lines[-1]["train_psnr"] > lines[0]["train_psnr"] + 1
    family = load_model(whole_run / "best.safetensors")
    assert isinstance(family, Family)
    assert family.config.refinement == SIZES
    assert family.provenance["recipe"] == (
        f"from {start}, 5 epochs of Muon for the refinement, 4 fresh crops of 20x20"
    )
    assert settings_from_mapping(family.provenance["settings"]) == settings_from_mapping(
        refining(start)
    )
    begun = settings_from_mapping(refining(start, refinement={"start": "gray-plus"}))
    assert "5 epochs of Muon for the refinement from that of gray-plus on, 4" in summarize(begun)
    best = max(line["val_psnr"] or 0 for line in lines)
    assert family.figures["validation_psnr"] == pytest.approx(best, abs=1e-4)
    # What was measured on the validation images, once more through the engine's own way.
    scores = [
        evaluate_folder(data / "val", family.at(sigma), sigma).mean.psnr
        for sigma in VALIDATION_SIGMAS
    ]
    assert np.mean(scores) == pytest.approx(best, abs=5e-3)


def test_only_the_refinement_moves(data: Path, tmp_path: Path, start: Path) -> None:
    seen = []

    def look() -> bool:
        seen.append(load_checkpoint(tmp_path).network)
        return False

    train(refining(start, checkpoint_minutes=0), data, tmp_path, stop=look)
    assert len(seen) == 15
    moving = {name for name in seen[0] if not torch.equal(seen[0][name], seen[-1][name])}
    assert moving == {name for name in seen[0] if name.startswith("refinement.")}


def test_a_crop_of_one_color_does_not_outweigh_all_others(
    data: Path, start: Path, tmp_path: Path
) -> None:
    """What the stages leave of its noise is next to nothing, and the loss divides by it."""
    settings = settings_from_mapping(refining(start))
    crops = CropSource(Pictures([np.full((1, 26, 30), 128, np.uint8)], []), settings)
    with Team(threads=1) as team:
        network = NLNet(
            settings.network, *starting_parameters(settings), sigmas=settings.sigmas, threads=1
        )
        phase = RefinementPhase(Setup(settings, network, crops, team))
        batch = phase._draw_estimate(1, 0)
        phase.close()
    assert float(batch.errors) >= 0.004 * batch.sigma**2


@pytest.mark.parametrize("stop_at", [1, 3, 5, 6, 14, 15])
def test_a_run_goes_on_to_the_same_bits(
    whole_run: Path, data: Path, tmp_path: Path, start: Path, stop_at: int
) -> None:
    """Within an epoch, at the end of one, of a set of crops, and of the run."""
    values = refining(start)
    assert not train(values, data, tmp_path, stop=at_call(stop_at, lambda: True))
    with contextlib.suppress(RuntimeError):
        train(values, data, tmp_path, resume=True, stop=at_call(3, crash))
    assert train(values, data, tmp_path, resume=True)
    assert_same_run(tmp_path, whole_run)


@pytest.mark.parametrize(
    "changes",
    [
        {"joint": {"epochs": 1}},
        {"refinement": {"average": 0.9, "epochs": 2}},
        {"refinement": {"bfloat16": True, "epochs": 2}},
        {"refinement": {"epochs": 2, "cut": 20, "batch": 9}},
    ],
    ids=["joint", "average", "bfloat16", "whole"],
)
def test_recipes_of_all_kinds_go_on_to_the_same_bits(
    data: Path, tmp_path: Path, start: Path, changes: dict[str, Any]
) -> None:
    values = refining(start, **changes)
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert train(values, data, whole)
    assert not train(values, data, run, stop=at_call(2, lambda: True))
    assert train(values, data, run, resume=True)
    assert_same_run(run, whole)
    phases = [line["phase"] for line in read_lines(whole)]
    assert phases[0] == ("joint" if "joint" in changes else "refinement")
    assert isinstance(load_model(run / "best.safetensors"), Family)


def test_color(tmp_path: Path, start: Path) -> None:
    data = write_data(tmp_path / "data", (26, 30, 3))
    values = refining(start, network={"channels": 3}, refinement={"epochs": 1})
    assert train(values, data, tmp_path / "run")
    family = load_model(tmp_path / "run" / "best.safetensors")
    assert isinstance(family, Family)
    assert family.refinement is not None
    assert family.refinement.channels == 3


def test_a_refined_model_lends_its_stages_and_its_refinement(whole_run: Path) -> None:
    """The latter only if it is asked for; otherwise a refinement begins anew."""
    best = whole_run / "best.safetensors"
    family, settings = load_model(best), settings_from_mapping(refining(best))
    assert isinstance(family, Family)
    for stages, given in zip(starting_parameters(settings), family.sets, strict=True):
        np.testing.assert_array_equal(stages[0].coefficients, given[0].coefficients)
    lent = settings_from_mapping(refining(best, refinement={"start": str(best)}))
    for chosen, expected in (
        (settings, initial_refinement(SIZES, 1, settings.seed)),
        (lent, family.refinement),
    ):
        begun = starting_refinement(chosen)
        assert begun is not None
        assert expected is not None
        assert begun.tensors.keys() == expected.tensors.keys()
        for name, values in expected.tensors.items():
            np.testing.assert_array_equal(begun.tensors[name], values)


def test_a_refinement_of_other_sizes_cannot_be_lent(whole_run: Path, start: Path) -> None:
    best = str(whole_run / "best.safetensors")
    other = {"refinement": dataclasses.asdict(RefinementConfig((16,), (1,), ()))}
    for network, lender in ((other, best), ({}, str(start))):
        values = refining(start, network=network, refinement={"start": lender})
        with refused(NLNetError, "no refinement of these sizes"):
            starting_refinement(settings_from_mapping(values))


def test_a_run_goes_on_without_the_model_it_started_from(
    data: Path, tmp_path: Path, whole_run: Path
) -> None:
    start = tmp_path / "start.safetensors"
    start.write_bytes((whole_run / "best.safetensors").read_bytes())
    values = refining(start, refinement={"epochs": 1})
    train(values, data, tmp_path / "whole")
    train(values, data, tmp_path / "run", stop=at_call(1, lambda: True))
    start.unlink()
    assert train(values, data, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


# --- Crops and their pieces -------------------------------------------------------------------


def test_no_more_crops_are_drawn_than_are_used(
    data: Path, tmp_path: Path, start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int]] = []
    honest = CropSource.draw

    def draw(self: CropSource, epoch: int, item: int, *rest: Any) -> Batch:
        drawn.append((epoch, item))
        return honest(self, epoch, item, *rest)

    monkeypatch.setattr(CropSource, "draw", draw)
    train(refining(start), data, tmp_path)
    assert drawn == [(number, item) for number in (1, 2, 3) for item in range(4)]


def make_crop(number: int, item: int, side: int = 20) -> Batch:
    """Every pixel says where it is, and the planes are told apart by their sign and size."""
    place = torch.arange(side * side, dtype=torch.float32).reshape(1, 1, side, side)
    place += 1000 * (10 * number + item)
    sigma = torch.tensor([float(10 * number + item)], dtype=torch.float64)
    return Batch(-place, place, torch.zeros(0, side, side, 4, 2), place / 2, sigma, 3 * sigma)


def make_phase(draw: Any = make_crop) -> RefinementPhase:
    steps = {"epochs": 4, "batch": 5, "cut": 8, "reuse": 2}
    values = refining("gray", data={"crop": 66, "crops": 3}, refinement=steps)
    settings = settings_from_mapping(values)
    network = NLNet(settings.network, threads=1)
    crops = CropSource(Pictures([], []), settings)
    phase = RefinementPhase(Setup(settings, network, crops, Team(threads=1)))
    phase._draw_estimate = draw  # type: ignore[method-assign]
    return phase


def test_pieces_are_of_all_crops_of_their_set_in_all_orientations() -> None:
    phase = make_phase()
    orientations = set()
    for epoch in range(4):
        sigmas: set[float] = set()
        for step in range(phase.steps):
            (batch,) = phase._batches(epoch, step)
            assert batch.clean.shape == (5, 1, 8, 8)
            assert torch.equal(batch.estimate, -batch.noisy)
            assert torch.equal(batch.clean, batch.noisy / 2)
            assert torch.equal(batch.errors, 3 * batch.sigmas)
            for piece, sigma in zip(batch.noisy[:, 0], batch.sigmas.tolist(), strict=True):
                corner = piece.min()
                assert int(corner) // 1000 == sigma
                down, right = float(piece[1, 0] - piece[0, 0]), float(piece[0, 1] - piece[0, 0])
                orientations.add((down, right))
                assert sorted((abs(down), abs(right))) == [1, 20]
            sigmas |= set(batch.sigmas.tolist())
        number = 1 + epoch // 2
        assert sigmas == {10.0 * number + item for item in range(3)}
    assert len(orientations) == 8
    phase.close()


def test_pieces_follow_from_their_place_alone() -> None:
    whole, later = make_phase(), make_phase()
    wanted = [whole._batches(3, step)[0].noisy for step in range(whole.steps)]
    found = [later._batches(3, step)[0].noisy for step in range(25, later.steps)]
    assert len(found) == 15
    assert all(map(torch.equal, wanted[25:], found))
    assert not torch.equal(wanted[0], whole._batches(2, 0)[0].noisy)
    whole.close()
    later.close()


def test_whoever_stops_does_not_wait_for_a_whole_set() -> None:
    drawn, stopped = [], threading.Event()

    def draw(number: int, item: int) -> Batch:
        drawn.append((number, item))
        if number == 2:
            stopped.wait(10)
        return make_crop(number, item)

    phase = make_phase(draw)
    phase._batches(0, 0)
    timer = threading.Timer(0.1, stopped.set)
    timer.start()
    phase.close()
    timer.join()
    assert [item for number, item in drawn if number == 2] in ([], [0])


def test_half_of_the_crops_have_noise_that_is_often() -> None:
    settings = settings_from_mapping(refining("gray"))
    often = settings.refinement.often
    assert often == (10.0, 30.0)
    drawn = np.array([settings.draw_sigma(1, item, often) for item in range(4000)])
    assert drawn.min() < 5.2
    assert drawn.max() > 77
    inside = np.log(30 / 10) / np.log(80 / 5)
    share = np.mean((drawn >= 10) & (drawn <= 30))
    assert share == pytest.approx(0.5 + 0.5 * inside, abs=0.03)
    crops = CropSource(Pictures([picture(n)[np.newaxis] for n in range(2)], []), settings)
    crop = crops.draw(1, 3, [3], often)
    assert crop.sigma == drawn[3]
    assert crop.clean.shape == (1, 1, 20, 20)


# --- Settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"refinement": {"epochs": 0}}, "'refinement.epochs' is 0, but must be above 0 just where"),
        ({"network": {"refinement": None}}, "'refinement.epochs' is 5, but must be above 0 just"),
        ({"refinement": {"cut": 18}}, "'refinement.cut' is 18, but must be a multiple of 4, at"),
        ({"refinement": {"cut": 24}}, "'refinement.cut' is 24, .* at most the crop's 20"),
        ({"refinement": {"cut": 0}}, "'refinement.cut' is 0, but must be at least 1"),
        ({"refinement": {"reuse": 0}}, "'refinement.reuse' is 0"),
        ({"refinement": {"often": [10]}}, "'refinement.often' is .* but must be two, ascending"),
        ({"refinement": {"often": [30, 10]}}, "'refinement.often' is"),
        ({"refinement": {"often": [0, 10]}}, "'refinement.often' is .* above 0"),
        ({"refinement": {"often": [1, 5, 10]}}, "'refinement.often' is"),
        ({"refinement": {"often": 10}}, "'refinement.often' is 10, but must be an array"),
        ({"refinement": {"optimizer": "adam"}}, "'refinement.optimizer' is 'adam', .* be muon"),
        ({"refinement": {"bfloat16": 1}}, "'refinement.bfloat16' is 1, but must be of type bool"),
        ({"refinement": {"cuts": 16}}, "Unknown setting 'refinement.cuts'"),
        ({"joint": {"optimizer": "muon"}}, "'joint.optimizer' is 'muon', but must be adam"),
        ({"greedy": {"optimizer": "muon"}}, "'greedy.optimizer' is 'muon', but must be adam or"),
        ({"precision": "float64"}, "'precision' is 'float64', but must be float32, for a refine"),
        ({"sigmas": [], "sigma": 25}, "'sigmas' is (), but must be given, for a refinement"),
        ({"network": {"refinement": {"widths": [9]}}}, "widths are [9], but must be 1 to 4"),
    ],
)
def test_a_wrong_recipe_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    values = refining("gray", **changes)
    if not values["network"]["refinement"]:
        del values["network"]["refinement"]
    with refused(NLNetError, *sentence.split(" .* ")) as caught:
        settings_from_mapping(values)
    assert str(caught.value).count(". ") == 0
