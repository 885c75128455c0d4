"""The learned potentials' derivatives psi of one stage, ready to be evaluated.

A stage asks three things of them: psi(s), which its kernel evaluates from the `mixtures`, psi with
its slope for the backward pass, and the gradient of the mixture coefficients. How psi is evaluated,
by a table or exactly, is decided here and nowhere else.
"""

from __future__ import annotations

import functools

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.network.config import NetworkConfig
from nlnet.network.kernels import rbf
from nlnet.network.parallel import single_threaded_blas

NODES_PER_STD = 5
"""Table nodes per standard deviation of a Gaussian; keeps the error below 1e-4 of psi's range."""


class Potentials:
    """psi of all channels and filters of one stage.

    Parameters
    ----------
    coefficients : (channels, filters, M) array
        Mixture coefficients pi; their dtype is the dtype of the computation.
    config : NetworkConfig
        Grid and width of the Gaussians.
    exact : bool
        Sum all Gaussians (slow; for tests) instead of looking psi up in a table.
    """

    def __init__(
        self, coefficients: FloatArray, config: NetworkConfig, *, exact: bool = False
    ) -> None:
        self._config = config
        self._exact = exact
        empty = np.empty((*coefficients.shape[:2], 0, 4), coefficients.dtype)
        cubics = empty if exact else tabulate(coefficients, config)
        self._weights: Array = coefficients if exact else cubics
        self.mixtures = [
            rbf.Mixtures(
                table,
                weights,
                -config.rbf_range,
                table_step(config),
                grid_spacing(config),
                config.gaussian_std,
            )
            for table, weights in zip(cubics, coefficients, strict=True)
        ]
        """What :func:`nlnet.network.kernels.rbf.evaluate` needs, for each channel."""

    def new_gradient(self) -> FloatArray:
        """Zeros for :meth:`backward` to add to: one part per channel."""
        return np.zeros_like(self._weights)

    def backward(
        self, channel: int, features: FloatArray, cotangents: FloatArray, gradient: FloatArray
    ) -> None:
        """Replace s by psi(s) and the cotangents d by psi'(s) d; add to the gradient."""
        weights, lower = self._weights[channel], -self._config.rbf_range
        if self._exact:
            rbf.exact_backward(
                features,
                cotangents,
                weights,
                lower,
                grid_spacing(self._config),
                self._config.gaussian_std,
                gradient[channel],
            )
        else:
            rbf.tabulated_backward(
                features, cotangents, weights, lower, table_step(self._config), gradient[channel]
            )

    def coefficient_gradient(self, gradient: FloatArray) -> FloatArray:
        """Gradient of pi, (channels, filters, M), from what :meth:`backward` has added up."""
        if self._exact:
            return gradient
        flat = gradient.reshape(*gradient.shape[:2], -1).astype(np.float64)
        with single_threaded_blas:
            return np.asarray(flat @ cubic_basis(self._config), dtype=gradient.dtype)


def tabulate(coefficients: FloatArray, config: NetworkConfig) -> FloatArray:
    """Return the cubics of all mixtures: (channels, filters, intervals, 4), not to be written to.

    A model's tables are made once, not again for each of its images.
    """
    kind = coefficients.dtype.str
    return _tabulated(coefficients.tobytes(), kind, coefficients.shape, config)


@functools.lru_cache(maxsize=32)
def _tabulated(
    content: bytes, kind: str, shape: tuple[int, ...], config: NetworkConfig
) -> FloatArray:
    coefficients = np.frombuffer(content, kind).reshape(shape).astype(np.float64)
    with single_threaded_blas:
        table = coefficients @ cubic_basis(config).T
    table = table.reshape(*shape[:2], table_intervals(config), 4).astype(kind)
    table.flags.writeable = False
    return table


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
