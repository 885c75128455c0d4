"""Names of shipped models and families."""

from __future__ import annotations

import pytest
from messages import refused

from nlnet.errors import InputError, ModelError
from nlnet.model import loading
from nlnet.model.family import Family
from nlnet.model.loading import load_model, select_model, shipped_models
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters


def tiny_model(name: str, sigma: float) -> Model:
    config = NetworkConfig(stages=1, rbf_count=9)
    return Model(config, initial_parameters(config), sigma, name)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A package with three shipped models of its own."""
    weights = tmp_path / "weights"
    weights.mkdir()
    for name, sigma in [("gray-5x5-s15", 15.0), ("gray-5x5-s60", 60.0), ("color-5x5-s25", 25.0)]:
        tiny_model(name, sigma).save(weights / f"{name}.safetensors")
    (weights / "README.md").write_text("not a model")
    monkeypatch.setattr(loading, "_WEIGHTS", weights)
    loading._load_shipped.cache_clear()
    yield
    loading._load_shipped.cache_clear()


@pytest.mark.usefixtures("shelf")
def test_shipped_models_are_sorted_names():
    assert shipped_models() == ("color-5x5-s25", "gray-5x5-s15", "gray-5x5-s60")


@pytest.mark.usefixtures("shelf")
def test_shipped_models_load_by_name_once():
    assert load_model("gray-5x5-s15").sigma == 15
    assert load_model("gray-5x5-s15") is load_model("gray-5x5-s15")


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("sigma", "nearest"),
    # 30 is the geometric mean of 15 and 60: a tie, for the smaller one.
    [(1, 15), (15, 15), (29.9, 15), (30, 15), (30.1, 60), (60, 60), (200, 60)],
)
def test_a_family_gives_the_model_nearest_in_log_sigma(sigma, nearest):
    assert select_model("gray-5x5", sigma).sigma == nearest
    assert loading._load_shipped.cache_info().misses == 1  # the others are not even read


@pytest.mark.usefixtures("shelf")
def test_a_full_name_or_path_is_taken_whatever_the_sigma(tmp_path):
    path = tmp_path / "mine.safetensors"
    tiny_model("mine", 25.0).save(path)
    assert select_model("gray-5x5-s15", 50).name == "gray-5x5-s15"
    assert select_model(path, 50).name == "mine"
    assert select_model(str(path), 50).name == "mine"


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("name", ["gray-9x9", "gray-5x5-s25", "", "Gray-5x5"])
def test_an_unknown_name_lists_what_exists(name):
    with refused(ModelError, "color-5x5-s25, gray-5x5-s15, gray-5x5-s60"):
        select_model(name, 25)


@pytest.mark.usefixtures("shelf")
def test_a_family_alone_has_no_sigma():
    with refused(ModelError, "family", "name one of its models: gray-5x5-s15, gray"):
        load_model("gray-5x5")


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_family_needs_a_usable_sigma(sigma):
    with refused(InputError, "above 0 and finite"):
        select_model("gray-5x5", sigma)


@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_model_is_what_its_name_says(name):
    shipped = load_model(name)
    kind, *rest = name.removeprefix("open-").split("-")
    assert shipped.name == name
    assert ("BSDS500" in str(shipped.provenance)) != name.startswith("open-")
    assert shipped.config.channels == {"gray": 1, "color": 3}[kind]
    if isinstance(shipped, Family):
        assert (shipped.sigmas[0], shipped.sigmas[-1]) == (1.0, 100.0)
        assert rest in ([], ["plus"])
        return
    patch, sigma = rest
    assert patch == f"{shipped.config.patch_size}x{shipped.config.patch_size}"
    assert sigma == f"s{shipped.sigma:g}"
