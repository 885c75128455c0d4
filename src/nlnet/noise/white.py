"""How strong the noise of an image is, found from the image alone.

X. Liu, M. Tanaka, M. Okutomi, "Single-Image Noise Level Estimation for Blind Denoising", IEEE
Transactions on Image Processing 22 (2013). Patches of a natural image lie near a subspace, noise
fills all dimensions alike: the smallest eigenvalues of the patches' covariance are the noise's
variance. Texture fills the subspace up, so only weakly textured patches are looked at: those whose
gradients are no stronger than those of noise alone.

Departures from the paper: the mean of the smallest twelfth of the eigenvalues instead of the very
smallest, which is biased downwards; smaller patches for small images; and patches near a limit at
which values were clipped are left out, for their noise was clipped as well.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.inputs import check_channel_axis, check_dtype, check_finite
from nlnet.masks import fill_hidden
from nlnet.parallel import single_threaded_blas

_MIN_SIDE = 8
_MAX_PATCHES = 160_000
"""More are not looked at: larger images are sampled on a grid, so that they take no longer."""

_PATCH_SIZES = (7, 5, 3)
_SAMPLES = 600
"""Patches wanted for each dimension of a patch; if there are fewer, patches are made smaller."""

_TAIL = 12
"""One eigenvalue in so many is averaged."""

_ROUNDS = 5
_CONFIDENCE = 1 - 1e-6
"""Probability that a patch of noise alone counts as weakly textured."""

_CLIPPED_SHARE = 1e-3
"""A value that so many pixels share, and none goes beyond, is one where values were clipped."""

_BAND = 32
"""Rows of an image that are compared at a time."""

_CLIPPED_MARGIN = 2.0
"""Standard deviations of the noise between a clipping limit and the patches to look at."""


def estimate_sigma(
    image: npt.ArrayLike,
    *,
    mask: npt.ArrayLike | None = None,
    channel_axis: int | None = None,
) -> float:
    """Estimate the standard deviation of the white Gaussian noise in an image.

    Parameters
    ----------
    image : array
        (H, W) for grayscale or (H, W, 3) for RGB, of the dtypes of :func:`nlnet.denoise`; at least
        8 pixels high and wide. The channels of a color image are taken to be equally noisy.
    mask : array of bool, optional
        True for pixels to leave out, as for :func:`nlnet.denoise`; masked arrays bring their own,
        and NaN is left out, too.
    channel_axis : int, optional
        The axis of a 3-D image that holds its channels; the last by default.

    Returns
    -------
    float
        The standard deviation, in the image's own units; 0 for an image without noise.

    Raises
    ------
    InputError
        If the image cannot be used.

    Notes
    -----
    On natural images with noise of 5 to 50 (of 255) the mean error is 1 to 2 percent; see
    ``docs/files_and_noise.md``. Fine texture all over the image, and noise that is not white, make
    it wrong: noise that is correlated between pixels is taken for less than it is.

    Examples
    --------
    >>> import numpy as np
    >>> import nlnet
    >>> ramp = np.tile(np.linspace(50, 200, 128), (128, 1))
    >>> noisy = ramp + np.random.default_rng(0).normal(0, 10, size=(128, 128))
    >>> abs(nlnet.estimate_sigma(noisy) - 10) < 0.5
    True
    """
    pixels = np.asarray(image)
    check_dtype(pixels)
    axis = check_channel_axis(pixels, channel_axis)
    planes, _ = fill_hidden(image, mask, axis)
    check_finite(planes)
    return estimate_planes(planes)


def estimate_planes(planes: Array, extremes: Extremes | None = None) -> float:
    """Estimate sigma from (C, H, W) planes of finite values, as :func:`estimate_sigma` does.

    Who knows the extremes of the planes already spares them being looked for.
    """
    size, step = patch_size_and_step(planes.shape)
    windows = sliding_window_view(planes, (size, size), axis=(1, 2))[:, ::step, ::step]
    patches = windows.reshape(-1, size, size)
    return estimate_patches(patches, extremes or find_extremes(planes))


@dataclasses.dataclass(frozen=True)
class Extremes:
    """The least and the largest value of an image or of a part of it, and how many have them."""

    low: float
    low_count: int
    high: float
    high_count: int
    count: int


def find_extremes(values: Array) -> Extremes:
    """Return the extremes of the values."""
    low, high = values.min(), values.max()
    # Parts of a large image are compared in the cache; what stands for an image has no parts.
    rows = range(0, values.shape[-2], _BAND) if isinstance(values, np.ndarray) else ()
    parts = [values[..., first : first + _BAND, :] for first in rows] or [values]
    low_count, high_count = (
        sum(int(np.count_nonzero(part == value)) for part in parts) for value in (low, high)
    )
    return Extremes(float(low), low_count, float(high), high_count, values.size)


def estimate_patches(sampled: Array, extremes: Extremes) -> float:
    """Estimate sigma from patches (N, size, size) of an image, sampled as its size demands."""
    patches = _Patches(sampled, extremes)
    variance = patches.smallest_variance(np.full(patches.count, True))
    for _ in range(_ROUNDS):
        chosen = patches.weakly_textured(variance)
        if np.count_nonzero(chosen) < 2 * patches.dimension:
            break
        before, variance = variance, patches.smallest_variance(chosen)
        if math.isclose(variance, before, rel_tol=1e-3):
            break
    return patches.unit * math.sqrt(variance)


class _Patches:
    """Patches of an image without their means, and how strong their texture is.

    Values are divided by `unit`, so that float32 is precise enough whatever the image's scale.
    """

    def __init__(self, sampled: Array, extremes: Extremes) -> None:
        size = sampled.shape[-1]
        self.dimension = size**2 - 1  # the mean is taken out
        self.unit = (extremes.high - extremes.low) / 255 or 1.0
        # Float64 stays so for now: its offset may be far larger than its noise.
        precise = np.float64 if sampled.dtype.itemsize == 8 else np.float32
        shifted = np.subtract(sampled, extremes.low, dtype=precise)
        patches = np.divide(shifted, self.unit, dtype=precise).astype(np.float32, copy=False)
        self.count = len(patches)
        self._texture = _texture(patches)
        flat = patches.reshape(self.count, -1)
        self._means = flat.mean(axis=1)
        flat -= self._means[:, np.newaxis]
        self._flat = flat
        self._clipped_low = extremes.low_count / extremes.count > _CLIPPED_SHARE
        self._clipped_high = extremes.high_count / extremes.count > _CLIPPED_SHARE
        self._threshold = _texture_of_noise(size)

    def weakly_textured(self, variance: float) -> npt.NDArray[np.bool_]:
        """Choose patches that noise of this variance alone explains, away from clipped values."""
        weak = self._texture <= variance * self._threshold
        margin = _CLIPPED_MARGIN * math.sqrt(variance)
        inside = weak.copy()
        if self._clipped_low:
            inside &= self._means > margin
        if self._clipped_high:
            inside &= self._means < 255 - margin
        # Unless little is left: an image in black and white is all at its limits.
        return inside if np.count_nonzero(inside) >= 10 * self.dimension else weak

    def smallest_variance(self, chosen: npt.NDArray[np.bool_]) -> float:
        """Return the variance in the directions where the chosen patches vary least."""
        flat = self._flat[chosen]
        with single_threaded_blas:
            covariance = (flat.T @ flat).astype(np.float64) / len(flat)
            # The first belongs to the mean, which was taken out.
            eigenvalues = np.linalg.eigvalsh(covariance)[1:]
        return max(0.0, float(eigenvalues[: -(-len(eigenvalues) // _TAIL)].mean()))


def patch_size_and_step(shape: tuple[int, ...]) -> tuple[int, int]:
    """Choose patches large enough to tell noise from texture, and small enough to have many.

    Returns their side, and the step of the grid on which planes of that shape, (C, H, W), are
    sampled.

    Raises
    ------
    InputError
        If the image is too small.
    """
    channels, height, width = shape
    if min(height, width) < _MIN_SIDE:
        raise InputError(
            f"The image is {width}x{height} pixels, but estimating its noise takes at least "
            f"{_MIN_SIDE}x{_MIN_SIDE}; give sigma instead."
        )

    def count(size: int, step: int) -> int:
        return channels * -(-(height - size + 1) // step) * -(-(width - size + 1) // step)

    enough = (size for size in _PATCH_SIZES if count(size, 1) >= _SAMPLES * size**2)
    size = next(enough, _PATCH_SIZES[-1])
    step = next(step for step in itertools.count(1) if count(size, step) <= _MAX_PATCHES)
    return size, step


def _texture(patches: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the sum of squared central differences in each patch, (N,)."""
    across = patches[:, :, 2:] - patches[:, :, :-2]
    down = patches[:, 2:] - patches[:, :-2]
    squares = np.einsum("nij,nij->n", across, across) + np.einsum("nij,nij->n", down, down)
    return np.asarray(squares / 4)


def _texture_of_noise(size: int) -> float:
    """Return what the texture of a patch of noise of variance 1 stays below, almost surely.

    The texture is nearly a scaled chi-squared variable of as many degrees as the differences have
    independent directions; its quantile is by the formula of Wilson and Hilferty, near enough.
    """
    differences = size * (size - 2)  # in each of two directions, of variance 1/2 each
    degrees = size**2 - 4  # the constants on each of the four sublattices cancel
    quantile = NormalDist().inv_cdf(_CONFIDENCE)
    spread = 2 / (9 * degrees)
    chi_squared = degrees * (1 - spread + quantile * math.sqrt(spread)) ** 3
    return differences / degrees * chi_squared
