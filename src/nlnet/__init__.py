"""Non-local image denoising with trained, unrolled networks.

``nlnet.denoise(image)`` removes the noise of a grayscale or color image, and
``nlnet.estimate_noise(image)`` tells what kind of noise it has. Names are loaded when they are
first used, so that ``import nlnet`` and the command line start at once.
"""

import importlib
from typing import TYPE_CHECKING

from nlnet.errors import Cancelled, EngineError, FileError, InputError, ModelError, NLNetError

if TYPE_CHECKING:
    from nlnet.denoising.image import denoise
    from nlnet.denoising.stacks import denoise_stack
    from nlnet.images import read_image, read_pages, write_image, write_pages
    from nlnet.model.family import Family
    from nlnet.model.loading import load_model
    from nlnet.model.model import Model
    from nlnet.network.config import NetworkConfig
    from nlnet.noise.estimation import estimate_noise, estimate_sigma
    from nlnet.noise.record import Noise

__version__ = "0.1.0"

__all__ = [
    "Cancelled",
    "EngineError",
    "Family",
    "FileError",
    "InputError",
    "Model",
    "ModelError",
    "NLNetError",
    "NetworkConfig",
    "Noise",
    "__version__",
    "denoise",
    "denoise_stack",
    "estimate_noise",
    "estimate_sigma",
    "load_model",
    "read_image",
    "read_pages",
    "write_image",
    "write_pages",
]

_LAZY = {
    "nlnet.denoising.image": ("denoise",),
    "nlnet.denoising.stacks": ("denoise_stack",),
    "nlnet.images": ("read_image", "read_pages", "write_image", "write_pages"),
    "nlnet.model.family": ("Family",),
    "nlnet.model.loading": ("load_model",),
    "nlnet.model.model": ("Model",),
    "nlnet.network.config": ("NetworkConfig",),
    "nlnet.noise.estimation": ("estimate_noise", "estimate_sigma"),
    "nlnet.noise.record": ("Noise",),
}


def __getattr__(name: str) -> object:
    for module, names in _LAZY.items():
        if name in names:
            value: object = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
