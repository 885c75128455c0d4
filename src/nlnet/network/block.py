"""The parameter block: a network or a family as bytes, for the engine and for other languages.

It is one flat piece of memory; ``docs/engine.md`` has its layout as a table.
"""

import dataclasses
import functools
import itertools
import struct
from collections.abc import Sequence

import numpy as np

from nlnet.engine.library import ELEMENTS, instruction_set
from nlnet.engine.network import EngineEye, EngineNetwork
from nlnet.network.config import NetworkConfig
from nlnet.network.eye import Eye
from nlnet.network.layers import pack_array, unpack_array
from nlnet.network.parameters import StageParameters, check_shapes, stage_shapes
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement, blank

MAGIC = b"nlnetpar"
VERSION = 1

_HEADER = struct.Struct("<8s10I3dQ")
_ELEMENT_AT = 12  # bytes from the block's start
_PROJECT_EVERY_STAGE, _REFINED = 1, 2


def pack(
    config: NetworkConfig,
    stages: Sequence[StageParameters],
    sigma: float = 0.0,
    refinement: Refinement | None = None,
) -> bytes:
    """Return the parameter block of a network, of its parameters' dtype.

    Parameters
    ----------
    config : NetworkConfig
        The network's shape; its stages are as many as there are parameters for.
    stages : sequence of StageParameters
        Its learned values, in float32 or float64.
    sigma : float
        Standard deviation of the noise that it was trained for, on the 0-255 scale; 0 if unknown.
    refinement : Refinement, optional
        Runs after the stages.

    Raises
    ------
    ModelError
        If an array does not have the shape that the config says.
    """
    end = b"" if refinement is None else refinement.pack(stages[0].filters.dtype)
    return _pack(config, [stages], sigma, b"", end)


def pack_family(
    config: NetworkConfig,
    sigmas: Sequence[float],
    sets: Sequence[Sequence[StageParameters]],
    refinement: Refinement | None = None,
) -> bytes:
    """Return the parameter block of a family, whose values are given at some sigmas.

    Parameters
    ----------
    config : NetworkConfig
        The networks' shape.
    sigmas : sequence of float
        Where the values are given, two or more, ascending.
    sets : sequence
        The values there: for each sigma, those of all stages.
    refinement : Refinement, optional
        Runs after the stages.
    """
    given = struct.pack(f"<{len(sigmas)}d", *sigmas)
    end = b"" if refinement is None else refinement.pack_functions(sets[0][0].filters.dtype)
    return _pack(config, sets, REFERENCE_SIGMA, given, end)


def unpack_stages(block: memoryview, config: NetworkConfig) -> tuple[StageParameters, ...]:
    """Return the stages of a network's block, whose shape is known."""
    dtype: np.dtype[np.floating] = np.dtype(np.float64 if block[_ELEMENT_AT] else np.float32)
    at, stages = _HEADER.size, []
    for _ in range(config.stages):
        step_size = struct.unpack_from("<d", block, at)[0]
        at, arrays = at + 8, {}
        for name, shape in stage_shapes(config).items():
            arrays[name], at = unpack_array(block, at, shape, dtype)
        stages.append(StageParameters(**arrays, step_size=step_size))
    return tuple(stages)


def _pack(
    config: NetworkConfig,
    sets: Sequence[Sequence[StageParameters]],
    sigma: float,
    sigmas: bytes,
    refinement: bytes,
) -> bytes:
    dtype = sets[0][0].filters.dtype
    parts = [b"", sigmas]
    for stage in itertools.chain(*sets):
        check_shapes(stage, config)
        parts.append(struct.pack("<d", stage.step_size))
        arrays = (stage.filters, stage.group_weights, stage.coefficients)
        parts += [pack_array(array, dtype) for array in arrays]
    parts.append(refinement)
    flags = _PROJECT_EVERY_STAGE if config.project_every_stage else 0
    parts[0] = _HEADER.pack(
        MAGIC,
        VERSION,
        ELEMENTS[dtype],
        config.channels,
        len(sets[0]),
        config.patch_size,
        config.group_size,
        config.window,
        config.rbf_count,
        flags | (_REFINED if refinement else 0),
        len(sets),
        config.rbf_range,
        config.gaussian_std,
        sigma,
        _HEADER.size + sum(map(len, parts)),
    )
    return b"".join(parts)


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
    refinement = None if sizes is None else blank(sizes, config.channels)
    return prepare(config, stages, refinement, REFERENCE_SIGMA)


def prepare_eye(eye: Eye) -> EngineEye:
    """Return an eye for the engine, from a cache if the values are the same."""
    return _make_eye_once(eye.pack(), instruction_set())


_make_eye_once = functools.lru_cache(maxsize=2)(EngineEye)
_make_once = functools.lru_cache(maxsize=8)(EngineNetwork)
