"""What is done about the noise of a page: the one place where that is decided.

Arrays, files, stacks, dask and the web page all ask here. Noise that is not given is estimated; the
rest is decided by what the values of the page fill, and not by what their dtype could hold.
"""

import dataclasses
import json
import math
from typing import Any

import numpy as np

from nlnet.arrays import Box
from nlnet.denoising.sigma_map import check_extremes, is_map
from nlnet.engine.noise import sure_certainty
from nlnet.errors import InputError
from nlnet.inputs import DATA_RANGES, check_data_range, check_sigma
from nlnet.noise.camera import Camera
from nlnet.noise.record import Noise, NoNoise, White, check_kind
from nlnet.noise.sample import Sample
from nlnet.noise.stabilisation import engine_noise

_EXPLAINED = 6.0
"""Standard deviations of the noise by which values may leave the data range."""

_FAR_ABOVE = 1.5
_FAR_SHARE = 1e-3
"""If a larger share of the data is above 1.5 times the given range, the range is wrong."""

_TINY = 1e-30
"""Noise below this counts as none: a division by it may overflow float32."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a user says about noise and values; the parts are as for `nlnet.denoise`."""

    noise: str | Noise | None = None
    data_range: float | None = None
    clip: bool | None = None
    hot_pixels: bool = False
    error: bool = False

    def white_of(self, dtype: np.dtype[Any]) -> float | None:
        """Return the value of white, if it is known without a look at the values."""
        return self.data_range or DATA_RANGES[dtype.newbyteorder("=")]

    def check(self, sigma: object, dtype: np.dtype[Any]) -> None:
        """Raise InputError for what cannot be asked for, whatever the values are."""
        if self.data_range is not None:
            check_data_range(self.data_range)
        most = DATA_RANGES[dtype.newbyteorder("=")] if dtype.kind == "u" else None
        known = self.data_range or most or math.inf
        check_request(sigma, self.noise, known, mapped=is_map(sigma))


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to denoise a page, or several of one noise.

    Parameters
    ----------
    noise : Noise
        The noise to remove.
    white : float
        The value of white, in which sigma is given and told.
    span : float
        What the values fill, once their noise is even: it decides on the model.
    black : float
        Where that begins.
    box : (low, high) or None
        Values that the result is kept in.
    average : float
        Standard deviation of the noise on average over the page.
    idle : bool
        Whether the page stays as it is: there is no noise, or too little for float32.
    unclipped : bool
        Whether nothing is clipped because values lie outside of the data range.
    values : (low, high)
        The extremes of the values.
    sigmas : (low, high) or None
        The least and the largest value of a map of sigma, if there is one.
    estimated : bool
        Whether the strength of the noise is not given.
    """

    noise: Noise
    white: float
    span: float
    black: float
    box: Box | None
    average: float
    idle: bool
    unclipped: bool
    values: tuple[float, float]
    sigmas: tuple[float, float] | None = None
    estimated: bool = False

    @property
    def sigma(self) -> float:
        """Standard deviation of what is removed on average, if white is 255."""
        return 0.0 if isinstance(self.noise, NoNoise) else self.average * 255 / self.white

    def in_words(self) -> str:
        """Say what the noise is, if white is 255."""
        scale = 255 / self.white
        if self.sigmas is None:
            return str(self.noise.scaled(scale))
        low, high = (sigma * scale for sigma in self.sigmas)
        return f"white noise, sigma {low:.3g} to {high:.3g}"

    def of_strength(self, sigma: float | None) -> "Plan":
        """Return the same for a page whose noise is of that standard deviation, if it is given."""
        if sigma is None:
            return self
        noise = _of_strength(self.noise, sigma)
        return dataclasses.replace(self, noise=noise, average=sigma, estimated=False)

    def to_json(self) -> str:
        """Return the plan as a line of JSON."""
        return json.dumps(vars(self) | {"noise": self.noise.to_json()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Read what :meth:`to_json` wrote."""
        values = json.loads(text)
        pairs = {name: values[name] and tuple(values[name]) for name in ("box", "sigmas", "values")}
        return cls(**values | pairs | {"noise": Noise.from_json(values["noise"])})


