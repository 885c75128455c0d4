"""What a stage learns: filters, group weights, mixture coefficients and step size."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.arrays import FloatArray
from nlnet.errors import ModelError
from nlnet.network.config import NetworkConfig
from nlnet.network.potentials import fit_mixtures

SUM_TOLERANCE = 1e-4
"""How far a filter's sum may be from 0: room for float32 rounding only."""

NORM_TOLERANCE = 2**-10
"""How far a filter's norm may be from 1: room for two roundings to float16, as in a file."""

INITIAL_STEP_SIZE = 0.1
"""Step size of the stages after the first, before training."""


@dataclasses.dataclass(frozen=True, eq=False)
class StageParameters:
    """The learned values of one stage, C channels, patches of P pixels, K members, M Gaussians.

    Parameters
    ----------
    filters : (P-1, P) array
        The patch transform F; every row has zero sum and unit norm.
    group_weights : (K,) array
        Weight w of each member of a group, the reference patch first.
    coefficients : (C, P-1, M) array
        Mixture coefficients of psi, all M of them also where the mixtures are odd.
    step_size : float
        gamma, the pull towards the noisy image.
    """

    filters: FloatArray
    group_weights: FloatArray
    coefficients: FloatArray
    step_size: float

    def astype(self, dtype: npt.DTypeLike) -> StageParameters:
        """Return the parameters with contiguous arrays of another floating type."""
        return StageParameters(
            np.ascontiguousarray(self.filters, dtype),
            np.ascontiguousarray(self.group_weights, dtype),
            np.ascontiguousarray(self.coefficients, dtype),
            self.step_size,
        )


def dct_basis(patch_size: int) -> npt.NDArray[np.float64]:
    """Return the orthonormal 2-D DCT-II atoms of a square patch, without the constant one.

    Parameters
    ----------
    patch_size : int
        Side p of the patch; P = p * p.

    Returns
    -------
    (P-1, P) array
        One atom per row, by frequency in row-major order: (0, 1), (0, 2), ..., (p-1, p-1).

    Examples
    --------
    >>> basis = dct_basis(5)
    >>> basis.shape
    (24, 25)
    >>> bool(np.allclose(basis @ basis.T, np.eye(24)))
    True
    """
    frequency = np.arange(patch_size)[:, None]
    position = np.arange(patch_size)[None, :]
    line = np.cos(np.pi * frequency * (2 * position + 1) / (2 * patch_size))
    line *= math.sqrt(2 / patch_size)
    line[0] = math.sqrt(1 / patch_size)
    # kron: row p*u + v is the atom of vertical frequency u and horizontal frequency v.
    return np.asarray(np.kron(line, line)[1:], np.float64)


