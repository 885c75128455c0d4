"""What the noise of an image is, found from the image alone.

The eye says which kind of noise it sees (`nlnet.noise.eye`). White noise is then measured by the
smallest eigenvalues of patches (`nlnet.noise.white`), and photon noise by flat blocks of every
brightness (`nlnet.noise.photons`), which are more exact; that of cameras and films is what the eye
sees.
"""

from __future__ import annotations

import dataclasses

import numpy.typing as npt

from nlnet.inputs import check_data_range
from nlnet.masks import read_planes
from nlnet.noise.eye import Seen, see
from nlnet.noise.photons import depends_on_brightness, find_photons
from nlnet.noise.record import Noise, NoNoise, White, check_kind
from nlnet.noise.sample import Sample
from nlnet.noise.white import check_size, estimate_white

_TOO_LITTLE = 0.5
"""Noise below this share of the smallest difference between values is taken for none."""


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
        The value of white. It has no influence: what the values fill is what counts.
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
    >>> noise = nlnet.estimate_noise(photons.astype(np.uint16))
    >>> noise.kind, abs(noise.levels[0].gain - 4) < 0.5
    ('poisson', True)
    """
    check_kind(kind)
    if data_range is not None:
        check_data_range(data_range)
    return find_noise(Sample.of(read_planes(image, mask, channel_axis).planes), kind)


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
    return estimate_white(Sample.of(read_planes(image, mask, channel_axis).planes))


def find_noise(sample: Sample, kind: str | None) -> Noise:
    """Estimate noise from a sample, in its units.

    Parameters
    ----------
    sample : Sample
        What is looked at of an image, or of several pages.
    kind : str or None
        Insist on this kind of noise. None to find out; then noise that is too weak to be worth
        removing is none.

    Raises
    ------
    InputError
        If the image is too small.
    """
    check_size(sample.shape)
    if kind == "white":
        return _find_white(sample)
    if kind == "poisson":
        return find_photons(sample) or _find_white(sample)
    seen = see(sample)
    if seen is None:
        return NoNoise()
    if kind == "camera":
        return seen.as_camera() or NoNoise()
    return _find_seen(sample, seen)


def _find_seen(sample: Sample, seen: Seen) -> Noise:
    """Return noise of the kind that the eye sees, measured by what measures it most exactly."""
    exact: Noise | None = None
    if seen.kind == "camera":
        exact = seen.as_camera()
    elif seen.kind == "white":
        exact = find_photons(sample, seen.line, looks_so=seen.looks_like_photons)
        if exact is None and seen.varies and depends_on_brightness(sample):
            exact = seen.as_camera()
        exact = exact or _find_white(sample)
    if exact is None or _is_too_little(exact, sample):
        return NoNoise(seen.sigma, certainty=seen.certainty)
    return dataclasses.replace(exact, certainty=seen.certainty)


def _find_white(sample: Sample) -> White | NoNoise:
    sigma = estimate_white(sample)
    return White(sigma) if sigma > 0 else NoNoise()


def _is_too_little(noise: Noise, sample: Sample) -> bool:
    """Tell whether noise is so weak that the image is better left as it is."""
    return noise.sigma is not None and noise.sigma < _TOO_LITTLE * sample.step
