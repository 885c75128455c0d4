"""psi: the sum of Gaussians of the paper, and the table that stands in for it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
import threadpoolctl
from cases import assert_close, central_differences

from nlnet.network import potentials
from nlnet.network.config import NetworkConfig
from nlnet.network.kernels import rbf
from nlnet.network.parameters import odd_from_half
from nlnet.network.potentials import Potentials, cubic_basis, table_intervals, table_step

pytestmark = pytest.mark.numerical

FREE = NetworkConfig(odd=False)
AUTHOR = NetworkConfig(odd=False, rbf_count=51)
COARSE = NetworkConfig(odd=False, patch_size=3, rbf_count=11, channels=3)
NARROW = NetworkConfig(odd=False, patch_size=3, rbf_std=1.7)
EVEN_COUNT = NetworkConfig(odd=False, patch_size=3, rbf_count=12, rbf_range=33.0)
CONFIGS = {
    "paper": FREE,
    "author": AUTHOR,
    "coarse": COARSE,
    "narrow": NARROW,
    "even": EVEN_COUNT,
}


def random_mixtures(config: NetworkConfig, seed: int = 0) -> np.ndarray:
    shape = (config.channels, config.filter_count, config.rbf_count)
    return np.random.default_rng(seed).standard_normal(shape)


def evaluate(coefficients, config, arguments, *, exact=False, channel=0) -> np.ndarray:
    """psi of every filter, (n, F), at the same arguments."""
    features = np.repeat(arguments[:, None], config.filter_count, axis=1)
    features = features.astype(coefficients.dtype)
    rbf.evaluate(features, Potentials(coefficients, config, exact=exact).mixtures[channel])
    return features


def slopes(coefficients, config, arguments, *, exact=False) -> tuple[np.ndarray, np.ndarray]:
    """psi and psi' of every filter, from the backward pass."""
    features = np.repeat(arguments[:, None], config.filter_count, axis=1)
    cotangents = np.ones_like(features)
    potentials = Potentials(coefficients, config, exact=exact)
    potentials.backward(0, features, cotangents, potentials.new_gradient())
    return features, cotangents


def range_of(config: NetworkConfig, count: int = 4001) -> np.ndarray:
    """Arguments inside the grid and beyond it."""
    return np.linspace(-1.3 * config.rbf_range, 1.3 * config.rbf_range, count)


@pytest.mark.parametrize("name", CONFIGS)
def test_exact_psi_is_the_papers(name):
    config = CONFIGS[name]
    mixtures = random_mixtures(config)
    arguments = range_of(config, 41)
    values, derivatives = slopes(mixtures, config, arguments, exact=True)
    np.testing.assert_array_equal(values, evaluate(mixtures, config, arguments, exact=True))
    for i, mixture in enumerate(mixtures[0]):
        wanted = [slow.psi(x, mixture, config) for x in arguments]
        np.testing.assert_allclose(values[:, i], wanted, rtol=0, atol=1e-12)
        wanted = [slow.psi_derivative(x, mixture, config) for x in arguments]
        np.testing.assert_allclose(derivatives[:, i], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONFIGS)
def test_table_is_within_a_ten_thousandth_of_the_range(name, dtype):
    config = CONFIGS[name]
    worst = 0.0
    for seed in range(4):
        mixtures = random_mixtures(config, seed)
        exact = evaluate(mixtures, config, range_of(config), exact=True)
        table = evaluate(mixtures.astype(dtype), config, range_of(config))
        assert table.dtype == dtype
        worst = max(worst, np.max(np.abs(table - exact).max(axis=0) / np.ptp(exact, axis=0)))
    assert worst < 1e-4
    assert worst < 2.5e-5  # what it is in truth, so that a coarser table does not pass unseen


@pytest.mark.parametrize("name", CONFIGS)
def test_table_has_the_values_and_slopes_of_psi_at_its_nodes(name):
    # From both sides of every node: this is what makes it C1.
    config = CONFIGS[name]
    mixtures = random_mixtures(config)
    intervals, step = table_intervals(config), table_step(config)
    cubics = (mixtures[0] @ cubic_basis(config).T).reshape(-1, intervals, 4)
    c0, c1, c2, c3 = np.moveaxis(cubics, -1, 0)
    nodes = np.linspace(-config.rbf_range, config.rbf_range, intervals + 1)
    values, derivatives = (part.T for part in slopes(mixtures, config, nodes, exact=True))
    np.testing.assert_allclose(c0, values[:, :-1], atol=1e-12)
    np.testing.assert_allclose(c0 + c1 + c2 + c3, values[:, 1:], atol=1e-12)
    np.testing.assert_allclose(c1 / step, derivatives[:, :-1], atol=1e-12)
    np.testing.assert_allclose((c1 + 2 * c2 + 3 * c3) / step, derivatives[:, 1:], atol=1e-12)


