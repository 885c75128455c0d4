"""Sample data: a movie that shows what the plugin does."""

from typing import Any

import numpy as np


def cells(frames: int = 8, side: int = 256) -> list[tuple[Any, dict[str, Any], str]]:
    """Return a layer of cells that move a little from frame to frame, at about 20 photons.

    Examples
    --------
    >>> ((movie, options, kind),) = cells(frames=2, side=32)
    >>> movie.shape, movie.dtype, kind
    ((2, 32, 32), dtype('uint16'), 'image')
    """
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side].astype(np.float32)
    light = np.full((frames, side, side), 2.0, np.float32)
    for _ in range(max(side * side // 2000, 1)):
        place, way = rng.uniform(0, side, 2), rng.normal(0, 1.5, 2)
        radius, brightness = rng.uniform(5, 14), rng.uniform(6, 25)
        for number, frame in enumerate(light):
            down, across = place + number * way
            distance = np.hypot(y - down, x - across)
            frame += brightness / (1 + np.exp(2 * (distance - radius)))
    movie = rng.poisson(light).astype(np.uint16)
    options = {"name": "cells", "metadata": {"noise": "photon noise, gain 1"}}
    return [(movie, options, "image")]
