"""The engine's shared library: found, loaded and declared as ``nlnet_engine.h`` says."""

import ctypes
import functools
import os
import sys
import threading
from pathlib import Path

import numpy as np

from nlnet.engine.interface import Interface
from nlnet.errors import EngineError, InputError, ModelError

VERSION = 3
"""Of the interface that is used here: ``NLNET_ENGINE_VERSION``."""

SET_VARIABLE = "NLNET_INSTRUCTION_SET"
"""The environment variable that names the instruction set to use, in place of the best one."""

SETS = {"sse2": 1, "avx2": 2, "avx512": 3, "neon": 4, "simd128": 5}
"""``nlnet_set``, by the names that the variable takes."""

# nlnet_progress_state
RAN, IDLE, DONE, CANCELLED = range(4)

ELEMENTS = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
"""``nlnet_element``, by dtype."""

TYPES = {
    np.dtype(name): number
    for number, name in enumerate(
        ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64")
    )
}
"""``nlnet_type``, by dtype."""

SCALES = 3
"""``NLNET_SCALES``: the full size, half and quarter of it."""

_FAILURES: tuple[tuple[type[Exception], str] | None, ...] = (
    None,
    (ModelError, "The network's parameters are not what the engine takes."),
    (ModelError, "The network's parameters are not what the engine takes."),
    (InputError, "A size or a count is beyond what the engine takes."),
    (InputError, "The image has too few pixels for the network's patches and groups."),
    (InputError, "The work takes more memory than this machine can address."),
    (EngineError, "The engine does not have the instruction set it was asked for."),
    (InputError, "The image has values that are too large beside its sigma for float32."),
)
"""What each ``nlnet_status`` stands for."""


@functools.cache
def load() -> Interface:
    """Return the library, loaded once.

    Raises
    ------
    EngineError
        If it is missing, does not load, or is of another version.
    """
    with _LOADING:
        return _load()


_LOADING = threading.Lock()
"""Threads that come at once get the same interface: each has structures of its own."""


@functools.cache
def _load() -> Interface:
    path = _path()
    header = path.with_name("nlnet_engine.h")
    again = "install nlnet again, or build it in a checkout: python -m engine.build"
    for each in (path, header):
        if not each.exists():
            raise EngineError(f"The engine is missing, there is no {str(each)!r}; {again}.")
    try:
        library = ctypes.CDLL(str(path))
        found = library.nlnet_engine_version()
        if found == VERSION:
            return Interface(library, header.read_text("utf-8"))
    except (OSError, AttributeError) as error:
        raise EngineError(
            f"The engine {str(path)!r} cannot be loaded ({error}); {again}."
        ) from error
    raise EngineError(
        f"The engine {str(path)!r} has version {found} of the interface, but this nlnet needs "
        f"version {VERSION}; {again}."
    )


def _path() -> Path:
    names = {"win32": "nlnet_engine.dll", "darwin": "libnlnet_engine.dylib"}
    return Path(__file__).with_name(names.get(sys.platform, "libnlnet_engine.so"))


def instruction_set() -> int:
    """Return the instruction set that networks are made for, a value of `SETS`.

    Raises
    ------
    EngineError
        If the environment names one that is not there.
    """
    library = load()
    wanted = os.environ.get(SET_VARIABLE)
    if not wanted:
        return int(library.best_set())
    number = SETS.get(wanted.lower())
    if number is None or library.set_name(number) is None:
        raise EngineError(
            f"{SET_VARIABLE} is {wanted!r}, but this engine on this CPU has only "
            f"{', '.join(available_sets())}."
        )
    return number


def available_sets() -> list[str]:
    """Return the instruction sets that this build and this CPU have, by the variable's names."""
    return [name for name, number in SETS.items() if load().set_name(number) is not None]


def describe_engine() -> str:
    """Return the engine and its instruction set, such as "nlnet engine 3, AVX2"."""
    name = load().set_name(instruction_set()).decode()
    return f"nlnet engine {VERSION}, {name}"


def check_status(status: int) -> None:
    """Raise the error that a status of the engine stands for, if it is one."""
    failure = _FAILURES[status]
    if failure is not None:
        kind, message = failure
        raise kind(message)
