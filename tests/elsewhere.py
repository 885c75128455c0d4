"""A function in place of the networks, to see what removal does around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nlnet.engine.removal import Removal
from nlnet.network.block import prepare
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.noise.record import Noise
from nlnet.noise.stabilisation import engine_noise

SIGMA = 25.0
"""Of the noise that networks see."""

Remove = Callable[[np.ndarray, float], np.ndarray]


def identity(planes: np.ndarray, sigma: float) -> np.ndarray:
    return planes


def small_network(channels: int) -> Any:
    config = NetworkConfig(channels=channels, stages=1, patch_size=3, group_size=2, window=3)
    stages = [stage.astype(np.float32) for stage in initial_parameters(config)]
    return prepare(config, stages, sigma=SIGMA)


def remove_with(
    planes: np.ndarray, noise: Noise, function: Remove, **options: Any
) -> tuple[np.ndarray, list[tuple[tuple[int, ...], float]]]:
    """Return the result, and the shapes and sigmas that the function was asked for.

    It is called with planes and their sigma in the units of the image, the noise made even.
    """
    progress = options.pop("progress", None)
    removal = Removal(planes, engine_noise(noise), **options)
    asked: list[tuple[tuple[int, ...], float]] = []
    sigmas = [sigma * options.get("span", 255.0) / 255 for sigma in removal.sigmas()]

    def elsewhere(scale: int, scaled: np.ndarray, box: object) -> np.ndarray:
        asked.append((scaled.shape, sigmas[scale]))
        factor = np.float32(SIGMA / sigmas[scale])
        return np.asarray(function(scaled / factor, sigmas[scale]) * factor)

    result = np.full(planes.shape, np.nan, np.float32)
    networks = [small_network(len(planes)) if sigma else None for sigma in sigmas]
    removal.run(networks, result, elsewhere=elsewhere, progress=progress)
    return result, asked
