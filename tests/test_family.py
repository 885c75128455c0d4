"""Models for every sigma: values between sigmas, their file, and denoising with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from cases import denoise_planes, random_stages
from messages import refused
from test_model import rewrite

import nlnet
from nlnet.errors import InputError, ModelError
from nlnet.model.family import REFERENCE_SIGMA, Family, place_of
from nlnet.model.loading import choose_model, load_model, select_model
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import normalize_rows

pytestmark = pytest.mark.numerical

CONFIG = NetworkConfig(stages=2, window=9, rbf_count=21)
SIGMAS = (5.0, 20.0, 80.0)


def make_family(config: NetworkConfig = CONFIG, name: str = "every") -> Family:
    """Weak, random values, different at each sigma; the filters turn a little."""
    sets = []
    for number, sigma_set in enumerate(random_stages(config, seed) for seed in range(len(SIGMAS))):
        stages = zip(sigma_set, random_stages(config, 0), random_stages(config, 7), strict=True)
        sets.append(
            tuple(
                dataclasses.replace(
                    stage,
                    filters=normalize_rows(first.filters + 0.3 * number * other.filters),
                    coefficients=stage.coefficients / 50,
                ).astype(np.float32)
                for stage, first, other in stages
            )
        )
    return Family(config, SIGMAS, tuple(sets), name, {"seed": 0}, {"validation_psnr": 30.0})


@pytest.fixture(scope="module")
def family() -> Family:
    return make_family()


# --- Values between sigmas -------------------------------------------------------------------


@pytest.mark.parametrize(("number", "sigma"), list(enumerate(SIGMAS)))
def test_at_its_sigmas_a_family_has_the_values_given_there(family, number, sigma):
    model = family.at(sigma)
    assert isinstance(model, Model)
    assert model.sigma == REFERENCE_SIGMA
    assert model.name == family.name
    for stage, given in zip(model.stages, family.sets[number], strict=True):
        for name in ("filters", "group_weights", "coefficients"):
            np.testing.assert_allclose(getattr(stage, name), getattr(given, name), atol=1e-6)
        assert stage.step_size == pytest.approx(given.step_size)


def test_between_sigmas_values_are_linear_in_log_sigma(family):
    middle = family.at(10.0)  # half way from 5 to 20
    for stage, low, high in zip(middle.stages, *family.sets[:2], strict=True):
        for name in ("group_weights", "coefficients", "step_size"):
            mean = (getattr(low, name) + getattr(high, name)) / 2
            np.testing.assert_allclose(getattr(stage, name), mean, atol=1e-6)
        assert not np.allclose(low.filters, high.filters, atol=0.01)
        mean = normalize_rows(low.filters + high.filters)
        np.testing.assert_allclose(stage.filters, mean, atol=1e-6)


@pytest.mark.parametrize(("sigma", "nearest"), [(0.1, 5.0), (200.0, 80.0)])
def test_beyond_its_sigmas_a_family_has_the_values_of_the_nearest(family, sigma, nearest):
    for stage, given in zip(family.at(sigma).stages, family.at(nearest).stages, strict=True):
        np.testing.assert_array_equal(stage.coefficients, given.coefficients)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_sigma_that_cannot_be(family, sigma):
    with refused(InputError, "sigma is"):
        family.at(sigma)


def test_places_are_counted_from_0():
    assert [place_of(sigma, SIGMAS) for sigma in (1, 5, 10, 20, 80, 300)] == pytest.approx(
        [0, 0, 0.5, 1, 2, 2]
    )


def test_parameters_are_counted_at_every_sigma(family):
    assert family.parameter_count == 3 * CONFIG.parameter_count
    assert f"{family.parameter_count:,}" in str(family)
    assert "sigma 5-80" in str(family)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sigmas": (5.0, 20.0)}, "values for 3 sigmas, but 2"),
        ({"sigmas": (5.0, 80.0, 20.0)}, "ascending"),
        ({"sigmas": (0.0, 20.0, 80.0)}, "above 0"),
        ({"sigmas": (5.0, 20.0, 300.0)}, "at most 255"),
        ({"name": "a\x1b[2J"}, "printable"),
    ],
)
def test_a_family_that_cannot_be(family, change, complaint):
    with refused(ModelError, complaint):
        dataclasses.replace(family, **change)


def test_filters_do_not_turn_around_from_one_sigma_to_the_next(family):
    first, *others = family.sets[2]
    around = dataclasses.replace(first, filters=-first.filters)
    with refused(ModelError, "filter turns too far"):
        dataclasses.replace(family, sets=(*family.sets[:2], (around, *others)))


# --- The file --------------------------------------------------------------------------------


@pytest.fixture
def saved(family, tmp_path) -> Path:
    family.save(tmp_path / "every.safetensors")
    return tmp_path / "every.safetensors"


def test_a_family_survives_its_file(family, saved):
    loaded = load_model(saved)
    assert isinstance(loaded, Family)
    for name in ("config", "sigmas", "name", "provenance", "figures"):
        assert getattr(loaded, name) == getattr(family, name)
    for before, after in zip(family.sets, loaded.sets, strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one.filters, other.filters)
            np.testing.assert_array_equal(one.coefficients, other.coefficients)
            np.testing.assert_array_equal(one.group_weights, other.group_weights)
            assert one.step_size == pytest.approx(other.step_size)
    again = saved.with_name("again.safetensors")
    loaded.save(again)
    assert again.read_bytes() == saved.read_bytes()


@pytest.mark.parametrize(
    ("sigmas", "complaint"),
    [
        ([5.0], "unusable sigmas"),
        ([5, 20, 80], "unusable sigmas"),
        ("5", "unusable sigmas"),
        ([5.0, 20.0], "shape"),
        ([80.0, 20.0, 5.0], "ascending"),
    ],
)
def test_a_file_with_sigmas_that_cannot_be(saved, sigmas, complaint):
    def change(fields):
        fields["functions_of_sigma"] = dict.fromkeys(fields["functions_of_sigma"], sigmas)

    rewrite(saved, fields=change)
    with refused(ModelError, complaint):
        load_model(saved)


def test_a_file_whose_functions_differ_or_are_missing(saved):
    rewrite(saved, fields=lambda fields: fields["functions_of_sigma"].pop("step_sizes"))
    with refused(ModelError, "lacks the function of sigma 'step_sizes'"):
        load_model(saved)


def test_a_flipped_bit_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    content[-40] ^= 1
    saved.write_bytes(bytes(content))
    with refused(ModelError, "checksum"):
        load_model(saved)


# --- Denoising -------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [2.0, 12.0, 25.0, 150.0])
def test_denoising_takes_the_values_for_its_noise(family, saved, noisy_gray, sigma):
    model, scale = family.at(sigma), REFERENCE_SIGMA / sigma
    scaled = (noisy_gray * scale)[np.newaxis].astype(np.float32)
    expected = denoise_planes(scaled, CONFIG, model.stages, box=(0.0, 255 * scale))[0] / scale
    for given in (family, saved, str(saved)):
        result = nlnet.denoise(noisy_gray, sigma, model=given, data_range=255)
        np.testing.assert_allclose(result, expected, atol=1e-3)


def test_choosing_a_family_by_path_or_itself(family, saved):
    assert select_model(saved, 10.0).stages[0].step_size == pytest.approx(
        choose_model(family, 1, 10.0).stages[0].step_size
    )
    with refused(ModelError, "made for grayscale"):
        choose_model(family, 3, 10.0)
