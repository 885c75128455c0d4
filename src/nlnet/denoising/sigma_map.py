"""White noise whose strength varies over the image, given by a map of its sigma.

A network removes noise of one strength. So the image is denoised at several strengths, evenly
spaced in log sigma, each only where the map comes near it; and every pixel is blended from the two
results around its own sigma.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, WriteRows
from nlnet.denoising.network import Network
from nlnet.errors import InputError
from nlnet.masks import Mask, fill
from nlnet.network.config import NetworkConfig
from nlnet.noise.record import White
from nlnet.progress import Report, part

Region = tuple[slice, slice]
"""Rows and columns of an image."""

_RATIO = 1.2
"""Levels are at most this factor apart. With 1.2, a ramp from 5 to 50 loses 0.02 dB; with 1.3 it
loses 0.05 dB, and 1.1 gains 0.01 dB in twice the time."""

_LEAN = 0.5
"""How much more than its linear share the upper level has: noise that is left costs more than
detail that is lost."""

_SNAP = 1e-4
"""Places nearer than this to a level are on it: rounding asks for no second level."""

_BAND = 256
"""Rows that are handed out at a time."""


def is_map(sigma: object) -> bool:
    """Tell a map, or what is meant to be one, from a number.

    Examples
    --------
    >>> is_map(25.0), is_map(np.float32(25)), is_map([[20, 25], [20, 25]])
    (False, False, True)
    """
    if hasattr(sigma, "shape"):
        return len(sigma.shape) > 0
    return isinstance(sigma, Sequence) and not isinstance(sigma, str)


@dataclasses.dataclass(frozen=True, eq=False)
class SigmaMap:
    """The standard deviation of every pixel's noise.

    Parameters
    ----------
    values : (H, W) array
        In the units of the image, above 0; float32 or float64.
    low, high : float
        The least and the largest one; of the whole image, if the values are those of a part.
    """

    values: Array
    low: float
    high: float

    @property
    def levels(self) -> tuple[float, ...]:
        """The strengths at which the image is denoised."""
        # A map of one value has one level, and the result is that of a number, to the bit.
        count = math.ceil(round(math.log(self.high / self.low) / math.log(_RATIO), 6))
        return tuple(np.geomspace(self.low, self.high, count + 1).tolist())

    def shares(self) -> npt.NDArray[np.float32]:
        """Return where each pixel is among the levels, (H, W): the level below, and a share of 1.

        Examples
        --------
        >>> SigmaMap(np.array([[10.0, 11.0, 12.0]]), 10.0, 12.0).shares().round(2)
        array([[0.  , 0.65, 1.  ]], dtype=float32)
        """
        width = math.log(self.high / self.low) / max(len(self.levels) - 1, 1) or 1.0
        shares = np.empty(self.values.shape, np.float32)
        for first in range(0, len(shares), _BAND):
            rows = slice(first, first + _BAND)
            places = np.log(np.clip(self.values[rows], self.low, self.high) / self.low) / width
            whole = np.rint(places)
            places = np.where(np.abs(places - whole) < _SNAP, whole, places)
            share = places - np.floor(places)
            shares[rows] = places + _LEAN * share * (1 - share)
        return shares

    @classmethod
    def between(cls, values: Array, low: float, high: float, magnitude: float) -> "SigmaMap":
        """Return a map for an image of such values; float32 must tell their noise from none."""
        least = magnitude * float(np.finfo(np.float32).eps)
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float32)
        return cls(values, max(low, least), max(high, least))


def read_map(
    sigma: npt.ArrayLike, shape: tuple[int, ...], hidden: Mask | None, magnitude: float
) -> SigmaMap:
    """Return the map that a user gives for an image.

    Parameters
    ----------
    sigma
        As for `nlnet.denoise`.
    shape : (H, W)
        That of the image.
    hidden : (H, W) array of bool or None
        The pixels that are left out; there the map may be NaN.
    magnitude : float
        The largest value of the image.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    values = np.asarray(sigma)
    check_map_dtype(values.dtype)
    if values.shape != shape:
        raise InputError(
            f"sigma has shape {values.shape}, but must be a number, or a map of the image's height "
            f"and width, {shape}."
        )
    if hidden is not None:
        values = fill(values[np.newaxis], hidden)[0]
    if not values.size:
        raise InputError(f"The image has shape {shape}, which is empty.")
    low, high = float(values.min()), float(values.max())
    check_extremes(low, high, math.inf)
    return SigmaMap.between(values, low, high, magnitude)


