"""The spectra of an image's flattest blocks: what is left there is noise.

An image is cut into blocks of 8x8 pixels, each is taken apart by the DCT, and the blocks are sorted
into bins by their brightness. In the calmest blocks of a bin there is hardly anything but noise:
their power in a band of frequencies, corrected for having chosen the calmest, is the noise's.

Two ways to choose: by the power of low frequencies, where texture is, to measure the high ones
(M. Ponomarenko et al., "An automatic approach to lossy compression of AVIRIS images", 2007); that
is without bias, but blind for noise without high frequencies. Or by the power that is measured,
with the bias of the choice taken out; that works for noise of any spectrum.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array
from nlnet.parallel import single_threaded_blas

Spectra = npt.NDArray[np.float32]

SIDE = 8
"""Side of a block."""

_STEP = 3
"""Pixels from a block to the next one."""

_TILE = 192
_MAX_PIXELS = 400_000
"""Of larger images, so many pixels are looked at, in square tiles on a grid."""

_CALM = 0.1
"""Share of a bin's blocks that are taken for flat."""

_LEAST = 40
"""Blocks that a bin must have."""

_SPREAD_QUANTILES = (0.05, 0.3)

_NOISE_IN_TEXTURE = 3.0
"""Times that the power of noise in texture may be that of noise in flat blocks."""

_LEAST_DETAIL = 0.05
"""Share of the high frequencies in texture that is detail, however strong the noise seems to be:
in an image that is all texture, the flattest blocks have as much of them as others."""

_frequency = np.add.outer(np.arange(SIDE), np.arange(SIDE)).ravel()
LOW = (_frequency >= 1) & (_frequency <= 5)
HIGH = _frequency >= 9
_LOWEST = (_frequency >= 1) & (_frequency <= 3)
_MEDIUM = (_frequency >= 4) & (_frequency <= 7)
BAND = _frequency >= 2
"""All but the mean and the slopes, which flat areas have from shading."""


