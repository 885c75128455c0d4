"""Where training begins: the standard start, or a simpler model or one for another noise level."""

import dataclasses

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.errors import ModelError
from nlnet.model.loading import load_model, select_model
from nlnet.model.model import Model
from nlnet.network import color
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, dct_basis, initial_parameters, odd_part
from nlnet.network.potentials import fit_mixtures, gaussians
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement
from nlnet.torch.refinement import initial_refinement
from nlnet.training.settings import TrainingSettings


def starting_parameters(settings: TrainingSettings) -> tuple[tuple[StageParameters, ...], ...]:
    """Return the parameters, of the recipe's precision, that it starts from.

    There is one set, or one for each sigma at which values are given: each from the model of the
    family `start` that is nearest.
    """
    config, start = settings.network, settings.start
    if start is None:
        return blank_parameters(settings)
    if settings.sigma is not None:
        sets = [adapt_model(select_model(start, settings.sigma), config, settings.sigma)]
    else:
        near = (select_model(start, sigma) for sigma in settings.sigmas)
        sets = [adapt_model(model, config, REFERENCE_SIGMA) for model in near]
    return tuple(tuple(stage.astype(settings.precision) for stage in stages) for stages in sets)


def blank_parameters(settings: TrainingSettings) -> tuple[tuple[StageParameters, ...], ...]:
    """Return the standard start, of the recipe's precision, once for each of its sigmas."""
    stages = initial_parameters(settings.network)
    return (tuple(s.astype(settings.precision) for s in stages),) * max(1, len(settings.sigmas))


def starting_refinement(settings: TrainingSettings) -> Refinement | None:
    """Return the refinement, new or a model's, that a recipe starts from; None if it has none."""
    config, start = settings.network, settings.refinement.start
    if config.refinement is None:
        return None
    if start is None:
        return initial_refinement(config.refinement, config.channels, settings.seed)
    known = load_model(start).refinement
    if known is None or (known.config, known.channels) != (config.refinement, config.channels):
        raise ModelError(f"The model {start!r} to start from has no refinement of these sizes.")
    return known


def adapt_model(model: Model, config: NetworkConfig, sigma: float) -> tuple[StageParameters, ...]:
    """Return parameters to start from, with which a network does nearly what a model does.

    A model for another noise level gets its mixtures rescaled. A gray model becomes a color one by
    rescaling them, for each opponent channel, to the noise that is there. Smaller patches become
    larger ones by zeros around the filters; the new filters complete them, with a psi of zero.
    """
    known = dataclasses.replace(
        model.config,
        channels=config.channels,
        patch_size=config.patch_size,
        refinement=config.refinement,
    )
    grows = (
        config.channels >= model.config.channels and config.patch_size >= model.config.patch_size
    )
    if known != config or not grows:
        raise ModelError(
            f"The model {model.name!r} to start from has another network than the recipe; only "
            "sigma may differ, and channels and patch_size may be larger in the recipe."
        )
    gains = np.ones(model.config.channels)
    if config.channels > model.config.channels:
        gains = np.linalg.norm(color.OPPONENT, axis=1)  # noise of each opponent channel
    factors = gains * sigma / model.sigma
    return tuple(_adapt_stage(stage, factors, config) for stage in model.stages)


def _adapt_stage(
    stage: StageParameters, factors: FloatArray, config: NetworkConfig
) -> StageParameters:
    mixtures = np.broadcast_to(stage.coefficients, (len(factors), *stage.coefficients.shape[1:]))
    coefficients = np.stack(
        [
            rescale_mixtures(mixture, factor, config)
            for mixture, factor in zip(mixtures, factors, strict=True)
        ]
    )
    added = config.filter_count - len(stage.filters)
    return StageParameters(
        enlarge_filters(stage.filters, config.patch_size),
        stage.group_weights,
        np.pad(coefficients, ((0, 0), (0, added), (0, 0))),
        stage.step_size,
    )


def enlarge_filters(filters: FloatArray, patch_size: int) -> FloatArray:
    """Put zeros around the filters, and add as many orthonormal ones as larger patches allow."""
    size = int(np.sqrt(filters.shape[1]))
    edge = (patch_size - size) // 2
    squares = filters.astype(np.float64).reshape(-1, size, size)
    padded = np.pad(squares, ((0, 0), (edge, edge), (edge, edge))).reshape(len(filters), -1)
    dct = dct_basis(patch_size)
    # In the DCT's coordinates, the last right singular vectors span what the filters do not.
    others = np.linalg.svd(padded @ dct.T)[2][len(filters) :]
    return np.concatenate([padded, others @ dct])


def rescale_mixtures(coefficients: FloatArray, factor: float, config: NetworkConfig) -> FloatArray:
    """Fit mixtures of ``factor * psi(x / factor)``: psi for images and noise scaled by a factor."""
    if factor == 1:
        return coefficients

    def target(x: FloatArray) -> FloatArray:
        scaled = np.clip(x / factor, -config.rbf_range, config.rbf_range)
        return np.asarray(factor * gaussians(scaled, config) @ coefficients.astype(np.float64).T)

    fitted = fit_mixtures(target, config)
    return odd_part(fitted) if config.odd else fitted
