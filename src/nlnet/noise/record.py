"""What the noise of an image is: a record that is found, printed, saved and passed on."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.errors import InputError
from nlnet.inputs import check_number

Kind = Literal["none", "white", "poisson", "curve", "camera"]

KINDS = ("white", "poisson", "camera")
"""The kinds of noise that can be asked for by name."""

_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Level:
    """How strong the noise of one channel is, over the brightness x, in the image's units.

    Without `nodes` its variance is ``gain * (x - black) + read**2``, and `read**2` below black.

    Parameters
    ----------
    gain : float
        Values per photon; 0 for noise that does not depend on the brightness.
    read : float
        Standard deviation in the dark.
    black : float
        The value of no light.
    nodes : tuple of (float, float)
        Points (x, standard deviation) of a curve, x ascending, that takes the place of the three.
    """

    gain: float = 0.0
    read: float = 0.0
    black: float = 0.0
    nodes: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.gain, self.read, self.black, *(n for node in self.nodes for n in node))
        if not all(math.isfinite(number) for number in numbers):
            raise InputError("Noise has values that are not finite, but all must be.")
        if min(self.gain, self.read, *(sigma for _, sigma in self.nodes)) < 0:
            raise InputError("Noise has a gain or a standard deviation below 0.")
        if any(b[0] <= a[0] for a, b in zip(self.nodes, self.nodes[1:], strict=False)):
            raise InputError("The points of a noise curve must be of ascending brightness.")

    @property
    def offset(self) -> float:
        """The variance's straight line at x = 0; below 0 where black is above 0."""
        return self.read**2 - self.gain * self.black

    def sigma(self, values: Array | float) -> FloatArray:
        """Return the standard deviation of the noise at these values."""
        if self.nodes:
            places, sigmas = np.asarray(self.nodes, np.float64).T
            return np.asarray(np.interp(np.asarray(values, np.float64), places, sigmas))
        light = np.maximum(np.asarray(values, np.float64) - self.black, 0)
        return np.sqrt(self.gain * light + self.read**2)


