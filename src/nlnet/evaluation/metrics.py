"""How far an image is from the clean one: PSNR and SSIM."""

import math

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError

_SSIM_SIGMA = 1.5
_SSIM_RADIUS = 5
SSIM_SIDE = 2 * _SSIM_RADIUS + 1
"""Pixels that an image must have in both directions: the side of the window."""


def psnr(clean: Array, estimate: Array, data_range: float = 255.0) -> float:
    """Return the peak signal-to-noise ratio in dB, over all pixels and channels.

    ``10 log10(data_range**2 / mean((clean - estimate)**2))``; infinite for equal images.

    Parameters
    ----------
    clean, estimate : array
        Images of the same shape.
    data_range : float, optional
        The peak: largest minus smallest value an image may have.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the shapes differ.

    Examples
    --------
    >>> round(psnr(np.zeros((8, 8)), np.full((8, 8), 25.5)), 9)
    20.0
    """
    reference, other = _as_pair(clean, estimate)
    error = float(np.mean((reference - other) ** 2))
    return math.inf if error == 0 else 10 * math.log10(data_range**2 / error)


def ssim(clean: Array, estimate: Array, data_range: float = 255.0) -> float:
    """Return the mean structural similarity, of Wang et al. (2004), averaged over channels.

    The window is a Gaussian of standard deviation 1.5 on 11 x 11 pixels; positions where it does
    not fit into the image are left out.

    Parameters
    ----------
    clean, estimate : (H, W) or (H, W, C) array
        Images of the same shape.
    data_range : float, optional
        Largest minus smallest value an image may have.

    Returns
    -------
    float
        1 for equal images.

    Raises
    ------
    InputError
        If the shapes differ, or an image is smaller than the window.

    Examples
    --------
    >>> ramp = np.tile(np.arange(16.0), (16, 1))
    >>> ssim(ramp, ramp)
    1.0
    """
    x, y = _as_pair(clean, estimate)
    if x.ndim not in (2, 3) or min(x.shape[:2]) < SSIM_SIDE:
        raise InputError(
            f"SSIM needs images of at least {SSIM_SIDE} x {SSIM_SIDE} pixels, "
            f"but got the shape {x.shape}."
        )
    mean_x, mean_y = _window_mean(x), _window_mean(y)
    variance_x = _window_mean(x * x) - mean_x**2
    variance_y = _window_mean(y * y) - mean_y**2
    covariance = _window_mean(x * y) - mean_x * mean_y
    # The constants K1 and K2 of the paper keep the quotients finite in flat areas.
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    similarity = ((2 * mean_x * mean_y + c1) * (2 * covariance + c2)) / (
        (mean_x**2 + mean_y**2 + c1) * (variance_x + variance_y + c2)
    )
    return float(similarity.mean())


def _as_pair(
    clean: Array, estimate: Array
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    # float64 before any arithmetic: differences of unsigned integers would wrap around.
    pair = np.asarray(clean, np.float64), np.asarray(estimate, np.float64)
    if pair[0].shape != pair[1].shape:
        raise InputError(
            f"Images to compare must have one shape, but got {pair[0].shape} and {pair[1].shape}."
        )
    return pair


def _window_mean(image: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Average over the Gaussian window around each pixel where it fits: (H-10, W-10[, C])."""
    offsets = np.arange(-_SSIM_RADIUS, _SSIM_RADIUS + 1)
    weights = np.exp(-0.5 * (offsets / _SSIM_SIGMA) ** 2)
    weights /= weights.sum()
    height, width = (side - 2 * _SSIM_RADIUS for side in image.shape[:2])
    rows = sum(w * image[i : i + height] for i, w in enumerate(weights))
    return np.asarray(sum(w * rows[:, i : i + width] for i, w in enumerate(weights)))
