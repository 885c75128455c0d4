"""How psi, a mixture of Gaussians, is evaluated: by a table of cubics with its values and slopes.

The engine makes the same table (``engine/src/network.cpp``); `nlnet.torch.plain` uses this one.
"""

from __future__ import annotations

import functools

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.network.config import NetworkConfig

NODES_PER_STD = 5
"""Table nodes per standard deviation of a Gaussian; keeps the error below 1e-4 of psi's range."""


def grid_spacing(config: NetworkConfig) -> float:
    """Return the distance of the Gaussians' centres."""
    return 2 * config.rbf_range / (config.rbf_count - 1)


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
    intervals, std = table_intervals(config), config.gaussian_std
    step = table_step(config)
    nodes = np.linspace(-config.rbf_range, config.rbf_range, intervals + 1)
    centres = np.linspace(-config.rbf_range, config.rbf_range, config.rbf_count)
    offset = (nodes[:, None] - centres) / std  # (intervals + 1, M)
    value = np.exp(-0.5 * offset**2)
    slope = -offset / std * value * step
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