@dataclasses.dataclass(frozen=True)
class Bin:
    """The calmest blocks of one brightness.

    Parameters
    ----------
    intensity : float
        Their mean value.
    variance : float
        Their noise.
    calm : int
        How many they are.
    spread : float
        How far the powers of calm and less calm blocks are apart, as a logarithm: blocks of noise
        are much alike, blocks of texture are not.
    degrees : float
        Degrees of freedom of a calm block: as many as it has frequencies if all are equally strong.
    """

    intensity: float
    variance: float
    calm: int
    spread: float = 0.0
    degrees: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of one plane, sorted by their mean: the means (N,), and the power spectra (N, 64)."""

    means: npt.NDArray[np.float32]
    power: Spectra

    def bins_of_equal_count(self, bins: int) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the blocks of each bin."""
        for members in np.array_split(np.arange(len(self.means)), bins):
            if len(members) >= _LEAST:
                yield members

    def bins_of_equal_width(self, bins: int) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the blocks of each bin, equally wide on a scale of square roots.

        On that scale photon noise is equally strong everywhere, so that bright bins, which are of
        few blocks, are not narrower than they need to be.
        """
        if not len(self.means):
            return
        roots = np.sqrt(self.means - self.means[0])
        edges = np.searchsorted(roots, np.linspace(0, roots[-1], bins + 1)[1:-1])
        for members in np.split(np.arange(len(roots)), edges):
            if len(members) >= _LEAST:
                yield members

    def calmest(self, members: npt.NDArray[np.intp]) -> Bin:
        """Measure the noise in the whole band, in the blocks where it is weakest."""
        power = self.power[members][:, BAND]
        total = power.mean(axis=1)
        count = _calm_count(len(members))
        chosen = np.argpartition(total, count - 1)[:count]
        spectrum = power[chosen].mean(axis=0, dtype=np.float64)
        variance, degrees = float(spectrum.mean()), 1.0
        if variance > 0:
            degrees = float(spectrum.sum() ** 2 / (spectrum**2).sum())
            variance /= _calm_share(round(degrees), count / len(members))
        few, many = np.maximum(np.quantile(total, _SPREAD_QUANTILES), 1e-6)
        spread = 0.5 * math.log(many / few)
        return Bin(float(self.means[members].mean()), variance, count, spread, degrees)

    def untextured(self, members: npt.NDArray[np.intp]) -> tuple[Bin, float]:
        """Measure the noise in the high frequencies, where the low ones are weakest.

        Returns it, and how many times stronger the low frequencies are there.
        """
        power = self.power[members]
        count = _calm_count(len(members))
        low = power[:, LOW].mean(axis=1)
        chosen = np.argpartition(low, count - 1)[:count]
        high = float(power[chosen][:, HIGH].mean(dtype=np.float64))
        intensity = float(self.means[members[chosen]].mean())
        return Bin(intensity, high, count), float(low[chosen].mean()) / (high or 1e-9)

    def dependence(self, members: npt.NDArray[np.intp]) -> float:
        """Return how much stronger medium frequencies are where low ones are stronger.

        The logarithm of their power in the second fifth of the blocks, ordered by the power of the
        lowest frequencies, over that in the first tenth: 0 for noise, whose frequencies are
        independent of each other.
        """
        power = self.power[members]
        order = np.argsort(power[:, _LOWEST].mean(axis=1))
        medium = power[:, _MEDIUM].mean(axis=1)[order]
        count = len(members)
        weak = medium[: _calm_count(count)].mean(dtype=np.float64)
        strong = medium[count // 5 : 2 * count // 5].mean(dtype=np.float64)
        return math.log(max(strong, 1e-6) / max(weak, 1e-6))

    def sharpness(self) -> float:
        """Return the power of high frequencies relative to low ones where there is most texture.

        What flat blocks have of high frequencies is noise, and not counted; noise may be stronger
        in texture, which is brighter or darker.
        """
        low = self.power[:, LOW].mean(axis=1)
        high = self.power[:, HIGH].mean(axis=1)
        few, many = max(1, len(low) // 10), max(1, len(low) // 5)
        order = np.argpartition(low, (few - 1, len(low) - many))
        flat, textured = order[:few], order[-many:]
        noise = _NOISE_IN_TEXTURE * float(np.median(high[flat]))
        strength = float(np.median(high[textured]))
        detail = max(strength - noise, _LEAST_DETAIL * strength)
        return detail / max(float(np.median(low[textured])), 1e-9)


def sample_tiles(planes: Array) -> list[Array]:
    """Return the whole of a small image, (C, H, W), or square tiles of a large one."""
    _, height, width = planes.shape
    if height * width <= _MAX_PIXELS:
        return [planes]
    tiles = _MAX_PIXELS / _TILE**2
    # As many rows and columns of tiles as the image's shape asks for.
    rows = max(1, min(round(math.sqrt(tiles * height / width)), height // _TILE or 1))
    columns = max(1, min(int(tiles / rows), width // _TILE or 1))
    return [
        planes[:, top : top + _TILE, left : left + _TILE]
        for top in np.linspace(0, max(height - _TILE, 0), rows).astype(int)
        for left in np.linspace(0, max(width - _TILE, 0), columns).astype(int)
    ]


def cut_blocks(planes: Sequence[Array], low: float, high: float) -> Blocks:
    """Cut planes, the tiles of an image, into blocks; those with values outside are left out.

    Parameters
    ----------
    planes : sequence of (H, W) arrays
        Float32, of the same scale.
    low, high : float
        Blocks that reach one of these values are left out: there noise was clipped.
    """
    means, power = [], []
    for plane in planes:
        if min(plane.shape) < SIDE:
            continue
        windows = sliding_window_view(plane, (SIDE, SIDE))[::_STEP, ::_STEP]
        blocks = np.ascontiguousarray(windows, np.float32).reshape(-1, SIDE * SIDE)
        inside = (blocks.min(axis=1) > low) & (blocks.max(axis=1) < high)
        blocks = blocks[inside]
        means.append(blocks.mean(axis=1))
        with single_threaded_blas:
            power.append(np.square(blocks @ _dct()))
    if not means:
        return Blocks(np.zeros(0, np.float32), np.zeros((0, SIDE * SIDE), np.float32))
    order = np.argsort(np.concatenate(means), kind="stable")
    return Blocks(np.concatenate(means)[order], np.concatenate(power)[order])


def halve(planes: Array) -> Array:
    """Return (..., H, W) planes at half the size: means of 2x2 pixels.

    Examples
    --------
    >>> halve(np.array([[1.0, 3.0], [5.0, 7.0]])).tolist()
    [[4.0]]
    """
    height, width = (size - size % 2 for size in planes.shape[-2:])
    even = planes[..., :height, :width]
    rows = even[..., ::2, :] + even[..., 1::2, :]
    return np.asarray((rows[..., ::2] + rows[..., 1::2]) / 4)


@functools.cache
def _dct() -> Spectra:
    """Return the matrix that takes a block's 64 pixels to its DCT coefficients."""
    rows = np.arange(SIDE)[:, np.newaxis]
    cosines = np.cos(np.pi * (np.arange(SIDE) + 0.5) * rows / SIDE) * math.sqrt(2 / SIDE)
    cosines[0] /= math.sqrt(2)
    return np.kron(cosines, cosines).T.astype(np.float32)


def _calm_count(count: int) -> int:
    return min(count, max(_LEAST // 2, int(_CALM * count)))


@functools.cache
def _calm_share(degrees: int, share: float) -> float:
    """Return the mean of the lowest share of chi-squared values, whose mean is 1.

    The quantiles are by the formula of Wilson and Hilferty.
    """
    spread = 2 / (9 * max(degrees, 1))
    quantiles = (NormalDist().inv_cdf((i + 0.5) / 16 * share) for i in range(16))
    return float(np.mean([max(1 - spread + z * math.sqrt(spread), 0.1) ** 3 for z in quantiles]))
