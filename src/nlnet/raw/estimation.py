"""How strong the noise of a sensor is, its gain and its read noise, from the mosaic of one shot.

After N. Ponomarenko and others, as M. Colom and A. Buades describe it ("Analysis and Extension of
the Ponomarenko et al. Method", Image Processing On Line 3, 2013): of blocks of similar brightness,
those whose low frequencies are the weakest show nothing but noise, and their high frequencies,
which white noise leaves independent of the low ones, tell how strong it is. Over brightness that is
a straight line.

Departures: blocks are of green pixels alone, along the diagonals on which they are neighbors, for
texture spoils them least there. The line runs along the lower edge of what was measured, because
texture can only add to noise; that makes it somewhat low, so then all blocks whose low frequencies
this noise explains are taken, and the line is fitted again. The engine's estimate, which serves any
image (``engine/src/estimates/photons.h``), takes the line through the middle: on mosaics of BSD68
with little noise it finds up to three times as much as there is, and 0.1 to 3 dB are lost.
"""

import math

import numpy as np
import numpy.typing as npt

from nlnet.arrays import FloatArray
from nlnet.errors import InputError
from nlnet.network.parameters import dct_basis
from nlnet.raw.demosaicing import GREEN, Pattern

_SIDE = 6
_HIGH = 7
"""Sum of the indices from which on a coefficient of the block's DCT is of high frequency."""

_MOST_BLOCKS = 200_000
"""More are not looked at: larger mosaics are sampled on a grid, so that they take no longer."""

_LEAST_BLOCKS = 1000
_GROUPS = 32
_FLATTEST = 0.01
"""Share of the blocks of a group in which the noise is measured."""

_LEAST_FLATTEST = 30
_SATURATED = 0.95
"""Blocks that come so near to white are left out: their noise is clipped."""

_BRIGHTEST = 0.999
"""Share of the pixels that are not above white, whatever the file says; the others may be hot."""

_CLIPPED_SHARE = 0.02
"""A group with more pixels than this at the lowest value of all is left out: it was clipped."""

_LOWER_EDGE = 0.15
"""Share of the groups below the line."""

_ROUNDS = 60
_EXPLAINED = 0.8
"""Blocks are taken if their low frequencies have less than this of the energy that noise has on
average; so does a fifth of the blocks without any texture."""

_REFINEMENTS = 4
_LEAST_EXPLAINED = 100

Floats = npt.NDArray[np.float64]


def estimate_mosaic_noise(
    mosaic: FloatArray, pattern: Pattern | None, white: float
) -> tuple[float, float]:
    """Estimate gain and read noise: the variance is ``gain * x + read**2``.

    Parameters
    ----------
    mosaic : array
        (H, W), black being 0.
    pattern : ((int, int), (int, int)) or None
        As for `nlnet.raw.mosaic.denoise_mosaic`.
    white : float
        The value at which the sensor saturates.

    Returns
    -------
    gain, read : float
        In the units of the mosaic; the gain is 0 if the noise does not grow with the light.

    Raises
    ------
    InputError
        If the mosaic is too small.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light = np.tile(np.linspace(20, 2000, 512), (512, 1))
    >>> shot = 2 * rng.poisson(light / 2) + rng.normal(0, 9, light.shape)
    >>> gain, read = estimate_mosaic_noise(shot, ((0, 1), (1, 2)), white=4000)
    >>> 1.8 < gain < 2.1, 6 < read < 12
    (True, True)
    """
    blocks = _sample(mosaic, pattern)
    # Some sensors saturate below what their files say.
    white = min(white, float(np.quantile(blocks[:, 0], _BRIGHTEST)))
    dark = blocks.max(axis=1) < _SATURATED * white
    if np.count_nonzero(dark) >= _LEAST_BLOCKS:
        blocks = blocks[dark]
    means = blocks.mean(axis=1, dtype=np.float64)
    groups = np.array_split(np.argsort(means, kind="stable"), min(_GROUPS, len(blocks)))
    lowest = blocks == blocks.min()
    unclipped = [group for group in groups if lowest[group].mean() <= _CLIPPED_SHARE] or groups
    low, high = _energies(blocks)
    measured = [_measure(means[group], low[group], high[group]) for group in unclipped]
    line = _lower_line(*np.transpose(measured))
    every = np.concatenate(unclipped)
    gain, offset = _refine(line, means[every], low[every], high[every].mean(axis=1))
    return gain, math.sqrt(offset)


