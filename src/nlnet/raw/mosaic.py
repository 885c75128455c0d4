"""Denoising the mosaic of a color filter array, given as an array.

Photon and read noise become white and of one strength by the generalised Anscombe transform. Then a
mosaic is brightness, which is there at every pixel, plus color, which is smooth:

1. Colors are interpolated, and the four phases of the mosaic, each an RGB image of half the size in
   which noise is nearly white, pass through the color model. How far each pixel's color is from its
   brightness there is kept; the brightness itself is thrown away.
2. The mosaic without that is a gray image of full size. Its noise is still the sensor's: white. It
   passes through the gray model.
3. The color comes back.

`docs/raw.md` has what other ways give.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.denoising.devices import CPU
from nlnet.denoising.hot_pixels import fill_hot_pixels, find_hot_pixels
from nlnet.denoising.image import stoppable
from nlnet.denoising.network import Network, check_machine
from nlnet.errors import InputError
from nlnet.inputs import Shares, Strength, check_strength
from nlnet.model.loading import AUTO, check_quality
from nlnet.noise.levels import Level
from nlnet.noise.record import White
from nlnet.noise.stabilisation import Stabiliser
from nlnet.progress import Progress, part
from nlnet.raw.demosaicing import PHASES, Pattern, interpolate, pad, variances

SMALLEST_SIDE = 16
"""A phase has half of it, and patches must find others that are like them."""

_CORRELATED = 1.1
"""The noise of interpolated colors is a little correlated, which takes a somewhat larger sigma."""

_COLOR_SHARE = 2 / 3
"""Of the whole work, what the four phases in color take."""

_LARGEST_BALANCE = 8.0
"""No light is so red or blue that a color needs more; it is a mistake in the file."""

_BAND = 256
"""Rows that are changed together."""


def denoise_mosaic(
    mosaic: FloatArray,
    pattern: Pattern | None,
    gain: float,
    read: float,
    *,
    white_balance: Sequence[float] = (1.0, 1.0, 1.0),
    strength: Strength = 1.0,
    quality: str | None = None,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Progress | None = None,
) -> FloatArray:
    """Remove the photon and read noise of a sensor's mosaic.

    Parameters
    ----------
    mosaic : array
        (H, W), float32 or float64, black being 0; noise may have made values negative.
    pattern : ((int, int), (int, int)) or None
        Colors of the upper left 2x2 pixels, 0 for red, 1 for green, 2 for blue: any of the four
        Bayer patterns. None for a sensor without colors.
    gain, read : float
        The noise: its variance is ``gain * x + read**2``, in the units of the mosaic.
    white_balance : sequence of 3 floats
        What red, green and blue are multiplied with to make gray of a gray object. Colors are
        denoised best if it is right, but it changes no color.
    strength, quality, threads, max_memory, device, progress
        As for `nlnet.denoise`.

    Returns
    -------
    array
        The denoised mosaic, of the same shape and dtype.

    Raises
    ------
    InputError
        If an argument cannot be used.
    Cancelled
        If `progress` returned False.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> photons = rng.poisson(100, size=(64, 64)).astype(np.float32)
    >>> denoised = denoise_mosaic(photons, ((0, 1), (1, 2)), gain=1.0, read=0.0)
    >>> bool(denoised.std() < photons.std() / 4)
    True
    """
    _check(mosaic, gain, read)
    shares = luma, chroma = check_strength(strength, 1 if pattern is None else 3)
    check_quality(quality, AUTO)
    check_machine(threads, max_memory, device)

    def run(image: FloatArray, sigma: float, first: float, share: float) -> FloatArray:
        planes = image[np.newaxis] if image.ndim == 2 else image
        # By the contrast, and not by the value of white, which is far above it.
        network = Network.of(AUTO, len(planes), quality, threads, max_memory, device)
        network = dataclasses.replace(network, span=max(contrast, sigma))
        restored = np.empty_like(planes)
        network.remove(planes, White(sigma), restored, part(report, first, share))
        return restored.reshape(image.shape)

    report = stoppable(progress)
    transform = Stabiliser(Level(gain, read))
    stable = by_bands(mosaic, transform.forward)
    contrast = _contrast(stable)
    if pattern is None:
        restored = by_bands(run(stable, max(luma, 1.0), 0.0, 1.0), transform.inverse)
        return blend_mosaic(mosaic, restored, None, shares)
    # The transform is nearly a square root, so the root of the balance makes gray objects gray.
    balance = [math.sqrt(factor) for factor in check_balance(white_balance)]
    scale_sites(stable, pattern, balance)
    color = np.empty_like(stable)
    padded = pad(stable)
    for number, phase in enumerate(PHASES):
        row, column = phase
        noise = variances(pattern, phase, [factor**2 for factor in balance])
        sigma = _CORRELATED * math.sqrt(sum(noise) / 3) * max(chroma, 1.0)
        share = _COLOR_SHARE / len(PHASES)
        colors = run(interpolate(padded, pattern, phase), sigma, number * share, share)
        color[row::2, column::2] = colors[pattern[row][column]] - colors.mean(axis=0)
    del padded
    sigma = math.sqrt(sum(balance[site] ** 2 for row in pattern for site in row) / 4)
    stable -= color
    restored = run(stable, sigma * max(luma, 1.0), _COLOR_SHARE, 1 - _COLOR_SHARE)
    del stable
    restored += color
    scale_sites(restored, pattern, [1 / factor for factor in balance])
    restored = by_bands(restored, transform.inverse)
    return blend_mosaic(mosaic, restored, pattern, shares, white_balance)


def without_hot_pixels(
    mosaic: FloatArray, pattern: Pattern | None, gain: float, read: float
) -> tuple[FloatArray, int]:
    """Return a mosaic in which hot and dead pixels are filled, and how many they are.

    Parameters are as for `denoise_mosaic`.
    """
    stable = by_bands(mosaic, Stabiliser(Level(gain, read)).forward)
    step = 1 if pattern is None else 2
    hot = find_hot_pixels(stable[np.newaxis], 1.0, step)
    return fill_hot_pixels(mosaic[np.newaxis], hot, step)[0], int(np.count_nonzero(hot))


def by_bands(mosaic: FloatArray, change: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Change a mosaic some rows at a time, so that intermediate results stay small."""
    changed = np.empty_like(mosaic)
    for first in range(0, len(mosaic), _BAND):
        rows = slice(first, first + _BAND)
        changed[rows] = change(mosaic[rows])
    return changed


