"""The ablations: every row trains, and the page shows the committed results."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks import controls, refinements  # noqa: E402
from benchmarks.ablation import RESULTS, ROWS, Network, _settings, train  # noqa: E402
from benchmarks.gated_stage import Ingredients, Pointwise, _spread, _summed  # noqa: E402
from benchmarks.rows import read_rows  # noqa: E402
from nlnet.model.loading import load_model  # noqa: E402
from nlnet.network.config import NetworkConfig  # noqa: E402
from nlnet.network.refinement import RefinementConfig  # noqa: E402
from nlnet.torch.plain import flat_members  # noqa: E402
from nlnet.training.data import CropSource  # noqa: E402
from nlnet.training.pictures import Pictures  # noqa: E402
from nlnet.training.settings import DataSettings  # noqa: E402
from scripts.ablation import PAGE, fill_in  # noqa: E402


@pytest.mark.parametrize("name", list(ROWS))
def test_every_row_learns(name):
    ramp = np.add.outer(np.arange(120), np.arange(120)).astype(np.uint8)
    picture = np.stack([ramp] * ROWS[name].channels)
    torch.manual_seed(0)
    network = Network(ROWS[name])
    before = {key: value.clone() for key, value in network.state_dict().items()}
    settings = dataclasses.replace(_settings(ROWS[name]), data=DataSettings(crop=32))
    crops = CropSource(Pictures([picture], []), settings)
    batch = crops.draw(1, 0, range(1))

    def error() -> float:
        with torch.no_grad():
            return float((network(batch) - batch.clean).square().mean())

    at_first = error()
    train(network, crops, 3, name)
    assert error() < at_first
    changed = [
        key for key, value in network.state_dict().items() if not torch.equal(value, before[key])
    ]
    assert any("mix" in key for key in changed)


def test_spreading_is_the_adjoint_of_summing():
    torch.manual_seed(0)
    places = torch.randint(0, 50, (50, 8))
    weights, values, others = torch.randn(8), torch.randn(50, 24), torch.randn(50, 24)
    left = (_summed(values, places, weights) * others).sum()
    right = (values * _spread(others, places, weights)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-4)


def test_gradients_of_the_table_are_those_of_differences():
    torch.manual_seed(0)
    stage = Pointwise(Ingredients()).double()
    config = NetworkConfig(stages=1)
    image = 128 + 25 * torch.randn(1, 1, 24, 24, dtype=torch.float64)
    groups = torch.zeros(1, 24, 24, config.group_size, 2, dtype=torch.int8)
    run = lambda: stage(image, flat_members(groups)).square().sum()  # noqa: E731
    run().backward()
    step = torch.zeros_like(stage.table)
    step[3, 5] = 1e-5
    with torch.no_grad():
        stage.table += step
        above = run()
        stage.table -= 2 * step
        below = run()
    slope = float(above - below) / 2e-5
    assert stage.table.grad[3, 5].item() == pytest.approx(slope, rel=1e-4)


def test_the_page_shows_the_committed_results():
    page = PAGE.read_text()
    stages, following = (json.loads(path.read_text()) for path in (RESULTS, refinements.RESULTS))
    controlled = list(read_rows(controls.RESULTS).values())
    assert fill_in(page, stages, following, controlled) == page
    assert {row["name"] for row in stages} <= set(ROWS)
    assert [row["name"] for row in following] == list(refinements.ROWS)


def test_refinements_differ_in_their_sizes():
    shipped = refinements.Variant()
    for name in ("gray-plus", "color-plus"):
        assert load_model(name).config.refinement == shipped.sizes
    variants = [each for each in refinements.ROWS.values() if each not in (None, shipped)]
    assert len(variants) == len(refinements.ROWS) - 2
    for variant in variants:
        assert variant.sizes != shipped.sizes
        assert refinements.recipe(variant, 3).network.refinement == variant.sizes


def test_multiplications_of_a_refinement():
    variant = refinements.Variant(RefinementConfig((16, 32), (1, 2), (1,)))
    half = 9 * (8 * 16 + 4 * 16 * 16 + 16 * 4)  # first layer, two blocks, last layer
    quarter = 4 * 16 * 32 + 9 * 4 * 32 * 32 + 32 * 4 * 16  # halved, two blocks, doubled
    assert variant.multiplications == half / 4 + quarter / 16


def test_a_refinement_is_measured():
    rng = np.random.default_rng(0)
    pictures = Pictures(*2 * ([rng.integers(0, 256, (1, 192, 192), np.uint8)],))
    small = refinements.Variant(RefinementConfig((8,), (0,), ()))
    settings = dataclasses.replace(
        refinements.recipe(small, 1), data=DataSettings(crop=96, crops=8)
    )
    row = refinements.measure(settings, pictures, trained=True)
    alone = refinements.measure(settings, pictures, trained=False)
    assert (row["epochs"], row["steps"], alone["steps"]) == (1, 1, 0)
    assert row["parameters"] > alone["parameters"] == 0
    assert row["validation_psnr"] != alone["validation_psnr"]


@pytest.mark.parametrize(
    "name", ["the refinement alone, seed 2", "the stages alone, K = 1, seed 1"]
)
def test_a_control_is_measured(name):
    rng = np.random.default_rng(0)
    pictures = Pictures(*2 * ([rng.integers(0, 256, (1, 100, 100), np.uint8)],))
    control = controls.ROWS[name]
    settings = dataclasses.replace(
        controls.recipe(control, 1), data=DataSettings(crop=96, crops=16)
    )
    row = controls.measure(control, settings, pictures)
    assert row["seed"] == control.seed
    assert row["steps"] == (2 if control.refinement else 1)
    assert row["validation_psnr"] > 10


def test_a_control_that_was_stopped_goes_on_to_the_same_figure(tmp_path, monkeypatch):
    pictures = Pictures(*2 * ([np.random.default_rng(0).integers(0, 256, (1, 40, 40), np.uint8)],))
    control = controls.Control(refinement=True)
    recipe, data = controls.recipe(control, 2), DataSettings(crop=32, crops=4)
    pieces = dataclasses.replace(recipe.refinement, cut=16)
    settings = dataclasses.replace(recipe, data=data, refinement=pieces)
    whole = controls.measure(control, settings, pictures)
    honest, saved = controls.save, tmp_path / "row.pt"

    def stopping(path, state):
        honest(path, state)
        raise KeyboardInterrupt

    monkeypatch.setattr(controls, "save", stopping)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            controls.measure(control, settings, pictures, saved)
    assert controls.measure(control, settings, pictures, saved) == whole


def test_controls_differ_in_one_thing_and_have_two_seeds():
    assert len(controls.ROWS) == 2 * len(controls.KINDS)
    both = controls.KINDS["stages and refinement"]
    assert dataclasses.replace(both, stages=False) == controls.KINDS["the refinement alone"]
    assert dataclasses.replace(both, refinement=False) == controls.KINDS["the stages alone"]
    config = NetworkConfig(stages=2)
    nothing = controls.start(controls.Control(stages=False), config)
    assert not any(stage.coefficients.any() for stage in nothing)
