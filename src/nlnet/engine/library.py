"""The engine's shared library: found, loaded and declared as ``nlnet_engine.h`` says.

Every function of it releases the GIL. The structures have the names and the order of the header's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from nlnet.errors import EngineError, InputError, ModelError

VERSION = 1
"""Of the interface that is declared here: ``NLNET_ENGINE_VERSION``."""

SET_VARIABLE = "NLNET_INSTRUCTION_SET"
"""The environment variable that names the instruction set to use, in place of the best one."""

SETS = {"sse2": 1, "avx2": 2, "avx512": 3, "neon": 4, "simd128": 5}
"""``nlnet_set``, by the names that the variable takes."""

# nlnet_progress_state
RAN, IDLE, DONE, CANCELLED = range(4)

# nlnet_status
_OK, _BAD_BLOCK, _BAD_VERSION, _BAD_ARGUMENT, _TOO_SMALL, _NO_MEMORY, _NO_SUCH_SET = range(7)

ROWS_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class Rows(ctypes.Structure):
    """``nlnet_rows``: rows of an image, in memory or by callback."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("channel_stride", ctypes.c_ssize_t),
        ("row_stride", ctypes.c_ssize_t),
        ("column_stride", ctypes.c_ssize_t),
        ("rows", ROWS_CALLBACK),
        ("context", ctypes.c_void_p),
    )


class DenoiseTask(ctypes.Structure):
    """``nlnet_denoise_task``."""

    _fields_ = (
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("noisy", Rows),
        ("denoised", Rows),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("threads", ctypes.c_int32),
        ("tile_rows", ctypes.c_int32),
    )


class MatchTask(ctypes.Structure):
    """``nlnet_match_task``."""

    _fields_ = (
        ("batch", ctypes.c_int64),
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("images", ctypes.c_void_p),
        ("groups", ctypes.c_void_p),
        ("threads", ctypes.c_int32),
    )


class ForwardTask(ctypes.Structure):
    """``nlnet_forward_task``."""

    _fields_ = (
        ("batch", ctypes.c_int64),
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("first_stage", ctypes.c_int32),
        ("last_stage", ctypes.c_int32),
        ("estimate", ctypes.c_void_p),
        ("noisy", ctypes.c_void_p),
        ("groups", ctypes.c_void_p),
        ("updates", ctypes.c_void_p),
        ("estimates", ctypes.c_void_p),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("project_last", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    )


class BackwardTask(ctypes.Structure):
    """``nlnet_backward_task``."""

    _fields_ = (
        ("forward", ForwardTask),
        ("cotangent", ctypes.c_void_p),
        ("estimate_gradient", ctypes.c_void_p),
        ("noisy_gradient", ctypes.c_void_p),
        ("filters", ctypes.c_void_p),
        ("group_weights", ctypes.c_void_p),
        ("coefficients", ctypes.c_void_p),
        ("step_sizes", ctypes.c_void_p),
    )


JOBS = {
    DenoiseTask: "nlnet_denoise",
    MatchTask: "nlnet_match",
    ForwardTask: "nlnet_forward",
    BackwardTask: "nlnet_backward",
}
"""The function that makes a job of each kind of task."""

Task = DenoiseTask | MatchTask | ForwardTask | BackwardTask


@functools.cache
def load() -> ctypes.CDLL:
    """Return the library, loaded once.

    Raises
    ------
    EngineError
        If it is missing, does not load, or is of another version.
    """
    path = _path()
    again = "install nlnet again, or build it in a checkout: python -m engine.build"
    if not path.exists():
        raise EngineError(f"The engine is missing, there is no {str(path)!r}; {again}.")
    try:
        library = ctypes.CDLL(str(path))
        found = library.nlnet_engine_version()
    except (OSError, AttributeError) as error:
        raise EngineError(
            f"The engine {str(path)!r} cannot be loaded ({error}); {again}."
        ) from error
    if found != VERSION:
        raise EngineError(
            f"The engine {str(path)!r} has version {found} of the interface, but this nlnet needs "
            f"version {VERSION}; {again}."
        )
    _declare(library)
    return library


def _path() -> Path:
    names = {"win32": "nlnet_engine.dll", "darwin": "libnlnet_engine.dylib"}
    return Path(__file__).with_name(names.get(sys.platform, "libnlnet_engine.so"))


def _declare(library: ctypes.CDLL) -> None:
    size = ctypes.POINTER(ctypes.c_size_t)
    handle = ctypes.POINTER(ctypes.c_void_p)
    library.nlnet_best_set.argtypes = ()
    library.nlnet_set_name.argtypes = (ctypes.c_int,)
    library.nlnet_set_name.restype = ctypes.c_char_p
    library.nlnet_network_make.argtypes = (
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int),
        *(ctypes.c_void_p, size, handle),
    )
    for task, name in JOBS.items():
        getattr(library, name).argtypes = (
            *(ctypes.c_void_p, ctypes.POINTER(task)),
            *(ctypes.c_void_p, size, handle),
        )
    for name in ("work", "progress", "cancel", "was_cancelled"):
        getattr(library, f"nlnet_{name}").argtypes = (ctypes.c_void_p,)
    library.nlnet_progress.restype = ctypes.c_double
    library.nlnet_cancel.restype = None


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
        return int(library.nlnet_best_set())
    number = SETS.get(wanted.lower())
    if number is None or library.nlnet_set_name(number) is None:
        raise EngineError(
            f"{SET_VARIABLE} is {wanted!r}, but this engine on this CPU has only "
            f"{', '.join(available_sets())}."
        )
    return number


def available_sets() -> list[str]:
    """Return the instruction sets that this build and this CPU have, by the variable's names."""
    return [name for name, number in SETS.items() if load().nlnet_set_name(number) is not None]


def describe_engine() -> str:
    """Return the engine and its instruction set, such as "nlnet engine 1, AVX2"."""
    name = load().nlnet_set_name(instruction_set()).decode()
    return f"nlnet engine {VERSION}, {name}"


def check_status(status: int, what: str) -> None:
    """Raise the error that a status stands for, if it is one; `what` was to be made."""
    if status == _OK:
        return
    if status in (_BAD_BLOCK, _BAD_VERSION):
        raise ModelError("The network's parameters are not what the engine takes.")
    if status == _TOO_SMALL:
        raise InputError("The image has too few pixels for the network's patches and groups.")
    if status == _NO_MEMORY:
        raise InputError(f"{what} takes more memory than this machine can address.")
    if status == _NO_SUCH_SET:
        raise EngineError("The engine does not have the instruction set it was asked for.")
    raise InputError(f"{what} cannot be made: a size or a count is beyond what the engine takes.")
