"""The RBF mixtures psi, their slopes and the gradients of their coefficients.

psi_i(s) = sum_j pi_ij exp(-(s - mu_j)^2 / (2 std^2)), the argument clipped to the grid's range.
Two evaluations share one interface: `exact` sums the Gaussians; `tabulated` replaces psi between
equidistant nodes by the cubic that has psi's values and slopes there. The table is linear in pi,
so its gradient is the exact derivative of what the forward pass computes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from nlnet.arrays import Array
from nlnet.network.kernels.compile import kernel
from nlnet.network.kernels.simd.cubics import differentiate_cubics, evaluate_cubics
from nlnet.network.kernels.simd.vectors import LANES


class Mixtures(NamedTuple):
    """psi of all filters of one channel, to be looked up or summed up.

    `cubics`, (F, intervals, 4), is the table; where it is empty, psi is summed up from the
    `coefficients`, (F, M). The grid starts at `lower`; the table's nodes are `step` apart, the
    Gaussians' centres `spacing`.
    """

    cubics: Array
    coefficients: Array
    lower: float
    step: float
    spacing: float
    std: float


@kernel
def evaluate(features: Array, mixtures: Mixtures) -> None:
    """Replace features s of shape (n, F) by psi(s)."""
    if mixtures.cubics.size:
        tabulated(features, mixtures.cubics, mixtures.lower, mixtures.step)
    else:
        exact(features, mixtures.coefficients, mixtures.lower, mixtures.spacing, mixtures.std)


@kernel
def tabulated(features: Array, cubics: Array, lower: float, step: float) -> None:
    """Replace features s of shape (n, F) by psi(s); `cubics` is (F, intervals, 4)."""
    flat, count = features.reshape(-1), features.shape[1]
    kind = features.dtype.type
    origin, scale = kind(-lower / step), kind(1 / step)
    for at in range(0, flat.shape[0], count):
        for i in range(0, count, LANES):
            evaluate_cubics(flat, at + i, cubics, i, origin, scale)


@kernel
def tabulated_backward(
    features: Array, cotangents: Array, cubics: Array, lower: float, step: float, gradient: Array
) -> None:
    """Replace s by psi(s) and the cotangents d by psi'(s) d, and add the table's gradient."""
    flat, others, count = features.reshape(-1), cotangents.reshape(-1), features.shape[1]
    kind = features.dtype.type
    origin, scale = kind(-lower / step), kind(1 / step)
    for at in range(0, flat.shape[0], count):
        for i in range(0, count, LANES):
            differentiate_cubics(flat, others, at + i, cubics, gradient, i, origin, scale)


@kernel
def exact(features: Array, coefficients: Array, lower: float, step: float, std: float) -> None:
    """Replace features s of shape (n, F) by psi(s); `coefficients` is (F, M)."""
    upper = lower + step * (coefficients.shape[1] - 1)
    for pixel in range(features.shape[0]):
        for i in range(features.shape[1]):
            s = min(max(features[pixel, i], lower), upper)
            total = 0.0
            for j in range(coefficients.shape[1]):
                offset = (s - lower - step * j) / std
                total += coefficients[i, j] * math.exp(-0.5 * offset * offset)  # Eq. (14)
            features[pixel, i] = total


@kernel
def exact_backward(
    features: Array,
    cotangents: Array,
    coefficients: Array,
    lower: float,
    step: float,
    std: float,
    gradient: Array,
) -> None:
    """Replace s by psi(s) and the cotangents d by psi'(s) d; ``gradient[i, j] += d rho_j(s)``."""
    upper = lower + step * (coefficients.shape[1] - 1)
    for pixel in range(features.shape[0]):
        for i in range(features.shape[1]):
            s = features[pixel, i]
            inside = lower <= s <= upper
            s = min(max(s, lower), upper)
            value, slope, cotangent = 0.0, 0.0, cotangents[pixel, i]
            for j in range(coefficients.shape[1]):
                offset = (s - lower - step * j) / std
                gaussian = math.exp(-0.5 * offset * offset)
                value += coefficients[i, j] * gaussian
                slope -= coefficients[i, j] * gaussian * offset / std  # Eq. (40)
                gradient[i, j] += cotangent * gaussian  # Eq. (35)
            features[pixel, i] = value
            cotangents[pixel, i] = slope * cotangent if inside else 0.0
