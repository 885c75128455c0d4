"""What the noise of an image is: a record that is found, printed, saved and passed on.

Each kind of noise is a class of its own: `White`, `Photon`, `Curve` and `NoNoise`, and `Camera` in
`nlnet.noise.camera`. Every record is in the image's units, and valid from its construction on.
`nlnet.noise.saved` reads and writes them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from nlnet.errors import InputError
from nlnet.inputs import check_number
from nlnet.noise.levels import AnyLevel, Level, Nodes, check_finite_numbers

Kind = Literal["none", "white", "poisson", "curve", "camera"]

KINDS = ("white", "poisson", "camera")
"""The kinds of noise that can be asked for by name."""

SCALES = 3
"""Scales at which camera noise is known: the full size, half and quarter of it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise:
    """What the noise of an image is, in the image's units.

    Parameters
    ----------
    certainty : float
        How sure that is, from 0 to 1; 1 for noise that was given.

    Attributes
    ----------
    kind : {"none", "white", "poisson", "curve", "camera"}
        "white" is the same everywhere; "poisson" grows with the brightness as photon noise does;
        "curve" depends on it in another way; "camera" is correlated between neighboring pixels, as
        in photos that a camera has developed.
    sigma : float or None
        Standard deviation on average over the image; None where only the image would tell.
    levels : tuple
        How strong it is over the brightness: one for all channels, or one for each.

    Examples
    --------
    >>> print(Noise.white(12.5))
    white noise, sigma 12.5
    >>> print(Noise.poisson(gain=2.0, read=3.0))
    photon noise, gain 2, read noise 3
    >>> Noise.poisson(gain=2.0, read=3.0).gain
    2.0
    >>> Noise.from_json(Noise.white(12.5).to_json()) == Noise.white(12.5)
    True
    """

    kind: ClassVar[Kind]
    certainty: float = 1.0

    if TYPE_CHECKING:
        # For type checkers only: a dataclass would take these properties as defaults of its fields.
        @property
        def sigma(self) -> float | None:
            """Standard deviation on average over the image."""

        @property
        def levels(self) -> tuple[AnyLevel, ...]:
            """How strong it is over the brightness."""

    def __post_init__(self) -> None:
        check_finite_numbers(self.certainty)
        if not 0 <= self.certainty <= 1:
            raise InputError(f"The certainty is {self.certainty:g}, but must be from 0 to 1.")

    @staticmethod
    def white(sigma: float) -> White:
        """Return white noise of that standard deviation."""
        return White(check_number("sigma", sigma))

    @staticmethod
    def poisson(gain: float, read: float = 0.0, black: float = 0.0) -> Photon:
        """Return photon noise, ``var = gain * (x - black) + read**2``."""
        given = {"gain": gain, "read": read, "black": black}
        return Photon((Level(*(check_number(name, value) for name, value in given.items())),))

    @property
    def gain(self) -> float | None:
        """Values per photon; None unless one number holds for all channels."""
        return self._common("gain")

    @property
    def read(self) -> float | None:
        """Standard deviation in the dark; None unless one number holds for all channels."""
        return self._common("read")

    @property
    def black(self) -> float | None:
        """The value of no light; None unless one number holds for all channels."""
        return self._common("black")

    def _common(self, name: str) -> float | None:
        values = {getattr(level, name, None) for level in self.levels}
        return values.pop() if len(values) == 1 else None

    @property
    def octaves(self) -> tuple[float, ...]:
        """Standard deviation of the means of squares of 1x1, 2x2, 4x4 pixels, times their side.

        It is relative to the first: 1, 1, 1 unless the noise is correlated.
        """
        return (1.0,) * SCALES

    def sigma_at(self, value: float) -> float:
        """Return the standard deviation of the noise at a value, the largest of all channels."""
        return max(float(level.sigma(value)) for level in self.levels)

    def average_sigma(self, mean: float) -> float:
        """Return the standard deviation of the noise over an image with this mean value."""
        return self.sigma if self.sigma is not None else self.sigma_at(mean)

    def scaled(self, factor: float) -> Noise:
        """Return the noise of the image times a factor."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the record as a line of JSON."""
        from nlnet.noise.saved import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Noise:
        """Read what :meth:`to_json` wrote; anything else is an InputError of one sentence."""
        from nlnet.noise.saved import from_json

        return from_json(text)


