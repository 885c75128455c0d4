"""Evaluating psi, a mixture of Gaussians, by a table of cubics with its values and slopes.

The engine makes the same table (``engine/src/network.cpp``); `nlnet.torch.plain` uses this one.
"""

import functools
from collections.abc import Callable

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.network.config import NetworkConfig

NODES_PER_STD = 5
"""Table nodes per standard deviation of a Gaussian; keeps the error below 1e-4 of psi's range."""


def centres(config: NetworkConfig) -> FloatArray:
    """Return where the Gaussians of a mixture are: (M,)."""
    return np.linspace(-config.rbf_range, config.rbf_range, config.rbf_count)


def gaussians(at: FloatArray, config: NetworkConfig) -> FloatArray:
    """Return the values of the M Gaussians of a mixture at N places: (N, M)."""
    return np.asarray(np.exp(-0.5 * ((at[:, None] - centres(config)) / config.gaussian_std) ** 2))


def fit_mixtures(target: Callable[[FloatArray], FloatArray], config: NetworkConfig) -> FloatArray:
    """Fit mixtures by least squares on their range: (K, M) to a function with values (N, K)."""
    x = np.linspace(-config.rbf_range, config.rbf_range, 16 * config.rbf_count + 1)
    fitted = np.linalg.lstsq(gaussians(x, config), target(x), rcond=None)[0]
    return np.ascontiguousarray(fitted.T)


def table_intervals(config: NetworkConfig) -> int:
    """Return how many intervals the grid's range is divided into."""
    return int(np.ceil(2 * config.rbf_range / config.gaussian_std * NODES_PER_STD))


def table_step(config: NetworkConfig) -> float:
    """Return the length of one interval."""
    return 2 * config.rbf_range / table_intervals(config)


@functools.lru_cache(maxsize=8)
def cubic_basis(config: NetworkConfig) -> FloatArray:
    """Map from M coefficients to the table: (intervals * 4, M).

    In each interval a cubic in t, from 0 to 1, takes the mixture's values and slopes at both ends.
    """
    intervals = table_intervals(config)
    nodes = np.linspace(-config.rbf_range, config.rbf_range, intervals + 1)
    offset = (nodes[:, None] - centres(config)) / config.gaussian_std  # (intervals + 1, M)
    value = gaussians(nodes, config)
    slope = -offset / config.gaussian_std * value * table_step(config)
    rise = value[1:] - value[:-1]
    cubics = np.stack(
        [
            value[:-1],
            slope[:-1],
            3 * rise - 2 * slope[:-1] - slope[1:],
            slope[:-1] + slope[1:] - 2 * rise,
        ],
        axis=1,
    )  # (intervals, 4, M)
    return cubics.reshape(4 * intervals, config.rbf_count)
