"""Small networks with a refinement, whose values are random, for several test modules."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from cases import denoise_planes, noise
from test_family import make_family

from nlnet.model.family import REFERENCE_SIGMA, Family
from nlnet.network.config import NetworkConfig
from nlnet.network.refinement import Refinement, RefinementConfig, tensor_shapes

STAGES = NetworkConfig(stages=2, patch_size=3, group_size=4, window=5, rbf_count=11)
"""Stages that look 12 pixels far, so that most of the reach is the refinement's."""

SIZES = RefinementConfig((8, 16), (1, 1), (1,))

ALL_SIZES = (
    SIZES,
    RefinementConfig((8,), (1,), ()),
    RefinementConfig((16,), (0,), ()),
    RefinementConfig((16, 8), (0, 0), (0,)),
    RefinementConfig((24, 8, 16), (2, 0, 1), (0, 1)),
    RefinementConfig((8, 8, 8, 16), (1, 1, 1, 1), (1, 0, 1)),
)
"""From one level to four, with and without blocks."""


def random_refinement(
    config: RefinementConfig = SIZES, channels: int = 1, seed: int = 0
) -> Refinement:
    """Values as no training would leave them: every entry matters, and all change with sigma."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, shape in tensor_shapes(config, channels).items():
        size = 0.8 / math.sqrt(math.prod(shape[1:])) if len(shape) == 4 else 0.1
        tensors[name] = rng.normal(0, size, shape).astype(np.float32)
    tensors["step_size"] = np.array([0.3, 0.1], np.float32)
    return Refinement(config, channels, tensors)


def refined_config(sizes: RefinementConfig = SIZES, channels: int = 1) -> NetworkConfig:
    return dataclasses.replace(STAGES, channels=channels, refinement=sizes)


def refined_family(
    sizes: RefinementConfig = SIZES, channels: int = 1, name: str = "refined"
) -> Family:
    """Random stages, different at each of `SIGMAS`, with a random refinement."""
    stages = make_family(dataclasses.replace(STAGES, channels=channels), name)
    return dataclasses.replace(
        stages,
        config=refined_config(sizes, channels),
        refinement=random_refinement(sizes, channels),
    )


def picture(*shape: int, sigma: float = 25.0, seed: int = 1) -> np.ndarray:
    """Waves from black to white with noise, (C, H, W)."""
    waves = 110 * np.sin(np.add.outer(np.arange(shape[-2]) / 7, np.arange(shape[-1]) / 5))
    return (noise(*shape, std=sigma, seed=seed) + waves).astype(np.float32)


def by_engine(image: np.ndarray, family: Family, sigma: float, **options: Any) -> np.ndarray:
    """An image scaled as `nlnet.denoise` does it."""
    model, scale = family.at(sigma), np.float32(REFERENCE_SIGMA / sigma)
    box = options.pop("box", (0.0, 255.0))
    scaled = None if box is None else (box[0] * scale, box[1] * scale)
    given = {"refinement": model.refinement, "box": scaled, **options}
    return denoise_planes(image * scale, family.config, model.stages, **given) / scale
