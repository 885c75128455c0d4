"""The eye that looks at pictures to find their noise: the weights that are part of the package.

The eye is a small network (`nlnet.network.eye`), trained on simulated pictures of everything that
cameras, films and microscopes do (`nlnet.training.eye`). For every square of 16x16 pixels it says
how strong the noise is at full, half and quarter size, in luma and in chroma, how far off each of
these may be, and which kind of noise it is. The engine makes maps and a decision of its answers
(``engine/src/estimates``).
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from nlnet.network.eye import Eye, EyeConfig
from nlnet.network.layers import Layer


@functools.cache
def shipped_eye() -> Eye:
    """Return the eye that is part of the package."""
    from safetensors.numpy import load

    content = (importlib.resources.files(__package__) / "eye.safetensors").read_bytes()
    return eye_from_tensors(load(content))


def eye_from_tensors(tensors: Mapping[str, npt.NDArray[np.floating]]) -> Eye:
    """Return an eye of the usual sizes from its weights and biases, by the names of layers."""
    config = EyeConfig(outputs=16)
    layers = (
        Layer(
            tensors[f"{spec.name}.weights"].astype(np.float32),
            tensors[f"{spec.name}.biases"].astype(np.float32),
        )
        for spec in config.layers
    )
    return Eye(config, tuple(layers))