def blend_mosaic(
    noisy: FloatArray,
    denoised: FloatArray,
    pattern: Pattern | None,
    shares: Shares,
    white_balance: Sequence[float] = (1.0, 1.0, 1.0),
) -> FloatArray:
    """Put back a part of what was removed, of brightness and of color apart.

    Parameters
    ----------
    noisy, denoised : array
        The mosaic before and after.
    pattern, white_balance
        As for `denoise_mosaic`.
    shares : (float, float)
        Shares of the noise of brightness and of color to remove, from 0; from 1 on, all of it.

    Examples
    --------
    >>> before, after = np.full((16, 16), 10.0), np.full((16, 16), 6.0)
    >>> blend_mosaic(before, after, None, (0.5, 0.5))[0, 0]
    np.float64(8.0)
    """
    luma, chroma = (min(share, 1.0) for share in shares)
    if luma == chroma == 1:
        return denoised
    removed = noisy - denoised
    if pattern is None or luma == chroma:
        return np.asarray(denoised + (1 - luma) * removed)
    balance = check_balance(white_balance)
    scale_sites(removed, pattern, balance)
    padded = pad(removed)
    for row, column in PHASES:
        brightness = interpolate(padded, pattern, (row, column)).mean(axis=0)
        site = removed[row::2, column::2]
        site *= 1 - chroma
        site += (chroma - luma) * brightness
    scale_sites(removed, pattern, [1 / factor for factor in balance])
    return np.asarray(denoised + removed)


def scale_sites(mosaic: FloatArray, pattern: Pattern, factors: Sequence[float]) -> None:
    """Multiply the pixels of each color by a factor, in place."""
    for row, column in PHASES:
        mosaic[row::2, column::2] *= factors[pattern[row][column]]


def check_balance(white_balance: Sequence[float]) -> list[float]:
    """Return the white balance with green as 1, and no factor out of all bounds."""
    red, green, blue = white_balance
    if not min(red, green, blue) > 0 or not math.isfinite(red + green + blue):
        raise InputError(f"white_balance is {white_balance!r}, but must be three numbers above 0.")
    return [
        min(max(factor / green, 1 / _LARGEST_BALANCE), _LARGEST_BALANCE)
        for factor in (red, green, blue)
    ]


def is_bayer(pattern: Pattern) -> bool:
    """Tell whether two of the pixels are green and lie on a diagonal, with red and blue beside."""
    (a, b), (c, d) = pattern
    return sorted((a, b, c, d)) == [0, 1, 1, 2] and (a == d or b == c)


def _check(mosaic: FloatArray, gain: float, read: float) -> None:
    if mosaic.ndim != 2 or mosaic.dtype.kind != "f" or min(mosaic.shape) < SMALLEST_SIDE:
        raise InputError(
            f"The mosaic is {mosaic.dtype} of shape {mosaic.shape}, but must be floating, (H, W), "
            f"and at least {SMALLEST_SIDE} pixels high and wide."
        )
    if not (0 < gain < math.inf and 0 <= read < math.inf):
        raise InputError(
            f"The noise has gain {gain:g} and read noise {read:g}, but the gain must be above 0 "
            "and the read noise at least 0."
        )


def _contrast(stable: FloatArray) -> float:
    """Return what lies between dark and bright, few pixels aside; it decides on the model."""
    step = max(1, math.isqrt(stable.size // 100_000))
    dark, bright = np.percentile(stable[::step, ::step], [0.1, 99.9])
    return float(bright - dark)
