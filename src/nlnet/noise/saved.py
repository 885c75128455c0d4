"""Records of noise as JSON: what is written today, and what earlier versions wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nlnet.errors import InputError
from nlnet.noise.camera import Camera
from nlnet.noise.levels import AnyLevel, Level, Nodes
from nlnet.noise.record import Curve, Noise, NoNoise, Photon, White

_FORMAT = 2


def to_json(noise: Noise) -> str:
    """Return a record as a line of JSON."""
    record = {
        "format": _FORMAT,
        "kind": noise.kind,
        "certainty": noise.certainty,
        **_content(noise),
    }
    return json.dumps(record, allow_nan=False)


def from_json(text: str) -> Noise:
    """Read what :func:`to_json` wrote, of this version or an earlier one.

    Raises
    ------
    InputError
        If it is anything else.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The noise record is not valid JSON: {error}.") from error
    try:
        return _READERS[values["format"]](values)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError("The noise record is not one that `nlnet noise --json` writes.") from error


def _content(noise: Noise) -> dict[str, Any]:
    if isinstance(noise, Camera):
        # As the shortest decimal numbers that are the same in float32.
        shortest = [float(str(value)) for value in noise.strengths.ravel()]
        return {"strengths": np.reshape(shortest, noise.strengths.shape).tolist()}
    if isinstance(noise, (White, NoNoise)):
        return {"sigma": noise.sigma}
    return {"levels": [vars(level) for level in noise.levels]}


def _read(values: Mapping[str, Any]) -> Noise:
    rest = dict(values)
    kind, certainty = rest.pop("kind"), _number(rest.pop("certainty"))
    del rest["format"]
    (content,) = rest.items()
    name, given = content
    wanted = {"none": "sigma", "white": "sigma", "camera": "strengths"}
    if kind in ("poisson", "curve") and name == "levels":
        return _with_levels(kind, [_level(level) for level in given], certainty)
    if not isinstance(kind, str) or wanted.get(kind) != name:
        raise _unknown(kind)
    if name == "strengths":
        return Camera(_floats(given), certainty=certainty)
    return (White if kind == "white" else NoNoise)(_number(given), certainty=certainty)


def _read_first(values: Mapping[str, Any]) -> Noise:
    """Read a record of format 1, which had the same fields for every kind."""
    rest = dict(values)
    kind, sigma = rest.pop("kind"), rest.pop("sigma")
    levels = [_first_level(level) for level in rest.pop("levels")]
    octaves = [_number(value) for value in rest.pop("octaves")]
    certainty = _number(rest.pop("certainty"))
    if set(rest) != {"format"}:
        raise ValueError("more than a record has")
    if kind in ("poisson", "curve"):
        return _with_levels(kind, levels, certainty)
    if len(levels) not in (1, 3):
        raise InputError(f"Noise has {len(levels)} levels, but must have 1 or 3.")
    if any(isinstance(level, Nodes) for level in levels):
        raise InputError(f"Noise of the kind {kind!r} cannot have a curve.")
    if not octaves or octaves[0] != 1 or min(octaves) <= 0:
        raise InputError("The octaves of noise must begin with 1 and be above 0.")
    strength = float(levels[0].sigma(0)) if sigma is None else _number(sigma)
    if kind == "white":
        return White(strength, certainty=certainty)
    if kind == "camera":
        return Camera.even(strength, tuple(octaves), certainty)
    if kind == "none":
        return NoNoise(strength, certainty=certainty)
    raise _unknown(kind)


_READERS: dict[int, Callable[[Mapping[str, Any]], Noise]] = {1: _read_first, _FORMAT: _read}


def _unknown(kind: object) -> InputError:
    return InputError(
        f"The kind of noise is {kind!r}, but must be one of none, white, poisson, curve, camera, "
        "with what belongs to it."
    )


def _with_levels(kind: str, levels: Sequence[AnyLevel], certainty: float) -> Noise:
    if kind == "curve":
        return Curve(tuple(levels), certainty=certainty)
    lines = tuple(level for level in levels if isinstance(level, Level))
    if len(lines) < len(levels):
        raise InputError(f"Noise of the kind {kind!r} cannot have a curve.")
    return Photon(lines, certainty=certainty)


def _level(values: Mapping[str, Any]) -> AnyLevel:
    if "nodes" in values:
        (nodes,) = values.values()
        return Nodes(tuple((_number(x), _number(sigma)) for x, sigma in nodes))
    return Level(**{name: _number(value) for name, value in values.items()})


def _first_level(values: Mapping[str, Any]) -> AnyLevel:
    rest = dict(values)
    nodes = rest.pop("nodes")
    if not nodes:
        return _level(rest)
    if rest["gain"]:
        raise InputError("Noise has both a curve and a gain, but must have one of them.")
    return _level({"nodes": nodes})


def _floats(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError("not numbers")
    return array.astype(np.float32)


def _number(value: object) -> float:
    """Return a number of JSON; strings are none, even if float() would read them."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("not a number")
    return float(value)
