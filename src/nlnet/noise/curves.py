"""Noise over brightness: a line for photon noise, a curve where a line does not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.noise.blocks import HIGH, Bin, Blocks
from nlnet.noise.record import Level

_BINS = 24
_LEAST_BINS = 4
_LEAST_SHARE = 0.15
"""Bins without texture that a decision takes, and their share of all blocks."""

_ROUNDS = 20

_TEXTURE = 2.2
"""Times that low frequencies are stronger than high ones where there is texture in flat blocks."""

_GROWTH = 2.2
"""Times that the variance must grow over the brightness of the image."""

_GAIN_IN_FIT = 0.12
"""How much better a line must fit than a constant, in the logarithm of the variance."""

_GOOD_FIT = 0.35
"""How far off a line may be, in the logarithm of the variance."""

_CURVE_BINS = 8
_CURVE_NEEDED = 0.3
_CURVE_ERROR = 0.12
"""A curve takes so many bins, a constant that is so far off, and bins that lie so near to it, in
the logarithm of the variance."""

_DEGREES = int(HIGH.sum())


class _Table(NamedTuple):
    """Bins in columns: brightness, variance of the noise, and how many blocks say so."""

    intensity: FloatArray
    variance: FloatArray
    calm: FloatArray


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
    measured = [blocks.untextured(members) for members in blocks.bins_of_equal_width(_BINS)]
    if not insist:
        # Whether it is noise that grows is asked where there is no doubt that it is noise.
        flat = _table([each for each, spectrum in measured if spectrum < _TEXTURE])
        blocks_in_all = sum(each.calm for each, _ in measured)
        if len(flat.intensity) < _LEAST_BINS or flat.calm.sum() < _LEAST_SHARE * blocks_in_all:
            return None
        line, constant = _fit_line(flat), _fit(np.ones((len(flat.intensity), 1)), flat)
        grows = line.variances.max() > _GROWTH * line.variances.min()
        better = constant.error - line.error > _GAIN_IN_FIT
        if not (line.line[0] > 0 and grows and better and line.error < _GOOD_FIT):
            return _fit_curve(flat, constant.error)
    table = _table([each for each, _ in measured])
    if len(table.intensity) < _LEAST_BINS:
        return None
    gain, offset = map(float, _fit_line(table).line)
    if gain <= 0:
        return None
    black = max(-offset / gain, 0.0)
    return Level(gain=gain, read=math.sqrt(max(offset, 0.0)), black=black)


def _table(bins: Sequence[Bin]) -> _Table:
    return _Table(
        np.array([each.intensity for each in bins]),
        np.maximum([each.variance for each in bins], 1e-6),
        np.array([each.calm for each in bins], np.float64),
    )


def _fit_line(table: _Table) -> _Fit:
    return _fit(np.stack([table.intensity, np.ones_like(table.intensity)], axis=1), table)


def _fit_curve(table: _Table, constant_error: float) -> Level | None:
    """Return a smooth curve through the bins, if the noise clearly follows one."""
    intensity, variance, calm = table
    if len(intensity) < _CURVE_BINS or constant_error < _CURVE_NEEDED:
        return None
    # Means over neighboring bins, by how many blocks each has.
    logs = np.log(variance)
    weights = np.convolve(calm, np.ones(3), "same")
    smooth = np.convolve(calm * logs, np.ones(3), "same") / weights
    error = math.sqrt(float(np.average((logs - smooth) ** 2, weights=calm)))
    if error > _CURVE_ERROR or np.ptp(smooth) < math.log(_GROWTH):
        return None
    sigmas = np.exp(smooth / 2)
    return Level(nodes=tuple(zip(intensity.tolist(), sigmas.tolist(), strict=True)))


def _fit(design: FloatArray, table: _Table) -> _Fit:
    """Fit by least squares; what lies far above is texture, and counts for little."""
    _, variance, calm = table
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
