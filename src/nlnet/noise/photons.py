"""Photon noise: its gain and read noise, from the flattest blocks of an image.

An image is cut into blocks of 8x8 pixels, each is taken apart by the DCT, and the blocks are sorted
into bins by their brightness. The blocks of a bin whose low frequencies are weakest have hardly any
texture: the power of their high frequencies is that of the noise (M. Ponomarenko et al., "An
automatic approach to lossy compression of AVIRIS images", 2007). Over the brightness, it is a line:
its slope is the gain.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array, FloatArray
from nlnet.noise.levels import Level
from nlnet.noise.record import Photon
from nlnet.noise.sample import Sample, without_constant
from nlnet.parallel import single_threaded_blas

Spectra = npt.NDArray[np.float32]

_SIDE = 8
"""Side of a block."""

_STEP = 3
"""Pixels from a block to the next one."""

_CALM = 0.1
"""Share of a bin's blocks that are taken for flat."""

_LEAST = 40
"""Blocks that a bin must have."""

_BINS = 24
_LEAST_BINS = 4
"""Bins of brightness, and how many of them a line takes."""

_ROUNDS = 20

_NO_GAIN = 0.01
"""Share of the variance that grows over the brightness, where photon noise is asked for but none is
found."""

_FEW = 0.02
"""Share of the blocks that may be brighter, or darker, than where growth is looked for: stars."""

_CLEAR = 0.9
"""Share of the calmest blocks that are not texture, from which on they decide alone."""

_VARIATION = 2.0
"""Times that noise varies with the brightness, at least, to be removed by maps if no line fits."""

_GROWTH = 1.2
"""Times that photon noise grows over the image, at least, both to the eye and in flat blocks; what
grows less is white."""

_DARKEST = 6.0
"""Standard deviations of the read noise that values may lie below black."""

_frequency = np.add.outer(np.arange(_SIDE), np.arange(_SIDE)).ravel()
_LOW = (_frequency >= 1) & (_frequency <= 8)
_MIDDLE = (_frequency >= 6) & (_frequency <= 8)
_HIGH = _frequency >= 9
_HIGHEST = _frequency >= 11

_FLAT = 0.25
"""The spectrum of noise is flat, that of texture falls: a bin counts for half if middle frequencies
have more power than the highest by this share, and for hardly anything if by twice as much."""


def find_photons(
    sample: Sample, line: tuple[float, float] | None = None, *, looks_so: bool = True
) -> Photon | None:
    """Return photon noise, whatever the noise looks like; None if there is nothing to see.

    Given the line that the eye sees, slope and foot of the variance over the brightness on the
    scale of the sample, None as well unless the noise grows both there and in the flat blocks:
    texture that is bright or dark misleads either, but seldom both. If the noise does not look like
    that of photons, hardly any block may be texture.
    """
    if sample.unit == 0 or min(sample.shape[1:]) < _SIDE:
        return None
    if line is not None and _growth(line, (0.0, 255.0)) < _GROWTH:
        return None
    # A pixel without photons was not clipped, so that there is no lower limit.
    _, limit = sample.scaled_limits
    black = (min(sample.extremes.low, 0.0) - sample.low) / sample.unit
    levels, grows = [], line is None
    for channel in range(sample.shape[0]):
        blocks = _cut_blocks([tile[channel] for tile in sample.scaled_tiles], limit)
        level = fit_photons(blocks, black)
        if level is None:
            return None
        if line is not None:
            low, high = (float(end) for end in np.quantile(blocks.means, (_FEW, 1 - _FEW)))
            both = ((level.gain, level.offset), line)
            eye, flat = (_growth(each, (low, high)) for each in both)
            shares = [each.share for each in _bins(blocks)]
            clear = looks_so or sum(shares) > _CLEAR * len(shares)
            grows = grows or (clear and min(eye, flat) > _GROWTH)
        levels.append(_in_image(level, sample))
    return Photon(tuple(levels)) if grows else None


def depends_on_brightness(sample: Sample) -> bool:
    """Tell whether noise depends on the brightness in any way, in blocks that are not texture."""
    _, limit = sample.scaled_limits
    for channel in range(sample.shape[0]):
        blocks = _cut_blocks([tile[channel] for tile in sample.scaled_tiles], limit)
        variances = [each.variance for each in _bins(blocks) if each.calm > _LEAST / 4]
        if variances and max(variances) > _VARIATION**2 * min(variances):
            return True
    return False


def _growth(line: tuple[float, float], ends: tuple[float, float]) -> float:
    """Return how many times stronger noise is at the bright end than at the dark one."""
    dark, bright = (max(line[0] * end + line[1], 1e-6) for end in ends)
    return math.sqrt(bright / dark)


class Blocks(NamedTuple):
    """Blocks of one plane, sorted by their mean: the means (N,), and the power spectra (N, 64)."""

    means: npt.NDArray[np.float32]
    power: Spectra


