"""What the noise of an image is, found from the image alone.

The engine does it, from a sample of the image and with the eye that is part of the package:
``engine/src/estimates``, where ``decisions.h`` has every number that decides.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Float32Array
from nlnet.engine.estimates import KINDS
from nlnet.inputs import check_data_range
from nlnet.masks import read_planes
from nlnet.network.block import prepare_eye
from nlnet.network.eye import Eye, EyeConfig
from nlnet.network.layers import Layer
from nlnet.noise.camera import Camera
from nlnet.noise.levels import Level
from nlnet.noise.record import Noise, NoNoise, Photon, White, check_kind
from nlnet.noise.sample import Sample, check_size


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
    return find_sigma(Sample.of(read_planes(image, mask, channel_axis).planes))


def find_sigma(sample: Sample) -> float:
    """Estimate the standard deviation of white noise from a sample, as `estimate_sigma` does."""
    return float(_look(sample, "white")[0].sigma)


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
    found, strengths = _look(sample, kind)
    certainty, kind = found.certainty, KINDS[found.kind]
    if kind == "white":
        return White(found.sigma, certainty=certainty)
    if kind == "poisson":
        photons = found.photons[: sample.shape[0]]
        levels = (Level(each.gain, each.read, each.black) for each in photons)
        return Photon(tuple(levels), certainty=certainty)
    if strengths is not None and kind == "camera":
        return Camera(strengths, certainty=certainty)
    return NoNoise(found.sigma, certainty=certainty)


def _look(sample: Sample, kind: str | None) -> tuple[Any, Float32Array | None]:
    check_size(sample.shape)
    return sample.for_engine().estimate_noise(prepare_eye(shipped_eye()), sample.measures, kind)


@functools.cache
def shipped_eye() -> Eye:
    """Return the eye that is part of the package."""
    from safetensors.numpy import load_file

    return eye_from_tensors(load_file(Path(__file__).with_name("eye.safetensors")))


def eye_from_tensors(tensors: Mapping[str, npt.NDArray[np.floating]]) -> Eye:
    """Return an eye of the usual sizes from its weights and biases, by the names of layers."""
    config = EyeConfig(outputs=16)
    layers = (
        Layer(
            tensors[f"{spec.name}.weights"].astype(np.float32),
            tensors[f"{spec.name}.biases"].astype(np.float32),
        )
        for spec in config.layers
    )
    return Eye(config, tuple(layers))
