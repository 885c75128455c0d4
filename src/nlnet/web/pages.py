"""What removes the noise of an upload, and what is said about the noise."""

from __future__ import annotations

import os

from nlnet.denoising.network import Network
from nlnet.denoising.plan import Plan
from nlnet.errors import InputError
from nlnet.files.settings import Settings
from nlnet.images import ImageFile
from nlnet.model.loading import choose_model
from nlnet.model.model import Model
from nlnet.network.recursion import least_memory
from nlnet.web.catalog import Catalog

_MAX_MEMORY = 1280 * 2**20
"""Bytes that the network may use besides the image and the result: enough for 50 megapixels of a
usual shape to be computed just as by the command line."""

_WORDS = {
    "none": "no noise worth removing",
    "white": "white noise",
    "poisson": "photon noise",
    "curve": "noise that depends on the brightness",
    "camera": "camera noise, correlated",
}


def network_for(page: ImageFile, settings: Settings, catalog: Catalog) -> Network:
    """Return what removes the noise of pages like this one.

    Raises
    ------
    InputError
        If the page is so wide that whole rows of it take too much memory; when it runs, ModelError
        if the model is for other images.
    """
    height, width = page.pixels.shape[:2]
    threads = os.cpu_count() or 1

    def choose(sigma: float) -> Model:
        asked = catalog.choose(str(settings.model), page.channels, sigma, settings.quality)
        model = choose_model(asked, page.channels, sigma)
        shape = (page.channels, height, width)
        if least_memory(shape, model.config, threads) > _MAX_MEMORY:
            raise InputError(
                f"The image is {width} pixels wide, which takes more memory than this server "
                "gives; turn it by 90 degrees, or cut it into parts."
            )
        return model

    return Network(choose, max_memory=_MAX_MEMORY)


def in_words(plan: Plan) -> str:
    """Say what the noise is, and how strong if white is 255."""
    about = "" if plan.noise.kind == "none" else f", about {plan.sigma:.2g}"
    return f"{_WORDS[plan.noise.kind]}{about}"
