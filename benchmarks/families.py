"""The models of nlnet as methods: those that are chosen if none is named, and the paper's 7x7."""

from __future__ import annotations

from benchmarks.methods import Method
from nlnet.defaults import FAMILIES as CHOSEN
from nlnet.defaults import FAST
from nlnet.denoising.image import denoise
from nlnet.model.loading import select_model

REFERENCE = {"gray": f"nlnet {CHOSEN[FAST][1]}", "color": f"nlnet {CHOSEN[FAST][3]}"}
"""The method that others are compared with, by kind."""

NAMES = tuple(
    dict.fromkeys([*(name for chosen in CHOSEN.values() for name in chosen.values()), "gray-7x7"])
)
FAMILIES = {name: select_model(name, 25.0).config for name in NAMES}
"""The shape of the networks, by name."""


def make_family(family: str, sigma: float) -> Method:
    """Return a model family as a method."""
    model = select_model(family, sigma)
    return Method(
        name=f"nlnet {family}",
        kind="gray" if model.config.channels == 1 else "color",
        call=lambda noisy, strength, threads: denoise(
            noisy, strength, model=model, data_range=255, threads=threads
        ),
        strengths=[sigma],
        note=model.name,
    )
