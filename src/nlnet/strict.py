"""Settings from plain values, as TOML and JSON files hold them: every key and type is checked."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from nlnet.errors import InputError

Made = TypeVar("Made")


def build(kind: type[Made], values: Any, where: str = "") -> Made:
    """Make a dataclass of a table, and of the tables in it.

    Parameters
    ----------
    kind : type
        The dataclass; its hints say which values fit.
    values : mapping
        Its fields. Integers fit where floats are wanted, arrays where tuples are; what is left out
        has its default.
    where : str
        What stands before the names of its fields in errors, such as ``data.``.

    Raises
    ------
    InputError
        If a key is unknown or missing, or a value is of another type.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Crop:
    ...     side: int
    >>> build(Crop, {"side": "32"}, "crop.")
    Traceback (most recent call last):
    nlnet.errors.InputError: The setting 'crop.side' is '32', but must be of type int.
    """
    if not isinstance(values, Mapping):
        raise _unfit(where.rstrip("."), values, "a table")
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    for name in sorted(set(values) - set(hints)):
        known = ", ".join(where + each for each in hints)
        raise InputError(f"Unknown setting {where + name!r}; the known ones are {known}.")
    for field in fields:
        defaults = (field.default, field.default_factory)
        if field.name not in values and defaults == (dataclasses.MISSING, dataclasses.MISSING):
            raise InputError(f"The setting {where + field.name!r} is missing.")
    return kind(**{name: _fit(hints[name], value, where + name) for name, value in values.items()})


def _fit(hint: Any, value: Any, name: str) -> Any:
    """Return a value as its hint wants it, or raise InputError."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if dataclasses.is_dataclass(kind) and value is not None:
            return build(kind, value, f"{name}.")  # type: ignore[arg-type]
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            raise _unfit(name, value, "an array")
        return tuple(_fit(typing.get_args(hint)[0], each, name) for each in value)
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise _unfit(name, value, " or ".join(map(repr, typing.get_args(hint))))
        return value
    if float in kinds and type(value) is int:
        return float(value)
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not types.NoneType)
        raise _unfit(name, value, f"of type {wanted}")
    return value


def _unfit(name: str, value: Any, wanted: str) -> InputError:
    return InputError(f"The setting {name!r} is {value!r}, but must be {wanted}.")
