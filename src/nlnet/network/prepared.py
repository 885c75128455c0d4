"""Networks in the form the engine takes, cached so that a model is converted only once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from nlnet.engine.library import instruction_set
from nlnet.engine.network import EngineEye, EngineNetwork
from nlnet.network.block import pack
from nlnet.network.config import NetworkConfig
from nlnet.network.eye import Eye
from nlnet.network.parameters import StageParameters, stage_shapes
from nlnet.network.refinement import Refinement, blank


def make_network(config: NetworkConfig, stages: Sequence[StageParameters]) -> EngineNetwork:
    """Return these stages for the engine; the parameters' dtype is that of the computation."""
    return EngineNetwork(pack(config, stages), stages[0].filters.dtype, instruction_set())


def prepare(
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    refinement: Refinement | None = None,
    sigma: float = 0.0,
) -> EngineNetwork:
    """Return these stages and their refinement, from a cache if the values are the same.

    `sigma` is that of the noise that they were trained for, 0 if unknown.
    """
    block = pack(config, stages, sigma, refinement)
    return _make_once(block, stages[0].filters.dtype, instruction_set())


def prepare_blank(config: NetworkConfig) -> EngineNetwork:
    """Return a network that has not learned anything, in float32.

    It finds the groups of any network of its sizes, and takes the same memory to denoise.
    """
    config = dataclasses.replace(config, rbf_count=2, rbf_std=None)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in stage_shapes(config).items()}
    stages = [StageParameters(**arrays, step_size=0.0)] * config.stages
    sizes = config.refinement
    return prepare(config, stages, None if sizes is None else blank(sizes, config.channels))


def prepare_eye(eye: Eye) -> EngineEye:
    """Return an eye for the engine, from a cache if the values are the same."""
    return _make_eye_once(eye.pack(), instruction_set())


_make_eye_once = functools.lru_cache(maxsize=2)(EngineEye)
_make_once = functools.lru_cache(maxsize=8)(EngineNetwork)