@pytest.mark.parametrize("name", CONFIGS)
def test_kernel_is_continuous_across_the_nodes(name):
    config = CONFIGS[name]
    mixtures = random_mixtures(config)
    nodes = np.linspace(-config.rbf_range, config.rbf_range, table_intervals(config) + 1)[1:-1]
    left, right = (slopes(mixtures, config, nodes + side) for side in (-1e-9, 1e-9))
    for before, after in zip(left, right, strict=True):
        np.testing.assert_allclose(before, after, rtol=0, atol=1e-7)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "table"])
def test_psi_is_constant_beyond_the_grid(exact):
    mixtures = random_mixtures(FREE)
    border = evaluate(mixtures, FREE, np.array([-100.0, 100.0]), exact=exact)
    far = np.array([-np.inf, -1e30, -100.001, 100.001, 1e30, np.inf])
    values, derivatives = slopes(mixtures, FREE, far, exact=exact)
    np.testing.assert_allclose(values, np.repeat(border, 3, axis=0), rtol=0, atol=1e-12)
    assert (derivatives == 0).all()
    _, inside = slopes(mixtures, FREE, np.array([-99.999, 99.999]), exact=exact)
    assert (inside != 0).all()


@pytest.mark.parametrize("count", [62, 63])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "table"])
def test_odd_coefficients_make_an_odd_function(count, exact):
    config = NetworkConfig(rbf_count=count)
    half = random_mixtures(dataclasses.replace(config, rbf_count=count // 2))
    mixtures = odd_from_half(half, count)
    arguments = range_of(config)
    values = evaluate(mixtures, config, arguments, exact=exact)
    np.testing.assert_allclose(values, -values[::-1], rtol=0, atol=1e-12)
    assert np.ptp(values) > 1
    zero = evaluate(mixtures, config, np.zeros(1), exact=exact)
    np.testing.assert_allclose(zero, 0, atol=1e-13)


@pytest.mark.parametrize("channel", [0, 1, 2])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "table"])
def test_gradients_are_those_of_what_is_computed(exact, channel):
    rng = np.random.default_rng(1)
    mixtures = random_mixtures(COARSE)
    arguments = rng.uniform(-120, 120, (7, COARSE.filter_count))
    cotangents = rng.standard_normal(arguments.shape)

    def loss(s: np.ndarray, coefficients: np.ndarray) -> float:
        features = s.copy()
        rbf.evaluate(features, Potentials(coefficients, COARSE, exact=exact).mixtures[channel])
        return np.vdot(cotangents, features)

    potentials = Potentials(mixtures, COARSE, exact=exact)
    table_gradient = potentials.new_gradient()
    got = cotangents.copy()
    potentials.backward(channel, arguments.copy(), got, table_gradient)
    assert_close(got, central_differences(lambda s: loss(s, mixtures), arguments, 1e-4), 1e-7)
    assert_close(
        potentials.coefficient_gradient(table_gradient),
        central_differences(lambda pi: loss(arguments, pi), mixtures, 1.0),
        1e-10,
    )


def test_gradients_of_tiles_add_up():
    rng = np.random.default_rng(1)
    potentials = Potentials(random_mixtures(COARSE), COARSE)
    arguments = rng.uniform(-120, 120, (9, COARSE.filter_count))
    whole, parts = potentials.new_gradient(), potentials.new_gradient()
    potentials.backward(1, arguments.copy(), np.ones_like(arguments), whole)
    for rows in (slice(0, 4), slice(4, 9)):
        potentials.backward(1, arguments[rows].copy(), np.ones_like(arguments[rows]), parts)
    assert_close(parts, whole, 1e-14)


def test_tables_are_made_in_one_thread(monkeypatch):
    """Threads of BLAS that spin for each other take long where the cores are busy."""
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
    threads = []
    basis_of = potentials.cubic_basis

    def record(config):
        threads.append(min(library["num_threads"] for library in blas.info()))
        return basis_of(config)

    monkeypatch.setattr(potentials, "cubic_basis", record)
    config = NetworkConfig()
    coefficients = np.random.default_rng(99).standard_normal((1, 24, config.rbf_count))
    with blas.limit(limits=2):
        made = Potentials(coefficients, config)
        made.coefficient_gradient(made.new_gradient())
    assert threads == [1, 1]
