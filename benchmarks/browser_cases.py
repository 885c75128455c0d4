"""Images with noise of every kind, on which browsers and Python are compared."""

from __future__ import annotations

import numpy as np

from benchmarks.pictures import BUNDLED
from nlnet.images import read_image

KINDS = ("white", "photon", "camera")


def noisy_image(kind: str, channels: int) -> np.ndarray:
    """Return a photo of 8 bits with noise of a kind, gray or in color."""
    clean = read_image(BUNDLED).pixels[20:220, 60:320].astype(float)
    clean = clean if channels == 3 else clean.mean(axis=-1)
    rng = np.random.default_rng(1)
    if kind == "white":
        noisy = clean + rng.normal(0, 20, clean.shape)
    elif kind == "photon":
        noisy = 4.0 * rng.poisson(clean / 4)
    else:  # correlated, as a camera's own smoothing leaves it
        noise = rng.normal(0, 14, clean.shape)
        noisy = clean + sum(np.roll(noise, shift, axis=1) for shift in (-1, 0, 1)) / 1.7
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


MOST_DIFFERING = 1e-4
"""Share of values that may differ by one level where a refinement works: it fuses operations if the
CPU can. Everything else has the same bits everywhere."""


def differing(one: np.ndarray, other: np.ndarray) -> tuple[float, int]:
    """Return the share of values that differ, and by how much at most."""
    off = np.abs(one.astype(int) - other)
    return float(np.mean(off > 0)), int(off.max())