def _cut_blocks(planes: Sequence[Array], limit: float) -> Blocks:
    """Cut planes, (H, W) tiles of an image, into blocks.

    Those that reach the limit, at which noise was clipped, are left out, and so are constant ones.
    """
    means, power = [np.zeros(0, np.float32)], [np.zeros((0, _SIDE * _SIDE), np.float32)]
    for plane in planes:
        if min(plane.shape) < _SIDE:
            continue
        windows = sliding_window_view(plane, (_SIDE, _SIDE))[::_STEP, ::_STEP]
        squares = np.ascontiguousarray(windows, np.float32).reshape(-1, _SIDE, _SIDE)
        blocks = without_constant(squares).reshape(-1, _SIDE * _SIDE)
        blocks = blocks[blocks.max(axis=1) < limit]
        means.append(blocks.mean(axis=1))
        with single_threaded_blas:
            power.append(np.square(blocks @ _dct()))
    brightness = np.concatenate(means)
    order = np.argsort(brightness, kind="stable")
    return Blocks(brightness[order], np.concatenate(power)[order])


class _Bin(NamedTuple):
    """The calmest blocks of one brightness: their mean value, their noise, how many count."""

    intensity: float
    variance: float
    calm: float
    share: float  # of the calmest blocks


def fit_photons(blocks: Blocks, black: float) -> Level | None:
    """Fit photon noise to one channel; None if it has no block.

    Parameters
    ----------
    blocks : Blocks
        Blocks of the channel.
    black : float
        The value of no light, for images of one brightness.
    """
    bins = list(_bins(blocks))
    if not bins:
        return None
    intensity, variance, calm, _ = np.array(bins, np.float64).T
    variance = np.maximum(variance, 1e-6)
    mean = float(np.average(variance, weights=calm))
    light = float(np.average(intensity, weights=calm)) - black
    if len(bins) < _LEAST_BINS:
        return Level(gain=mean / light, black=black) if light > 0 else None
    gain, offset = _fit_line(intensity, variance, calm)
    if gain > 0:
        return Level(gain, math.sqrt(max(offset, 0.0)), black=max(-offset / gain, 0.0))
    # The noise does not grow: next to none of it is of photons.
    width = max(float(np.ptp(intensity)), light, 1e-6)
    return Level(gain=_NO_GAIN * mean / width, read=math.sqrt(mean))


def _bins(blocks: Blocks) -> Iterator[_Bin]:
    """Yield bins that are equally wide on a scale of square roots.

    On that scale photon noise is equally strong everywhere, so that bright bins, which are of few
    blocks, are not narrower than they need to be.
    """
    if not len(blocks.means):
        return
    roots = np.sqrt(blocks.means - blocks.means[0])
    edges = np.searchsorted(roots, np.linspace(0, roots[-1], _BINS + 1)[1:-1])
    for members in np.split(np.arange(len(roots)), edges):
        if len(members) < _LEAST:
            continue
        power = blocks.power[members]
        count = max(_LEAST // 2, int(_CALM * len(members)))
        chosen = np.argpartition(power[:, _LOW].mean(axis=1), count - 1)[:count]
        spectrum = power[chosen].mean(axis=0, dtype=np.float64)
        middle, high, highest = (spectrum[band].mean() for band in (_MIDDLE, _HIGH, _HIGHEST))
        excess = max(middle / max(highest, 1e-9) - 1, 0.0)
        intensity = float(blocks.means[members[chosen]].mean())
        share = 1 / (1 + (excess / _FLAT) ** 4)
        yield _Bin(intensity, float(high), count * share, share)


def _fit_line(intensity: FloatArray, variance: FloatArray, calm: FloatArray) -> tuple[float, float]:
    """Fit a line by least squares; what lies far above is texture, and counts for little."""
    design = np.stack([intensity, np.ones_like(intensity)], axis=1)
    line = np.zeros(2)
    weights = calm / variance**2
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(design * root[:, np.newaxis], variance * root, rcond=None)[0]
        fitted = np.maximum(design @ line, 1e-6)
        # Blocks overlap, so there is twice the error that independent ones would have.
        error = 2 * fitted * np.sqrt(2 / (int(_HIGH.sum()) * calm))
        away = (variance - fitted) / error
        above, below = 2 / np.maximum(away, 1e-9), 4 / np.maximum(-away, 1e-9)
        weights = calm / fitted**2 * np.minimum(1, above) * np.minimum(1, below)
    return float(line[0]), float(line[1])


def _in_image(level: Level, sample: Sample) -> Level:
    """Return a level that was found on the scale of the sample in the units of the image.

    One line has many names: the more is read noise, the lower is black. It is named with black at
    0, unless values so far below 0, or so little noise there, say that black is elsewhere.
    """
    level = level.scaled(sample.unit)
    offset = level.offset - level.gain * sample.low
    read = math.sqrt(max(offset, 0.0))
    if offset >= 0 and sample.extremes.low >= -_DARKEST * read:
        return Level(level.gain, read)
    return Level(level.gain, black=-offset / level.gain)


@functools.cache
def _dct() -> Spectra:
    """Return the matrix that takes a block's 64 pixels to its DCT coefficients."""
    rows = np.arange(_SIDE)[:, np.newaxis]
    cosines = np.cos(np.pi * (np.arange(_SIDE) + 0.5) * rows / _SIDE) * math.sqrt(2 / _SIDE)
    cosines[0] /= math.sqrt(2)
    return np.kron(cosines, cosines).T.astype(np.float32)