@dataclasses.dataclass(frozen=True)
class _Even(Noise):
    """Noise of the same standard deviation at every brightness."""

    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite_numbers(self.sigma)

    @property
    def levels(self) -> tuple[AnyLevel, ...]:
        """The same at every brightness."""
        return (Level(read=self.sigma),)

    def scaled(self, factor: float) -> _Even:
        """Return the noise of the image times a factor."""
        return dataclasses.replace(self, sigma=self.sigma * factor)


@dataclasses.dataclass(frozen=True)
class NoNoise(_Even):
    """No noise worth removing; `sigma` is what was measured nevertheless."""

    kind = "none"
    sigma: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma < 0:
            raise InputError(f"sigma is {self.sigma:g}, but must be at least 0.")

    def __str__(self) -> str:
        return "no noise worth removing"


@dataclasses.dataclass(frozen=True)
class White(_Even):
    """Noise of the same standard deviation everywhere, independent from pixel to pixel."""

    kind = "white"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sigma > 0:
            raise InputError(f"sigma is {self.sigma:g}, but must be above 0.")

    def __str__(self) -> str:
        return f"white noise, sigma {self.sigma:.3g}"


@dataclasses.dataclass(frozen=True)
class _Dependent(Noise):
    """Noise that depends on the brightness: one level for all channels, or one for each."""

    sigma: ClassVar[None] = None
    levels: tuple[AnyLevel, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.levels) not in (1, 3):
            raise InputError(f"Noise has {len(self.levels)} levels, but must have 1 or 3.")
        for level in self.levels:
            if isinstance(level, Level) and not level.gain > 0:
                raise InputError(f"gain is {level.gain:g}, but must be above 0.")

    def scaled(self, factor: float) -> _Dependent:
        """Return the noise of the image times a factor."""
        levels = tuple(level.scaled(factor) for level in self.levels)
        return dataclasses.replace(self, levels=levels)


@dataclasses.dataclass(frozen=True)
class Photon(_Dependent):
    """Photon and read noise: a `Level` for all channels, or one for each."""

    kind = "poisson"
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(isinstance(level, Nodes) for level in self.levels):
            raise InputError("Noise of the kind 'poisson' cannot have a curve.")

    def __str__(self) -> str:
        gain, read, black = (self._each(name) for name in ("gain", "read", "black"))
        # A hundredth of a photon is nothing.
        lifted = any(abs(level.black) > level.gain / 100 for level in self.levels)
        black = f", black at {black}" if lifted else ""
        return f"photon noise, gain {gain}, read noise {read}{black}"

    def _each(self, name: str) -> str:
        """Return the numbers of all channels, one if they are the same."""
        numbers = [f"{getattr(level, name):.3g}" for level in self.levels]
        return "/".join(numbers) if len(set(numbers)) > 1 else numbers[0]


@dataclasses.dataclass(frozen=True)
class Curve(_Dependent):
    """Noise over the brightness that no line describes: `Nodes`, in single channels a `Level`."""

    kind = "curve"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(isinstance(level, Nodes) for level in self.levels):
            raise InputError("Noise of the kind 'curve' has no curve; photon noise is 'poisson'.")

    def __str__(self) -> str:
        curves = (level.nodes for level in self.levels if isinstance(level, Nodes))
        sigmas = [sigma for nodes in curves for _, sigma in nodes]
        span = f"sigma {min(sigmas):.3g} to {max(sigmas):.3g}"
        return f"noise that depends on the brightness, {span}"


def check_kind(kind: Any) -> None:
    """Raise InputError unless it is a kind of noise that can be asked for, a record, or None."""
    named = isinstance(kind, str) and kind in KINDS
    if kind is not None and not isinstance(kind, Noise) and not named:
        raise InputError(
            f"noise is {kind!r}, but must be one of {', '.join(KINDS)}, a Noise, or None."
        )
