from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import refused
from training_cases import recipe, write_toml

from nlnet.errors import FileError, NLNetError
from nlnet.training.settings import first_difference, read_settings, settings_from_mapping

PROJECT = Path(__file__).resolve().parent.parent
CONFIGS = sorted((PROJECT / "configs").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_committed_recipes_are_valid_and_named_after_their_file(path: Path) -> None:
    settings = read_settings(path)
    assert settings.name == path.stem
    assert settings_from_mapping(settings.to_mapping()) == settings
    assert settings.data.source
    assert settings.data.terms
    assert settings.licence


@pytest.mark.parametrize("family", ["gray-5x5", "gray-7x7", "color-5x5"])
@pytest.mark.parametrize("sigma", [15, 25, 50])
def test_each_of_the_nine_models_has_a_recipe(family: str, sigma: int) -> None:
    settings = read_settings(PROJECT / "configs" / f"{family}-s{sigma}.toml")
    assert settings.sigma == sigma
    assert settings.network.channels == (3 if "color" in family else 1)
    assert f"{settings.network.patch_size}x" in family


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigmas": 25}, ["'sigmas'", "sigma"]),
        ({"data": {"corp": 3}}, ["'data.corp'", "data.crop"]),
        ({"network": {"stagse": 3}}, ["'network.stagse'", "stages"]),
        ({"sigma": "25"}, ["'sigma'", "'25'", "float"]),
        ({"sigma": 0}, ["'sigma'", "0"]),
        ({"sigma": 256}, ["'sigma'", "255"]),
        ({"sigma": float("nan")}, ["'sigma'", "nan"]),
        ({"name": ""}, ["'name'"]),
        ({"seed": -1}, ["'seed'"]),
        ({"precision": "float16"}, ["'precision'", "'float32' or 'float64'"]),
        ({"greedy": {"optimizer": "sgd"}}, ["'greedy.optimizer'", "'adam' or 'lbfgs'"]),
        ({"joint": {"batch": 0}}, ["'joint.batch'", "0"]),
        ({"joint": {"rate": float("inf")}}, ["'joint.rate'", "finite"]),
        ({"joint": {"epochs": True}}, ["'joint.epochs'", "int"]),
        ({"joint": {"average": 1}}, ["'joint.average'", "below 1"]),
        ({"joint": {"epochs": 0}, "greedy": {"epochs": 0}}, ["'joint.epochs'", "at least 1"]),
        ({"joint": {"epochs": 0}, "start": "x"}, ["'joint.epochs'", "at least 1"]),
        ({"data": {"crop": 4}}, ["'data.crop'", "at least the patch's 5"]),
        ({"data": 3}, ["'data'", "table"]),
    ],
)
def test_a_wrong_recipe_is_one_sentence(changes: dict[str, Any], words: list[str]) -> None:
    values = recipe()
    for key, value in changes.items():
        values[key] = {**values[key], **value} if isinstance(value, dict) else value
    with pytest.raises(NLNetError) as caught:
        settings_from_mapping(values)
    sentence = str(caught.value)
    assert all(word in sentence for word in words), sentence
    assert sentence.count(". ") == 0


def test_a_missing_setting_is_named() -> None:
    values = recipe()
    del values["name"]
    with refused(NLNetError, "'name' is missing"):
        settings_from_mapping(values)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"sigma": None}, "'sigma' is None, but must be given, or sigmas"),
        ({"sigmas": [5, 50]}, "left out beside sigma"),
        ({"sigma": None, "sigmas": [5]}, "must be two or more"),
        ({"sigma": None, "sigmas": [50, 5], "start": "gray-5x5"}, "ascending"),
        ({"sigma": None, "sigmas": "5"}, "must be an array"),
        ({"sigma": None, "sigmas": [5, 50]}, "'start' is None, but must be a model, for sigmas"),
        (
            {"sigma": None, "sigmas": [5, 50], "start": "gray-5x5", "data": {"fresh": False}},
            "adam on fresh crops",
        ),
    ],
)
def test_a_recipe_is_for_one_sigma_or_for_every_one(changes: dict, complaint: str) -> None:
    values = {key: value for key, value in recipe(**changes).items() if value is not None}
    with refused(NLNetError, complaint):
        settings_from_mapping(values)


def test_a_step_draws_its_sigma_evenly_in_log_sigma() -> None:
    values = recipe(sigmas=[4, 20, 64], start="gray-5x5")
    del values["sigma"]
    settings = settings_from_mapping(values)
    drawn = [settings.draw_sigma(epoch, step) for epoch in range(10) for step in range(60)]
    assert drawn[7] == settings.draw_sigma(0, 7)  # by its place alone
    assert min(drawn) >= 4
    assert max(drawn) <= 64
    shares, _ = np.histogram(np.log2(drawn), bins=[2, 3, 4, 5, 6])
    assert shares.min() > 600 / 4 * 0.8
    assert settings_from_mapping(recipe()).draw_sigma(3, 1) == 25


def test_unreadable_recipes(tmp_path: Path) -> None:
    with refused(FileError, "No such file"):
        read_settings(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("name = \n")
    with refused(NLNetError, "not valid TOML"):
        read_settings(path)
    path.write_bytes(b"\xff\xfe")
    with refused(NLNetError, "not a text file"):
        read_settings(path)


def test_what_is_equal_for_a_run(tmp_path: Path) -> None:
    settings = read_settings(write_toml(tmp_path / "a.toml", recipe()))
    told = settings_from_mapping(
        recipe(checkpoint_minutes=1, licence="MIT", data={"source": "mine", "terms": "any"})
    )
    assert first_difference(settings, told) is None
    other = settings_from_mapping(recipe(joint={"rate": 0.5}))
    assert first_difference(settings, other) == "'joint.rate' is 0.01 and was 0.5"
