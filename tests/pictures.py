"""Small images to denoise, and a network to do it, for many test modules."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters

DenoiseFile = Callable[..., np.ndarray]
"""The fixture `denoise_file`."""


def random_image(shape: tuple[int, ...] = (20, 24), dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(8).integers(0, np.iinfo(dtype).max, shape).astype(dtype)


def noisy_pixels(dtype: Any, channels: int = 1, seed: int = 0) -> np.ndarray:
    """Noise of sigma 25 of 255 around middle gray, in the dtype's range."""
    shape = (24, 32) if channels == 1 else (24, 32, channels)
    values = np.random.default_rng(seed).normal(0.5, 0.1, shape)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return values.astype(kind)
    return np.rint(np.clip(values, 0, 1) * np.iinfo(kind).max).astype(kind)


def small_model(channels: int) -> Model:
    """A small untrained network: it smooths, which is enough to see that it worked."""
    config = NetworkConfig(channels=channels, stages=2, window=7)
    return Model(config, initial_parameters(config), sigma=25.0, name=f"small-{channels}")


@functools.cache
def one_stage(name: str) -> Model:
    """The first stage of a shipped model: its halo is 34 or 36, for many small chunks."""
    model = load_model(name)
    config = dataclasses.replace(model.config, stages=1)
    return Model(config, model.stages[:1], sigma=model.sigma, name="one-stage")
