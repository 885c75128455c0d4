"""All methods by name, built one at a time: building one imports its library."""

from __future__ import annotations

import functools
from collections.abc import Callable

from benchmarks import families, peers
from benchmarks.methods import Method

Builder = Callable[[float], Method]
"""From sigma on the 0-255 scale to a method."""

PEERS = {
    "opencv": peers.make_opencv,
    "wavelet": peers.make_wavelet,
    "tv": peers.make_tv,
    "nl-means": peers.make_nl_means,
    "dncnn": peers.make_dncnn_method,
    "ffdnet": peers.make_ffdnet_method,
    "bm3d": peers.make_bm3d,
}

BUILDERS: dict[str, Builder] = {
    **{family: functools.partial(families.make_family, family) for family in families.FAMILIES},
    **{f"{name}-gray": functools.partial(make, "gray") for name, make in PEERS.items()},
    **{f"{name}-color": functools.partial(make, "color") for name, make in PEERS.items()},
}


def keys_of(kind: str) -> list[str]:
    """Return the keys of the methods for gray or for color images."""
    return [key for key in BUILDERS if kind in key.split("-")]
