"""The parameter block: a network as bytes, for the engine and for other languages.

It is one flat piece of memory; ``docs/engine.md`` has its layout as a table.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from nlnet.engine.network import ELEMENTS
from nlnet.network.config import NetworkConfig
from nlnet.network.layers import pack_array
from nlnet.network.parameters import StageParameters, check_shapes
from nlnet.network.refinement import Refinement

MAGIC = b"nlnetpar"
VERSION = 1

_HEADER = struct.Struct("<8s10I3dQ")
_PARAMETER_SETS = 1
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
    dtype = stages[0].filters.dtype
    parts = [b""]
    for stage in stages:
        check_shapes(stage, config)
        parts.append(struct.pack("<d", stage.step_size))
        arrays = (stage.filters, stage.group_weights, stage.coefficients)
        parts += [pack_array(array, dtype) for array in arrays]
    if refinement is not None:
        parts.append(refinement.pack(dtype))
    flags = _PROJECT_EVERY_STAGE if config.project_every_stage else 0
    parts[0] = _HEADER.pack(
        MAGIC,
        VERSION,
        ELEMENTS[dtype],
        config.channels,
        len(stages),
        config.patch_size,
        config.group_size,
        config.window,
        config.rbf_count,
        flags | (0 if refinement is None else _REFINED),
        _PARAMETER_SETS,
        config.rbf_range,
        config.gaussian_std,
        sigma,
        _HEADER.size + sum(map(len, parts)),
    )
    return b"".join(parts)
