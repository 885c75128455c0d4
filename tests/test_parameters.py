from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from messages import refused
from scipy.fft import dctn

from nlnet.errors import ModelError
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import (
    StageParameters,
    check_parameters,
    dct_basis,
    half_from_odd,
    initial_parameters,
    normalize_rows,
    odd_from_half,
)

pytestmark = pytest.mark.numerical

CONFIG = NetworkConfig(stages=2)


@pytest.mark.parametrize("patch_size", [3, 5, 7])
def test_dct_basis_is_scipys_without_dc(patch_size):
    pixels = patch_size**2
    patch = np.random.default_rng(0).standard_normal((patch_size, patch_size))
    coefficients = dct_basis(patch_size) @ patch.ravel()
    assert coefficients.shape == (pixels - 1,)
    np.testing.assert_allclose(coefficients, dctn(patch, norm="ortho").ravel()[1:], atol=1e-12)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_every_row_needs_a_direction(value):
    mix = np.eye(24)
    mix[3] = value
    with refused(ModelError, "zero or not finite"):
        normalize_rows(mix)


@pytest.mark.parametrize("rbf_count", [2, 5, 62, 63])
def test_odd_and_half_are_inverse(rbf_count):
    half = np.random.default_rng(2).standard_normal((3, 24, rbf_count // 2)).astype(np.float32)
    full = odd_from_half(half, rbf_count)
    assert full.shape == (3, 24, rbf_count)
    assert full.dtype == np.float32
    np.testing.assert_array_equal(full, -full[..., ::-1])
    np.testing.assert_array_equal(half_from_odd(full), half)


@pytest.mark.parametrize(
    "config",
    [
        NetworkConfig(),
        NetworkConfig(channels=3, patch_size=7, rbf_count=50, group_size=3),
        NetworkConfig(odd=False, rbf_count=51, rbf_range=127.5),
    ],
)
def test_initial_parameters_fit_their_config(config):
    stages = initial_parameters(config)
    check_parameters(stages, config)
    assert stages[0].step_size == 0
    assert all(stage.step_size > 0 for stage in stages[1:])
    assert stages[0].group_weights.tolist() == [1.0] + [0.0] * (config.group_size - 1)


def test_initial_psi_is_a_mild_shrinkage():
    mixture = initial_parameters(NetworkConfig())[0].coefficients[0, 0]
    x = np.linspace(-100, 100, 401)
    centres = np.linspace(-100, 100, 63)
    std = centres[1] - centres[0]
    psi = np.exp(-0.5 * ((x[:, None] - centres) / std) ** 2) @ mixture
    np.testing.assert_allclose(psi, x * np.exp(-0.5 * (x / 45) ** 2) / 50, atol=5e-3)


def test_stages_do_not_share_memory():
    first, second = initial_parameters(CONFIG)
    first.group_weights[:] = 5
    assert second.group_weights[0] == 1


def test_astype_gives_contiguous_arrays_of_that_type():
    stage = initial_parameters(CONFIG)[0].astype(np.float32)
    for array in (stage.filters, stage.group_weights, stage.coefficients):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous


def spoiled(**changes: object) -> list[StageParameters]:
    first, second = initial_parameters(CONFIG)
    return [first, dataclasses.replace(second, **changes)]


FILTERS = dct_basis(5)
NOT_ODD = np.ones((1, 24, 63))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filters": FILTERS[:23]}, "filters of stage 2 has shape (23, 25)"),
        ({"filters": FILTERS * np.nan}, "filters of stage 2 has values that are NaN"),
        ({"filters": FILTERS + 1e-3}, "stage 2 does not have zero mean"),
        ({"filters": FILTERS * 1.001}, "stage 2 does not have unit norm"),
        ({"group_weights": np.ones(7)}, "must be (8,)"),
        ({"group_weights": np.ones(8, int)}, "must be floating point"),
        ({"coefficients": np.zeros((3, 24, 63))}, "must be (1, 24, 63)"),
        ({"coefficients": NOT_ODD * np.inf}, "NaN or infinite"),
        ({"coefficients": NOT_ODD}, "not odd"),
        ({"step_size": float("nan")}, "step_size of stage 2 is nan"),
    ],
)
def test_check_names_what_does_not_fit(changes, message):
    with refused(ModelError, message):
        check_parameters(spoiled(**changes), CONFIG)


def test_check_counts_the_stages():
    with refused(ModelError, "5 stages", "parameters for 2"):
        check_parameters(spoiled(), NetworkConfig())
