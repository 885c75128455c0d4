"""Where training begins: the standard start, or a model trained for another noise level."""

from __future__ import annotations

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.config import NetworkConfig
from nlnet.errors import ModelError
from nlnet.model import load_model
from nlnet.parameters import StageParameters, initial_parameters, odd_from_half
from nlnet.training.settings import TrainingSettings


def starting_parameters(settings: TrainingSettings) -> tuple[StageParameters, ...]:
    """Return the float32 parameters that a recipe starts from."""
    config = settings.network
    if settings.start is None:
        return tuple(stage.astype(np.float32) for stage in initial_parameters(config))
    model = load_model(settings.start)
    if model.config != config:
        raise ModelError(
            f"The model {settings.start!r} to start from has another network than the recipe."
        )
    factor = settings.sigma / model.sigma
    return tuple(
        StageParameters(
            stage.filters,
            stage.group_weights,
            rescale_mixtures(stage.coefficients, factor, config),
            stage.step_size,
        ).astype(np.float32)
        for stage in model.stages
    )


def rescale_mixtures(coefficients: FloatArray, factor: float, config: NetworkConfig) -> FloatArray:
    """Fit mixtures of ``factor * psi(x / factor)``: psi for images, and noise, so much brighter."""
    centres = np.linspace(-config.rbf_range, config.rbf_range, config.rbf_count)
    x = np.linspace(-config.rbf_range, config.rbf_range, 16 * config.rbf_count + 1)

    def gaussians(at: FloatArray) -> FloatArray:
        return np.exp(-0.5 * ((at[:, None] - centres) / config.gaussian_std) ** 2)

    scaled = np.clip(x / factor, -config.rbf_range, config.rbf_range)
    target = (
        factor
        * gaussians(scaled)
        @ np.moveaxis(coefficients.astype(np.float64), -1, 0).reshape(config.rbf_count, -1)
    )  # (x, channels * filters)
    fitted = np.linalg.lstsq(gaussians(x), target, rcond=None)[0]
    result = np.moveaxis(fitted.reshape(config.rbf_count, *coefficients.shape[:2]), 0, -1)
    if not config.odd:
        return np.ascontiguousarray(result)
    half = config.rbf_count // 2
    return odd_from_half((result - result[..., ::-1])[..., :half] / 2, config.rbf_count)