def check_map_dtype(dtype: np.dtype[Any]) -> None:
    """Raise InputError unless it is one of real numbers."""
    if dtype.kind not in "iuf":
        raise InputError(f"The dtype of the sigma map is {dtype}, but must be one of real numbers.")


def check_extremes(low: float, high: float, most: float) -> None:
    """Raise InputError unless a map with these extremes can be the noise of an image."""
    # Written so that NaN does not pass.
    if not (low > 0 and high <= most and high < math.inf):
        bound = "finite" if math.isinf(most) else f"at most the data range, {most:g}"
        raise InputError(
            f"The sigma map has values from {low:g} to {high:g}, but they must be above 0 and "
            f"{bound}; a mask leaves pixels as they are."
        )


def remove_varying(
    planes: Array, write: WriteRows, sigma_map: SigmaMap, network: Network, report: Report
) -> tuple[str, ...]:
    """Denoise (C, H, W) planes whose noise varies, and write the rows of the result.

    Returns the names of the models that ran.

    Parameters
    ----------
    planes : (C, H, W) array
        The noisy image, of any dtype.
    write : callable
        ``write(first, rows)`` takes rows of the result.
    sigma_map : SigmaMap
        The noise of every pixel.
    network : Network
        Removes noise of one strength.
    report : callable
        Called with the share of the work done.
    """
    _, height, width = planes.shape
    levels = sigma_map.levels
    if len(levels) == 1:
        return network.remove(planes, White(levels[0]), write, report)
    network = network.beside(
        memory_of(planes.shape), "the sums over several strengths", planes.shape
    )
    models = [network.model_for(sigma) for sigma in levels]
    shares = sigma_map.shares()
    work = [
        (number, region, _widened(region, config, (height, width)))
        for number, config in enumerate(model.config for model in models)
        for region in _regions(np.abs(shares - number) < 1, 2 * config.reach)
    ]
    total = sum(_area(wide) for _, _, wide in work)
    blended = np.zeros(planes.shape, np.float32)
    done = 0.0
    for number, region, wide in work:
        cut = planes[:, wide[0], wide[1]]
        share = _area(wide) / total
        network.remove(
            cut,
            White(levels[number]),
            _adder(blended, shares, number, region, wide),
            part(report, done, share),
        )
        done += share
    for first in range(0, height, _BAND):
        write(first, blended[:, first : first + _BAND])
    return tuple(dict.fromkeys(models[number].name for number, *_ in work))


def memory_of(shape: tuple[int, ...]) -> int:
    """Return how many bytes the blended image and the shares take, at most."""
    channels, height, width = shape
    return 4 * (channels + 3) * height * width  # with what tells where a level is wanted


def _regions(wanted: Mask, gap: int) -> Iterator[Region]:
    """Yield rectangles that hold all wanted pixels; pixels further apart than a gap are split."""
    for rows in _runs(np.any(wanted, axis=1), gap):
        for columns in _runs(np.any(wanted[rows], axis=0), gap):
            yield rows, columns


def _runs(wanted: Mask, gap: int) -> Iterator[slice]:
    places = np.flatnonzero(wanted)
    for run in np.split(places, np.flatnonzero(np.diff(places) > gap) + 1):
        if run.size:
            yield slice(int(run[0]), int(run[-1]) + 1)


def _widened(region: Region, config: NetworkConfig, shape: tuple[int, int]) -> Region:
    """Return the region with all that the network sees from it, without cutting its units."""

    def wide(side: slice, length: int) -> slice:
        first = max(0, side.start - config.reach)
        return slice(first - first % config.unit, min(length, side.stop + config.reach))

    rows, columns = (wide(side, length) for side, length in zip(region, shape, strict=True))
    return rows, columns


def _area(region: Region) -> int:
    rows, columns = region
    return int((rows.stop - rows.start) * (columns.stop - columns.start))


def _adder(
    blended: npt.NDArray[np.float32],
    shares: npt.NDArray[np.float32],
    number: int,
    region: Region,
    wide: Region,
) -> WriteRows:
    """Return what adds the rows of a level, weighted, to the blended image: those of its region."""
    columns = region[1]
    inside = slice(columns.start - wide[1].start, columns.stop - wide[1].start)

    def write(first: int, rows: Array) -> None:
        start = wide[0].start + first
        low, high = max(start, region[0].start), min(start + rows.shape[1], region[0].stop)
        if low >= high:
            return
        weights = np.maximum(1 - np.abs(shares[low:high, columns] - number), 0)
        blended[:, low:high, columns] += weights * rows[:, low - start : high - start, inside]

    return write
