"""Records of noise as JSON: what is written today, and what earlier versions wrote."""

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
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError("The noise record is not one that `nlnet noise --json` writes.") from error


def _content(noise: Noise) -> dict[str, Any]:
    if isinstance(noise, Camera):
        # As the shortest decimal numbers that are the same in float32.
        shortest = [float(str(value)) for value in noise.strengths.ravel()]
        return {"strengths": np.reshape(shortest, noise.strengths.shape).tolist()}
    if isinstance(noise, (White, NoNoise)):
        return {"sigma": noise.sigma}
    return {"levels": [vars(level) for level in noise.levels]}


_KINDS: dict[object, type[Noise]] = {
    each.kind: each for each in (NoNoise, White, Photon, Curve, Camera)
}


def _read(values: Mapping[str, Any]) -> Noise:
    """Read a record of format 2: its kind, its certainty, and the fields of the kind's class."""
    rest = dict(values)
    kind, certainty = rest.pop("kind"), _number(rest.pop("certainty"))
    del rest["format"]
    ((name, content),) = rest.items()
    made = _KINDS.get(kind if isinstance(kind, str) else None)
    if made is None or name not in made.__dataclass_fields__:
        raise InputError(
            f"The kind of noise is {kind!r}, but must be one of {', '.join(map(str, _KINDS))}, "
            "with what belongs to it."
        )
    read = {"sigma": _number, "strengths": _floats, "levels": _levels}[name]
    return made(**{name: read(content), "certainty": certainty})


def _read_first(values: Mapping[str, Any]) -> Noise:
    """Read a record of format 1, which had the same fields for every kind."""
    rest = dict(values)
    kind, sigma = rest.pop("kind"), rest.pop("sigma")
    levels, octaves = rest.pop("levels"), [_number(each) for each in rest.pop("octaves")]
    for level in levels:
        nodes = level.pop("nodes")
        if nodes and level["gain"]:
            raise InputError("Noise has both a curve and a gain, but must have one of them.")
        if nodes:
            level.clear()
            level["nodes"] = nodes
    if kind in ("poisson", "curve"):
        return _read({"kind": kind, "levels": levels, **rest})
    (level, *_) = _levels(levels)
    if isinstance(level, Nodes):
        raise InputError(f"Noise of the kind {kind!r} cannot have a curve.")
    sigma = float(level.sigma(0)) if sigma is None else _number(sigma)
    if kind != "camera":
        return _read({"kind": kind, "sigma": sigma, **rest})
    if not octaves or octaves[0] != 1 or min(octaves) <= 0:
        raise InputError("The octaves of noise must begin with 1 and be above 0.")
    even = Camera.even(sigma, tuple(octaves))
    return _read({"kind": kind, "strengths": even.strengths, **rest})


_READERS: dict[int, Callable[[Mapping[str, Any]], Noise]] = {1: _read_first, _FORMAT: _read}


def _levels(given: Sequence[Mapping[str, Any]]) -> tuple[AnyLevel, ...]:
    return tuple(map(_level, given))


def _level(values: Mapping[str, Any]) -> AnyLevel:
    if "nodes" in values:
        (nodes,) = values.values()
        return Nodes(tuple((_number(x), _number(sigma)) for x, sigma in nodes))
    return Level(**{name: _number(value) for name, value in values.items()})


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
