"""What the noise of an image is, found from the image alone.

Three questions, in this order. Is it correlated between neighbors? Then the flattest blocks of the
image have far more power in low frequencies than in high ones, and its strength is measured at
several scales (`nlnet.noise.correlation`). If not: does it depend on the brightness? Then the power
of high frequencies in flat blocks follows a line, or a curve, over the brightness. If not, it is
white, and the smallest eigenvalues of patches tell its strength most exactly (`nlnet.noise.white`).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.inputs import check_channel_axis, check_dtype, check_finite, find_data_range
from nlnet.masks import fill_hidden
from nlnet.noise.blocks import SIDE, cut_blocks, sample_tiles
from nlnet.noise.correlation import Flatness, measure_flatness
from nlnet.noise.curves import fit_level
from nlnet.noise.record import Kind, Level, Noise
from nlnet.noise.white import Extremes, estimate_planes, find_extremes, patch_size_and_step

_DARKEST = 6.0
"""Standard deviations of the read noise that values may lie below black."""

_CLIPPED_SHARE = 1e-3
"""A value that so many pixels share, and none goes beyond, is one where values were clipped."""


def estimate_noise(
    image: npt.ArrayLike,
    *,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
) -> Noise:
    """Find out what the noise of an image is.

    Parameters
    ----------
    image : array
        As for :func:`nlnet.denoise`; at least 8 pixels high and wide.
    kind : {"white", "poisson", "camera"}, optional
        Insist on this kind, and find only how strong it is.
    mask : array of bool, optional
        True for pixels to leave out, as for :func:`nlnet.denoise`; masked arrays bring their own,
        and NaN is left out, too.
    data_range : float, optional
        The value of white, as for :func:`nlnet.denoise`.
    channel_axis : int, optional
        The axis of a 3-D image that holds its channels; the last by default.

    Returns
    -------
    Noise
        A record that prints as a sentence; :func:`nlnet.denoise` takes it as `noise`. Of large
        images a sample is looked at.

    Raises
    ------
    InputError
        If the image cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import nlnet
    >>> ramp = np.tile(np.linspace(20.0, 200.0, 256), (256, 1))
    >>> photons = np.random.default_rng(0).poisson(ramp / 4) * 4
    >>> noise = nlnet.estimate_noise(photons.astype(np.uint16), data_range=255)
    >>> noise.kind, abs(noise.levels[0].gain - 4) < 0.5
    ('poisson', True)
    """
    from nlnet.noise.deciding import decide_noise

    pixels = np.asarray(image)
    check_dtype(pixels)
    axis = check_channel_axis(pixels, channel_axis)
    planes, _ = fill_hidden(image, mask, axis)
    check_finite(planes)
    span = find_data_range(planes, data_range)
    return decide_noise(planes, span, None, kind)


def find_noise(planes: Array, kind: str | None) -> Noise:
    """Estimate the noise of (C, H, W) planes, of finite values, in their own units."""
    if kind == "white":
        return _white(planes)
    patch_size_and_step(planes.shape)  # an image that is too small is refused
    if kind == "camera":
        return find_camera_noise(planes) or _white(planes)
    sample = _Sample(planes)
    if kind == "poisson":
        return _dependent(sample, insist=True) or _white(planes)
    flatness = sample.flatness()
    white = _white(planes, sample.extremes)
    if flatness is not None and flatness.is_correlated((white.sigma or 0.0) / sample.unit):
        return _camera(sample, flatness, flatness.removable)
    return _dependent(sample, insist=False) or white


def find_camera_noise(planes: Array) -> Noise | None:
    """Estimate the noise as correlated; None if the image is too small or too even to tell."""
    if min(planes.shape[1:]) < SIDE:
        return None
    sample = _Sample(planes)
    flatness = sample.flatness()
    return None if flatness is None else _camera(sample, flatness, flatness.levels[0])


class _Sample:
    """Tiles of an image in float32, from 0 to 255 between its extremes."""

    def __init__(self, planes: Array) -> None:
        extremes = self.extremes = find_extremes(planes)
        self.low = extremes.low
        self.unit = (extremes.high - extremes.low) / 255
        self.constant = self.unit == 0 or min(planes.shape[1:]) < SIDE
        clipped = (
            extremes.low_count > _CLIPPED_SHARE * extremes.count,
            extremes.high_count > _CLIPPED_SHARE * extremes.count,
        )
        # Values next to those at which noise was clipped are left out.
        self.limits = (0.01 if clipped[0] else -math.inf, 254.99 if clipped[1] else math.inf)
        self.tiles = [] if self.constant else [self._scaled(tile) for tile in sample_tiles(planes)]

    def flatness(self) -> Flatness | None:
        """Look at the flattest blocks of the image."""
        if self.constant:
            return None
        return measure_flatness(self.tiles, *self.limits)

    def _scaled(self, tile: Array) -> Array:
        precise = np.float32 if tile.dtype.itemsize < 4 else np.float64
        shifted = np.subtract(tile, self.low, dtype=precise)
        return np.asarray(shifted / self.unit, np.float32)


def _white(planes: Array, extremes: Extremes | None = None) -> Noise:
    sigma = estimate_planes(planes, extremes)
    return Noise("white" if sigma > 0 else "none", sigma, (Level(read=sigma),))


def _camera(sample: _Sample, flatness: Flatness, strength: float) -> Noise:
    sigma = strength * sample.unit
    octaves = tuple(level / flatness.levels[0] for level in flatness.levels)
    return Noise("camera", sigma, (Level(read=sigma),), octaves, certainty=flatness.certainty)


def _dependent(sample: _Sample, *, insist: bool) -> Noise | None:
    """Return noise that depends on the brightness, if it clearly does or must."""
    if sample.constant:
        return None
    channels = [[tile[channel] for tile in sample.tiles] for channel in range(len(sample.tiles[0]))]
    levels = []
    for planes in channels:
        level = fit_level(cut_blocks(planes, *sample.limits), insist=insist)
        if level is None:
            return None
        levels.append(level)
    kind: Kind = "curve" if any(level.nodes for level in levels) else "poisson"
    noise = Noise(kind, None, tuple(levels)).scaled(sample.unit)
    return dataclasses.replace(
        noise, levels=tuple(_shifted(level, sample.low) for level in noise.levels)
    )


def _shifted(level: Level, low: float) -> Level:
    """Return the level of an image whose least value is not 0 but this.

    One line has many names: the more is read noise, the lower is black. It is named with black at
    0, unless values so far below 0, or so little noise there, say that black is elsewhere.
    """
    if level.nodes:
        return Level(nodes=tuple((x + low, sigma) for x, sigma in level.nodes))
    offset = level.offset - level.gain * low
    read = math.sqrt(max(offset, 0.0))
    if offset >= 0 and low >= -_DARKEST * read:
        return Level(level.gain, read)
    return Level(level.gain, black=-offset / level.gain)