def make_plan(
    sample: Sample,
    sigma: float | tuple[float, float] | None,
    request: Request,
    common: Plan | None = None,
) -> Plan:
    """Decide how to denoise a page.

    Parameters
    ----------
    sample : Sample
        What is looked at of the page.
    sigma : float, (low, high) or None
        Standard deviation of its noise, the extremes of a map of it, or None to estimate it.
    request : Request
        What else the user says.
    common : Plan, optional
        The plan of all pages together, whose noise, span and black this page has.

    Raises
    ------
    InputError
        If what is given does not go together, or not with the values.
    """
    extremes = sample.extremes
    low, high = (extremes.low, extremes.high) if extremes.count else (0.0, 0.0)
    white = request.white_of(sample.dtype) or high - low or 1.0
    most = request.data_range or max(high - low, sample.magnitude) or math.inf
    if sample.dtype.kind == "u":
        most = max(most, white) if request.data_range is None else most
    sigmas = sigma if isinstance(sigma, tuple) else None
    if sigmas is not None:
        check_extremes(*sigmas, most)
        noise: Noise = White(sigmas[1])
    elif common is not None:
        assert not isinstance(sigma, tuple)
        noise = common.noise if sigma is None else _of_strength(common.noise, sigma)
    else:
        assert not isinstance(sigma, tuple)
        noise = _decide_noise(sample, sigma, request.noise, most)
    box, unclipped = _find_box(sample, white, noise, request)
    filled = (
        engine_noise(noise).fill(*sample.measures[:2])
        if common is None
        else (common.span, common.black)
    )
    tiny = max(sample.magnitude * float(np.finfo(np.float32).eps), _TINY)
    return Plan(
        noise,
        white,
        *filled,
        box,
        noise.average_sigma(sample.measures.mean),
        idle=isinstance(noise, NoNoise) or (noise.sigma is not None and noise.sigma <= tiny),
        unclipped=unclipped,
        values=(low, high),
        sigmas=sigmas,
        estimated=sigma is None and not isinstance(request.noise, Noise),
    )


def _decide_noise(
    sample: Sample, sigma: float | None, noise: str | Noise | None, most: float
) -> Noise:
    """Return what the noise is, as far as it is not given."""
    check_request(sigma, noise, most)
    if isinstance(noise, Noise):
        if len(noise.levels) > sample.shape[0]:
            raise InputError(
                f"The noise record has {len(noise.levels)} levels, one for each color, but the "
                "image is grayscale."
            )
        if isinstance(noise, (White, Camera)):
            check_sigma(noise.sigma, most)
        return noise
    if sigma is not None and noise != "camera":
        return White(float(sigma))
    # Imported late: given noise needs no estimator.
    from nlnet.noise.estimation import find_noise
    from nlnet.noise.sample import LEAST_SIDE

    if sigma is None:
        return find_noise(sample, noise)
    small = min(sample.shape[1:]) < LEAST_SIDE
    measured = None if small else find_noise(sample, "camera")
    return _of_strength(measured if measured and measured.sigma else Camera.even(1.0), float(sigma))


def _of_strength(noise: Noise, sigma: float) -> Noise:
    """Return camera noise of the same correlation, or else white noise, of this strength."""
    if isinstance(noise, Camera):
        return dataclasses.replace(noise.scaled(sigma / noise.sigma), certainty=1.0)
    return White(float(sigma))


def check_request(sigma: object, noise: object, most: float, *, mapped: bool = False) -> None:
    """Raise InputError if sigma, or a map of it, and noise cannot be asked for, or not together."""
    check_kind(noise)
    if not mapped:
        if sigma is None:
            return
        check_sigma(sigma, most)
    given = "A map of sigma" if mapped else "sigma"
    if isinstance(noise, Noise):
        raise InputError(
            f"Both {given.lower()} and a noise record are given, but the record says all."
        )
    if noise == "poisson":
        raise InputError(
            f"{given} is given for poisson noise, whose strength depends on the "
            "brightness; give Noise.poisson(gain, read), or leave sigma out."
        )
    if mapped and noise == "camera":
        raise InputError("A map of sigma is for white noise, but the noise is given as 'camera'.")


def _find_box(
    sample: Sample, white: float, noise: Noise, request: Request
) -> tuple[Box | None, bool]:
    """Return the box to clip to, if any, and whether values outside the range keep it from one."""
    clip, extremes = request.clip, sample.extremes
    if isinstance(noise, NoNoise) or not extremes.count or (clip is not None and not clip):
        return None, False
    excess = _EXPLAINED * noise.sigma_at(0.0), _EXPLAINED * noise.sigma_at(white)
    if request.data_range is not None:
        limit = max(_FAR_ABOVE * white, white + excess[1])
        if extremes.high > limit and sample.share_above(limit) > _FAR_SHARE:
            raise InputError(
                f"The data range is given as {white:g}, but the image has values up to "
                f"{extremes.high:g}; give the data range that it really has (data_range, "
                "--data-range)."
            )
    if clip or (-excess[0] <= extremes.low and extremes.high <= white + excess[1]):
        ranged = clip or request.white_of(sample.dtype) is not None
        return ((0.0, white), False) if ranged else (None, False)
    return None, request.white_of(sample.dtype) is not None


def is_sure(noise: Noise) -> bool:
    """Tell whether all of the noise is removed, and there is nothing to say about it."""
    return noise.certainty >= sure_certainty()
