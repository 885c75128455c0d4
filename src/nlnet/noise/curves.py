"""Noise over brightness: a line for photon noise, a curve where a line does not fit."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.noise.blocks import HIGH, Blocks
from nlnet.noise.record import Level

_BINS = 24
_LEAST_BINS = 4
_ROUNDS = 20

_GROWTH = 2.2
"""Times that the variance must grow over the brightness of the image."""

_GAIN_IN_FIT = 0.12
"""How much better a line must fit than a constant, in the logarithm of the variance."""

_GOOD_FIT = 0.35
"""How far off a line may be, in the logarithm of the variance."""

_DEGREES = int(HIGH.sum())


class _Fit(NamedTuple):
    line: FloatArray
    variances: FloatArray
    error: float


def fit_level(blocks: Blocks, *, insist: bool) -> Level | None:
    """Fit the noise of one channel over its brightness.

    Parameters
    ----------
    blocks : Blocks
        Blocks of the channel.
    insist : bool
        Take photon noise for granted, and return the line that fits best.

    Returns
    -------
    Level or None
        None where the noise does not clearly depend on the brightness.
    """
    bins = [blocks.untextured(members)[0] for members in blocks.bins_of_equal_width(_BINS)]
    if len(bins) < _LEAST_BINS:
        return None
    intensity = np.array([each.intensity for each in bins])
    variance = np.maximum([each.variance for each in bins], 1e-6)
    calm = np.array([each.calm for each in bins], np.float64)
    line = _fit(np.stack([intensity, np.ones_like(intensity)], axis=1), variance, calm)
    gain, offset = map(float, line.line)
    if gain <= 0:
        return None
    if not insist:
        constant = _fit(np.ones((len(intensity), 1)), variance, calm)
        grows = line.variances.max() > _GROWTH * line.variances.min()
        better = constant.error - line.error > _GAIN_IN_FIT
        if not (grows and better and line.error < _GOOD_FIT):
            return None
    black = max(-offset / gain, 0.0)
    return Level(gain=gain, read=math.sqrt(max(offset, 0.0)), black=black)


def _fit(design: FloatArray, variance: FloatArray, calm: FloatArray) -> _Fit:
    """Fit by least squares; what lies far above is texture, and counts for little."""
    weights = calm / variance**2
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, np.newaxis], variance * root, rcond=None)[0]
        fitted = np.maximum(design @ line, 1e-6)
        # Blocks overlap, so there is twice the error that independent ones would have.
        error = 2 * fitted * np.sqrt(2 / (_DEGREES * calm))
        away = (variance - fitted) / error
        trust = np.minimum(1, 2 / np.maximum(away, 1e-9)) * np.minimum(
            1, 4 / np.maximum(-away, 1e-9)
        )
        weights = calm / fitted**2 * np.where(away > 0, np.minimum(trust, 1), trust)
    distance = np.log(variance / fitted)
    return _Fit(line, fitted, math.sqrt(float(np.average(distance**2, weights=calm))))
