"""psi: the table of cubics that stands in for the paper's sum of Gaussians.

That the engine computes what the table says is tested in ``test_stage.py``, for whole stages.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
from cases import tabulated_psi

from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import odd_from_half
from nlnet.network.potentials import cubic_basis, table_intervals, table_step

pytestmark = [pytest.mark.numerical, pytest.mark.engineless]

FREE = NetworkConfig(odd=False)
CONFIGS = {
    "paper": FREE,
    "author": NetworkConfig(odd=False, rbf_count=51),
    "coarse": NetworkConfig(odd=False, patch_size=3, rbf_count=11),
    "narrow": NetworkConfig(odd=False, patch_size=3, rbf_std=1.7),
    "even": NetworkConfig(odd=False, patch_size=3, rbf_count=12, rbf_range=33.0),
}


def random_mixtures(config: NetworkConfig, seed: int = 0) -> np.ndarray:
    """Coefficients of every filter, (F, M)."""
    return np.random.default_rng(seed).standard_normal((config.filter_count, config.rbf_count))


def evaluate(coefficients, config, arguments) -> np.ndarray:
    """psi of every filter, (n, F), at the same arguments."""
    return tabulated_psi(np.repeat(arguments[:, None], len(coefficients), 1), coefficients, config)


def exact(function, coefficients, config, arguments) -> np.ndarray:
    """A function of the slow version, of every filter, (n, F)."""
    return np.array([[function(x, pi, config) for pi in coefficients] for x in arguments])


def range_of(config: NetworkConfig, count: int) -> np.ndarray:
    """Arguments inside the grid and beyond it."""
    return np.linspace(-1.3 * config.rbf_range, 1.3 * config.rbf_range, count)


@pytest.mark.parametrize("name", CONFIGS)
def test_table_is_within_a_ten_thousandth_of_the_range(name):
    config = CONFIGS[name]
    arguments = range_of(config, 2001)
    mixtures = random_mixtures(config)[:8]
    wanted = exact(slow.psi, mixtures, config, arguments)
    table = evaluate(mixtures, config, arguments)
    worst = np.max(np.abs(table - wanted).max(axis=0) / np.ptp(wanted, axis=0))
    assert worst < 1e-4
    assert worst < 2.5e-5  # what it is in truth, so that a coarser table does not pass unseen


@pytest.mark.parametrize("name", CONFIGS)
def test_table_has_the_values_and_slopes_of_psi_at_its_nodes(name):
    # From both sides of every node: this is what makes it C1.
    config = CONFIGS[name]
    mixtures = random_mixtures(config)[:3]
    intervals, step = table_intervals(config), table_step(config)
    cubics = (mixtures @ cubic_basis(config).T).reshape(-1, intervals, 4)
    c0, c1, c2, c3 = np.moveaxis(cubics, -1, 0)
    nodes = np.linspace(-config.rbf_range, config.rbf_range, intervals + 1)
    values = exact(slow.psi, mixtures, config, nodes).T
    slopes = exact(slow.psi_derivative, mixtures, config, nodes).T
    np.testing.assert_allclose(c0, values[:, :-1], atol=1e-12)
    np.testing.assert_allclose(c0 + c1 + c2 + c3, values[:, 1:], atol=1e-12)
    np.testing.assert_allclose(c1 / step, slopes[:, :-1], atol=1e-11)
    np.testing.assert_allclose((c1 + 2 * c2 + 3 * c3) / step, slopes[:, 1:], atol=1e-11)


def test_psi_is_constant_beyond_the_grid():
    mixtures = random_mixtures(FREE)
    border = evaluate(mixtures, FREE, np.array([-100.0, 100.0]))
    far = evaluate(mixtures, FREE, np.array([-1e30, -100.001, 100.001, 1e30]))
    np.testing.assert_allclose(far, np.repeat(border, 2, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("count", [62, 63])
def test_odd_coefficients_make_an_odd_function(count):
    config = NetworkConfig(rbf_count=count)
    half = random_mixtures(dataclasses.replace(config, rbf_count=count // 2))
    mixtures = odd_from_half(half, count)
    values = evaluate(mixtures, config, range_of(config, 4001))
    np.testing.assert_allclose(values, -values[::-1], rtol=0, atol=1e-12)
    assert np.ptp(values) > 1
    np.testing.assert_allclose(evaluate(mixtures, config, np.zeros(1)), 0, atol=1e-13)
