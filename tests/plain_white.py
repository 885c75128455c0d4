"""The estimate of white noise in numpy, as the paper of Liu et al. has it: what the engine's is
compared with."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.noise.sample import Sample


def estimate_white(sample: Sample, size: int, step: int) -> float:
    """Return sigma from the patches of a sample, `step` pixels apart."""
    windows = [
        sliding_window_view(plane, (size, size))[::step, ::step].reshape(-1, size, size)
        for tile in sample.tiles
        for plane in (tile.astype(np.float64) - sample.measures.low) / sample.unit
    ]
    patches = _without_constant(np.concatenate(windows))
    across, down = patches[:, :, 2:] - patches[:, :, :-2], patches[:, 2:] - patches[:, :-2]
    texture = ((across**2).sum(axis=(1, 2)) + (down**2).sum(axis=(1, 2))) / 4
    means = patches.mean(axis=(1, 2))
    flat = patches.reshape(len(patches), -1) - means[:, np.newaxis]
    low, high = _limits(sample)
    variance = _smallest_variance(flat)
    for _ in range(5):
        weak = texture <= variance * texture_of_noise(size)
        margin = 2 * math.sqrt(variance)
        inside = weak & (means > low + margin) & (means < high - margin)
        chosen = inside if np.count_nonzero(inside) >= 10 * (size**2 - 1) else weak
        if np.count_nonzero(chosen) < 2 * (size**2 - 1):
            break
        before, variance = variance, _smallest_variance(flat[chosen])
        if math.isclose(variance, before, rel_tol=1e-3):
            break
    return sample.unit * math.sqrt(variance)


def _limits(sample: Sample) -> tuple[float, float]:
    """Return the scaled values beyond which noise was clipped; infinite where it was not."""
    ends, least = sample.extremes, sample.extremes.count / 1000
    low, high = ((end - sample.measures.low) / sample.unit for end in (ends.low, ends.high))
    return (
        low + 0.01 if ends.low_count > least else -math.inf,
        high - 0.01 if ends.high_count > least else math.inf,
    )


def _without_constant(patches: np.ndarray) -> np.ndarray:
    """Leave constant patches out, unless half of the neighbors in all others are equal."""
    varied = (patches != patches[:, :1, :1]).any(axis=(1, 2))
    others = patches[varied]
    drawn = not others.size or (others[:, :, 1:] == others[:, :, :-1]).mean() > 0.5
    return patches if drawn else others


def _smallest_variance(flat: np.ndarray) -> float:
    eigenvalues = np.linalg.eigvalsh(flat.T @ flat / len(flat))[1:]
    return max(0.0, float(eigenvalues[: -(-len(eigenvalues) // 12)].mean()))


def texture_of_noise(size: int) -> float:
    """Return what the texture of a patch of noise of variance 1 stays below, almost surely."""
    differences, degrees = size * (size - 2), size**2 - 4
    quantile, spread = NormalDist().inv_cdf(1 - 1e-6), 2 / (9 * degrees)
    return differences * float(1 - spread + quantile * math.sqrt(spread)) ** 3