def normalize_rows(matrix: FloatArray) -> npt.NDArray[np.float64]:
    """Return the matrix with every row scaled to unit Euclidean norm.

    Examples
    --------
    >>> normalize_rows(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    rows = np.asarray(matrix, np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and norms.all()):
        raise ModelError("A row of the mixing matrix is zero or not finite; it has no direction.")
    normalized: npt.NDArray[np.float64] = rows / norms
    return normalized


def odd_from_half(half: FloatArray, rbf_count: int) -> FloatArray:
    """Return all coefficients of odd mixtures, pi_j = -pi_(M+1-j), from their first M // 2.

    Parameters
    ----------
    half : (..., M // 2) array
        Coefficients of the Gaussians left of zero.
    rbf_count : int
        M; if odd, the Gaussian at zero gets the coefficient 0.

    Returns
    -------
    (..., M) array

    Examples
    --------
    >>> odd_from_half(np.array([1.0, 2.0]), 5).tolist()
    [1.0, 2.0, 0.0, -2.0, -1.0]
    """
    middle = np.zeros((*half.shape[:-1], rbf_count % 2), half.dtype)
    return np.concatenate([half, middle, -half[..., ::-1]], axis=-1)


def odd_part(coefficients: FloatArray) -> FloatArray:
    """Return the coefficients of the odd part of mixtures, odd to the bit.

    Examples
    --------
    >>> odd_part(np.array([1.0, 5.0, 3.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    count = coefficients.shape[-1]
    half = (coefficients - coefficients[..., ::-1])[..., : count // 2] / 2
    return odd_from_half(half, count)


def half_from_odd(coefficients: FloatArray) -> FloatArray:
    """Return the first M // 2 coefficients of odd mixtures, the inverse of `odd_from_half`.

    Examples
    --------
    >>> half_from_odd(np.array([1.0, 2.0, 0.0, -2.0, -1.0])).tolist()
    [1.0, 2.0]
    """
    half: FloatArray = coefficients[..., : coefficients.shape[-1] // 2].copy()
    return half


def check_parameters(stages: Sequence[StageParameters], config: NetworkConfig) -> None:
    """Raise ModelError, with one sentence, unless the parameters fit the config.

    They fit if every array has its shape and finite values, every filter has zero sum and unit
    norm, and the mixtures are odd where the config says so.
    """
    if len(stages) != config.stages:
        raise ModelError(
            f"The network has {config.stages} stages, but there are parameters for {len(stages)}."
        )
    for number, stage in enumerate(stages, start=1):
        where = f"stage {number}"
        check_shapes(stage, config, where)
        for name in stage_shapes(config):
            if not np.isfinite(getattr(stage, name)).all():
                raise ModelError(f"{name} of {where} has values that are NaN or infinite.")
        if not math.isfinite(stage.step_size):
            raise ModelError(f"step_size of {where} is {stage.step_size}, but must be finite.")
        exact = stage.filters.astype(np.float64)
        if np.abs(exact.sum(axis=1)).max() > SUM_TOLERANCE:
            raise ModelError(f"A filter of {where} does not have zero mean.")
        if np.abs(np.linalg.norm(exact, axis=1) - 1).max() > NORM_TOLERANCE:
            raise ModelError(f"A filter of {where} does not have unit norm.")
        if config.odd and not np.array_equal(stage.coefficients, -stage.coefficients[..., ::-1]):
            raise ModelError(f"The mixtures of {where} are not odd, but the config says they are.")


def stage_shapes(config: NetworkConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a stage's arrays, by their names, in the order of `StageParameters`."""
    return {
        "filters": (config.filter_count, config.patch_size**2),
        "group_weights": (config.group_size,),
        "coefficients": (config.channels, config.filter_count, config.rbf_count),
    }


def check_shapes(stage: StageParameters, config: NetworkConfig, where: str = "a stage") -> None:
    """Raise ModelError unless the arrays of a stage are of the shapes that the config says."""
    for name, shape in stage_shapes(config).items():
        value = getattr(stage, name)
        if value.shape != shape:
            raise ModelError(f"{name} of {where} has shape {value.shape}, but must be {shape}.")
        if value.dtype.kind != "f":
            raise ModelError(f"{name} of {where} is {value.dtype}, but must be floating point.")


def initial_parameters(config: NetworkConfig) -> tuple[StageParameters, ...]:
    """Return the parameters training starts from: a mild high-pass shrinkage in every stage.

    The filters are the DCT, a group is its reference patch alone, psi is close to
    ``x * exp(-x**2 / (2 * 45**2)) / 50``, and the first stage, whose input is the noisy image
    itself, has the step size 0.

    Examples
    --------
    >>> stages = initial_parameters(NetworkConfig(stages=2))
    >>> [stage.step_size for stage in stages]
    [0.0, 0.1]
    >>> stages[0].coefficients.shape
    (1, 24, 63)
    """
    mixture = _initial_mixture(config)
    shape = (config.channels, config.filter_count, config.rbf_count)
    group_weights = np.zeros(config.group_size)
    group_weights[0] = 1.0
    return tuple(
        StageParameters(
            filters=dct_basis(config.patch_size),
            group_weights=group_weights.copy(),
            coefficients=np.broadcast_to(mixture, shape).copy(),
            step_size=0.0 if stage == 0 else INITIAL_STEP_SIZE,
        )
        for stage in range(config.stages)
    )


def _initial_mixture(config: NetworkConfig) -> FloatArray:
    """Fit the initial psi by least squares on the mixture's range."""

    def target(x: FloatArray) -> FloatArray:
        return np.asarray(x * np.exp(-0.5 * (x / 45) ** 2) / 50)[:, None]

    # The target is odd, so the fit is odd up to rounding; make it exactly odd.
    return odd_part(fit_mixtures(target, config)[0])
