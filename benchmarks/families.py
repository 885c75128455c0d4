"""The model families of nlnet as methods; without shipped weights their time still counts."""

from __future__ import annotations

from benchmarks.methods import Method
from nlnet.denoising.image import denoise
from nlnet.model.loading import select_model, shipped_models
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters

FAMILIES = {
    "gray-5x5": NetworkConfig(),
    "gray-7x7": NetworkConfig(patch_size=7),
    "color-5x5": NetworkConfig(channels=3),
}
REFERENCE = {"gray": "nlnet gray-5x5", "color": "nlnet color-5x5"}
"""The method that others are compared with, by kind."""


def load_family(family: str, sigma: float) -> tuple[Model, bool]:
    """Return a family's model for this noise, and whether it is trained."""
    if any(name.startswith(family) for name in shipped_models()):
        return select_model(family, sigma), True
    config = FAMILIES[family]
    return Model(config, initial_parameters(config), sigma, family), False


def make_family(family: str, sigma: float) -> Method:
    """Return a model family as a method."""
    model, trained = load_family(family, sigma)
    return Method(
        name=f"nlnet {family}",
        kind="gray" if model.config.channels == 1 else "color",
        call=lambda noisy, strength, threads: denoise(
            noisy, strength, model=model, data_range=255, threads=threads
        ),
        strengths=[sigma],
        quality=trained,
        note=model.name if trained else "untrained: time only",
    )
