"""What is to be done about an image's noise: the one place where that is decided.

Arrays, files, stacks, dask and the web page all ask here.
"""

from __future__ import annotations

import dataclasses

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.inputs import check_sigma
from nlnet.noise.record import KINDS, Level, Noise

NO_NOISE = 0.5
"""White noise found to be below this, if white is 255, is taken for none."""

_NO_CAMERA_NOISE = 1.2
"""So is correlated noise, which texture can be taken for. Chosen on photos (PolyU) and on images
without noise (BSD68)."""

_SHARES = (1.5, 1.1, 0.88)
"""Times that the measured noise is removed at each scale: more than there is at the full size,
where correlated noise is harder to remove than white noise, and less at coarse ones, for what is
left there is removed at the finer ones. Flat blocks have less noise than the rest of a photo.
Simulated photos are 0.1 dB better with 0.9 of these, real ones (PolyU) 0.1 dB better with these."""


def decide_noise(
    planes: Array, span: float, sigma: float | None, noise: str | Noise | None
) -> Noise:
    """Return what the noise of (C, H, W) planes is, as far as it is not given.

    Parameters
    ----------
    planes : (C, H, W) array
        The image.
    span : float
        Its data range.
    sigma, noise
        As for `nlnet.denoise`.

    Raises
    ------
    InputError
        If they do not go together, or the image cannot have that data range.
    """
    check_request(sigma, noise, span)
    if isinstance(noise, Noise):
        if len(noise.levels) > len(planes):
            raise InputError(
                f"The noise record has {len(noise.levels)} levels, one for each color, but the "
                "image is grayscale."
            )
        if noise.kind in ("white", "camera"):
            check_sigma(noise.strength, span)
        return noise
    if sigma is not None and noise != "camera":
        return Noise.white(sigma)
    # Only now: who knows the noise need not wait for what finds it.
    from nlnet.noise.estimation import find_camera_noise, find_noise

    if sigma is not None:
        measured = find_camera_noise(planes)
        octaves = (1.0,) if measured is None else measured.octaves
        return Noise("camera", float(sigma), (Level(read=float(sigma)),), octaves)
    found = find_noise(planes, noise)
    check_estimate(found, span)
    if noise is None and _is_weak(found, span):
        return dataclasses.replace(found, kind="none")
    return found


def check_request(sigma: object, noise: object, span: float) -> None:
    """Raise InputError if sigma and noise cannot be asked for, or not together."""
    named = isinstance(noise, str) and noise in KINDS
    if noise is not None and not isinstance(noise, Noise) and not named:
        raise InputError(
            f"noise is {noise!r}, but must be one of {', '.join(KINDS)}, a Noise, or None."
        )
    if sigma is None:
        return
    check_sigma(sigma, span)
    if isinstance(noise, Noise):
        raise InputError("Both sigma and a noise record are given, but the record says all.")
    if noise == "poisson":
        raise InputError(
            "sigma is given for poisson noise, whose strength depends on the brightness; give "
            "Noise.poisson(gain, read), or leave sigma out."
        )


def check_estimate(noise: Noise, span: float) -> None:
    """Raise InputError if the noise that was found shows that the data range cannot be right."""
    if noise.sigma is not None and noise.sigma > span:
        raise InputError(
            f"The image's noise is estimated as {noise.sigma:g}, but its data range is {span:g}; "
            "give the data range that it really has (data_range, --data-range)."
        )


def _is_weak(noise: Noise, span: float) -> bool:
    """Tell whether noise is so weak that the image is better left as it is."""
    if noise.sigma is None:
        return False
    limit = _NO_CAMERA_NOISE if noise.correlated else NO_NOISE
    return noise.sigma * 255 / span < limit


def pyramid_sigmas(noise: Noise) -> tuple[float, ...]:
    """Return the standard deviation to remove at the full size, at half the size, and so on."""
    return tuple(
        share * noise.strength * octave / 2**scale
        for scale, (share, octave) in enumerate(zip(_SHARES, noise.octaves, strict=False))
    )