@dataclasses.dataclass(frozen=True)
class Noise:
    """What the noise of an image is, in the image's units.

    Parameters
    ----------
    kind : {"none", "white", "poisson", "curve", "camera"}
        "white" is the same everywhere; "poisson" grows with the brightness as photon noise does;
        "curve" depends on it in another way; "camera" is correlated between neighboring pixels, as
        in photos that a camera has developed.
    sigma : float or None
        Standard deviation on average over the image; None where only the image would tell.
    levels : tuple of Level
        How strong it is over the brightness: one for all channels, or one for each.
    octaves : tuple of float
        Correlation: standard deviation of the noise after averaging squares of 1, 2, 4, ... pixels,
        times their side, relative to the first. It is 1, 1, 1 for white noise, and grows towards 1,
        2, 4 for noise of ever larger blotches.
    certainty : float
        How sure that is, from 0 to 1; 1 for noise that was given.

    Examples
    --------
    >>> print(Noise.white(12.5))
    white noise, sigma 12.5
    >>> print(Noise.poisson(gain=2.0, read=3.0))
    photon noise, gain 2, read noise 3
    >>> Noise.from_json(Noise.white(12.5).to_json()) == Noise.white(12.5)
    True
    """

    kind: Kind
    sigma: float | None
    levels: tuple[Level, ...]
    octaves: tuple[float, ...] = (1.0,)
    certainty: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"The kind of noise is {self.kind!r}, but must be one of {_kinds()}.")
        if len(self.levels) not in (1, 3):
            raise InputError(f"Noise has {len(self.levels)} levels, but must have 1 or 3.")
        numbers = (*self.octaves, self.certainty)
        if self.sigma is not None:
            numbers += (self.sigma,)
        if not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise InputError("Noise has values that are negative or not finite.")
        if not self.octaves or self.octaves[0] != 1 or min(self.octaves) == 0:
            raise InputError("The octaves of noise must begin with 1 and be above 0.")
        if self.certainty > 1:
            raise InputError(f"The certainty is {self.certainty:g}, but must be from 0 to 1.")
        self._check_levels()

    def _check_levels(self) -> None:
        """Raise InputError if the levels are not those of the kind, or there is no noise."""
        for level in self.levels:
            if self.kind == "poisson" and not level.gain > 0:
                raise InputError(f"gain is {level.gain:g}, but must be above 0.")
            if self.kind == "curve" and len(level.nodes) < 2 and not level.gain:
                raise InputError(
                    f"A noise curve has {len(level.nodes)} points, but must have at least 2."
                )
            if level.nodes and level.gain:
                raise InputError("Noise has both a curve and a gain, but must have one of them.")
            if level.nodes and not max(sigma for _, sigma in level.nodes) > 0:
                raise InputError("The sigma of a noise curve is 0 everywhere.")
            if self.kind != "curve" and level.nodes:
                raise InputError(f"Noise of the kind {self.kind!r} cannot have a curve.")
        strength = self.strength
        if self.kind == "curve" and not any(level.nodes for level in self.levels):
            raise InputError("Noise of the kind 'curve' has no curve; photon noise is 'poisson'.")
        if self.kind in ("white", "camera") and not strength > 0:
            raise InputError(f"sigma is {strength:g}, but must be above 0.")
        if self.kind == "white" and any((x.gain, x.read) != (0, strength) for x in self.levels):
            raise InputError(
                f"sigma is {strength:g}, but the levels of white noise say something else; their "
                "read must be the same, and their gain 0."
            )

    @classmethod
    def white(cls, sigma: float) -> Noise:
        """Return white noise of that standard deviation."""
        number = check_number("sigma", sigma)
        return cls("white", number, (Level(read=number),))

    @classmethod
    def poisson(cls, gain: float, read: float = 0.0, black: float = 0.0) -> Noise:
        """Return photon noise, ``var = gain * (x - black) + read**2``."""
        level = Level(
            check_number("gain", gain), check_number("read", read), check_number("black", black)
        )
        return cls("poisson", None, (level,))

    @property
    def correlated(self) -> bool:
        """Whether the noise of neighboring pixels is alike."""
        return self.kind == "camera"

    @property
    def strength(self) -> float:
        """Standard deviation of noise that is the same everywhere."""
        return self.levels[0].read if self.sigma is None else self.sigma

    def sigma_at(self, value: float) -> float:
        """Return the standard deviation of the noise at a value, the largest of all channels."""
        return max(float(level.sigma(value)) for level in self.levels)

    def average_sigma(self, mean: float) -> float:
        """Return the standard deviation of the noise over an image with this mean value."""
        return self.sigma if self.sigma is not None else self.sigma_at(mean)

    def scaled(self, factor: float) -> Noise:
        """Return the noise of the image times a factor."""
        levels = tuple(
            Level(
                level.gain * factor,
                level.read * factor,
                level.black * factor,
                tuple((x * factor, sigma * factor) for x, sigma in level.nodes),
            )
            for level in self.levels
        )
        sigma = None if self.sigma is None else self.sigma * factor
        return dataclasses.replace(self, sigma=sigma, levels=levels)

    def __str__(self) -> str:
        level = self.levels[len(self.levels) // 2]
        if self.kind == "none":
            return "no noise worth removing"
        if self.kind == "white":
            return f"white noise, sigma {level.read:.3g}"
        if self.kind == "poisson":
            black = f", black at {level.black:.3g}" if level.black else ""
            return f"photon noise, gain {level.gain:.3g}, read noise {level.read:.3g}{black}"
        if self.kind == "curve":
            sigmas = [sigma for level in self.levels for _, sigma in level.nodes]
            return (
                f"noise that depends on the brightness, sigma {min(sigmas):.3g} to "
                f"{max(sigmas):.3g}"
            )
        about = "" if self.sigma is None else f", about {self.sigma:.2g}"
        return f"camera noise, correlated{about}"

    def to_json(self) -> str:
        """Return the record as a line of JSON."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Noise:
        """Read what :meth:`to_json` wrote; anything else is an InputError of one sentence."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"The noise record is not valid JSON: {error}.") from error
        try:
            return _from_mapping(values)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                "The noise record is not one that `nlnet noise --json` writes."
            ) from error


def _kinds() -> str:
    return ", ".join(get_args(Kind))


def _from_mapping(values: Any) -> Noise:
    if not isinstance(values, dict):
        raise TypeError("not a record")
    rest = dict(values)
    if rest.pop("format") != _FORMAT:
        raise ValueError("another format")
    levels = tuple(
        Level(
            gain=_number(level["gain"]),
            read=_number(level["read"]),
            black=_number(level["black"]),
            nodes=tuple(_pair(node) for node in level["nodes"]),
        )
        for level in rest.pop("levels")
    )
    octaves = tuple(_number(value) for value in rest.pop("octaves"))
    sigma = rest.pop("sigma")
    kind = rest.pop("kind")
    certainty = _number(rest.pop("certainty"))
    if rest:
        raise ValueError("more than a record has")
    return Noise(
        kind=kind,
        sigma=None if sigma is None else _number(sigma),
        levels=levels,
        octaves=octaves,
        certainty=certainty,
    )


def _pair(node: Sequence[object]) -> tuple[float, float]:
    x, sigma = node
    return _number(x), _number(sigma)


def _number(value: object) -> float:
    """Return a number of JSON; strings are none, even if float() would read them."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("not a number")
    return float(value)