def _sample(mosaic: FloatArray, pattern: Pattern | None) -> npt.NDArray[np.float32]:
    """Return blocks of neighbors of one color, (N, side * side)."""
    height, width = mosaic.shape
    down, right = np.divmod(np.arange(_SIDE**2), _SIDE)
    if pattern is not None:
        down, right = down - right, down + right  # along the diagonals
    top, bottom = -int(down.min()), height - int(down.max())
    last = width - int(right.max()) - 1  # one more, to step onto the next green pixel
    if bottom <= top or last <= 0:
        raise InputError(
            f"The mosaic has {width}x{height} pixels, but estimating its noise takes at least "
            f"{2 * _SIDE}x{2 * _SIDE}."
        )
    step = max(1, math.ceil(math.sqrt((bottom - top) * last / _MOST_BLOCKS)))
    rows, columns = np.mgrid[top:bottom:step, 0:last:step].reshape(2, -1)
    if pattern is not None:
        parity = 0 if pattern[0][0] == GREEN else 1
        columns = columns + (rows + columns + parity) % 2
    places = (rows * width + columns)[:, np.newaxis] + down * width + right
    return np.asarray(mosaic.reshape(-1)[places], np.float32)


def _energies(blocks: npt.NDArray[np.float32]) -> tuple[Floats, Floats]:
    """Return the mean energy of low frequencies, (N,), and the energies of high ones, (N, n)."""
    order = np.add.outer(np.arange(_SIDE), np.arange(_SIDE)).ravel()[1:]
    # Not `@`: on busy cores the threads of BLAS wait for each other longer than they work.
    squares = np.einsum("nk,ck->nc", blocks, dct_basis(_SIDE).astype(np.float32)) ** 2
    low = squares[:, order < _HIGH].mean(axis=1, dtype=np.float64)
    return low, squares[:, order >= _HIGH].astype(np.float64)


def _measure(means: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return mean and variance of the noise in the flattest blocks."""
    count = max(_LEAST_FLATTEST, int(_FLATTEST * len(low)))
    flattest = np.argsort(low, kind="stable")[:count]
    # The median: texture that is left is in few of the frequencies.
    return float(means[flattest].mean()), float(np.median(high[flattest].mean(axis=0)))


def _refine(
    line: tuple[float, float], means: Floats, low: Floats, high: Floats
) -> tuple[float, float]:
    """Fit the line to all blocks whose low frequencies it explains as noise."""
    smallest = max(float(high.max()) * 1e-9, 1e-30)
    for _ in range(_REFINEMENTS):
        slope, offset = line
        expected = np.maximum(slope * means + offset, smallest)
        taken = low <= _EXPLAINED * expected
        if np.count_nonzero(taken) < _LEAST_EXPLAINED:
            break
        line = _line(means[taken], high[taken], 1 / expected[taken] ** 2)
    return line


def _lower_line(means: Floats, noise: Floats) -> tuple[float, float]:
    """Fit slope and offset, none of them negative, such that few points lie below the line.

    A regression of a quantile, of errors relative to the line, by squares weighted again and again.
    """
    smallest = max(float(noise.max()) * 1e-9, 1e-30)
    weights = 1 / np.maximum(noise, smallest) ** 2
    slope, offset = 0.0, 0.0
    for _ in range(_ROUNDS):
        slope, offset = _line(means, noise, weights)
        expected = np.maximum(slope * means + offset, smallest)
        error = noise / expected - 1
        side = np.where(error > 0, _LOWER_EDGE, 1 - _LOWER_EDGE)
        weights = side / np.maximum(np.abs(error), 0.005) / expected**2
    return slope, offset


def _line(means: Floats, noise: Floats, weights: Floats) -> tuple[float, float]:
    """Return slope and offset of the weighted line of least squares, none of them negative."""
    total = weights.sum()
    x, y = (weights * means).sum() / total, (weights * noise).sum() / total
    variance = (weights * (means - x) ** 2).sum()
    slope = (weights * (means - x) * (noise - y)).sum() / variance if variance > 0 else 0.0
    if slope <= 0:
        return 0.0, float(y)
    if y - slope * x < 0:
        slope = (weights * means * noise).sum() / (weights * means**2).sum()
        return max(float(slope), 0.0), 0.0
    return float(slope), float(y - slope * x)
