"""The engine's shared library: found, loaded and declared as ``nlnet_engine.h`` says.

Every function of it releases the GIL. The structures have the names and the order of the header's.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from nlnet.engine import structures
from nlnet.engine.structures import EstimateTask, RemovalTask, Rows, Task, fields
from nlnet.errors import EngineError, InputError, ModelError

VERSION = 3
"""Of the interface that is declared here: ``NLNET_ENGINE_VERSION``."""

SET_VARIABLE = "NLNET_INSTRUCTION_SET"
"""The environment variable that names the instruction set to use, in place of the best one."""

SETS = {"sse2": 1, "avx2": 2, "avx512": 3, "neon": 4, "simd128": 5}
"""``nlnet_set``, by the names that the variable takes."""

# nlnet_progress_state
RAN, IDLE, DONE, CANCELLED = range(4)

# nlnet_status
_OK, _BAD_BLOCK, _BAD_VERSION, _BAD_ARGUMENT, _TOO_SMALL, _NO_MEMORY, _NO_SUCH_SET, _TOO_LARGE = (
    range(8)
)


class DenoiseTask(Task):
    """``nlnet_denoise_task``."""

    maker = "denoise"
    _fields_ = (
        *fields(ctypes.c_int64, "height width"),
        *fields(Rows, "noisy denoised"),
        *fields(ctypes.c_double, "low high"),
        *fields(ctypes.c_int32, "threads tile_rows"),
    )


class MatchTask(Task):
    """``nlnet_match_task``."""

    maker = "match"
    _fields_ = (
        *fields(ctypes.c_int64, "batch height width"),
        *fields(ctypes.c_void_p, "images groups"),
        ("threads", ctypes.c_int32),
    )


class ForwardTask(Task):
    """``nlnet_forward_task``."""

    maker = "forward"
    _fields_ = (
        *fields(ctypes.c_int64, "batch height width"),
        *fields(ctypes.c_int32, "first_stage last_stage"),
        *fields(ctypes.c_void_p, "estimate noisy groups updates estimates"),
        *fields(ctypes.c_double, "low high"),
        *fields(ctypes.c_int32, "project_last threads"),
    )


class BackwardTask(Task):
    """``nlnet_backward_task``."""

    maker = "backward"
    _fields_ = (
        ("forward", ForwardTask),
        *fields(ctypes.c_void_p, "cotangent estimate_gradient noisy_gradient"),
        *fields(ctypes.c_void_p, "filters group_weights coefficients step_sizes"),
    )


class LookTask(Task):
    """``nlnet_look_task``."""

    maker = "look"
    _fields_ = (
        *fields(ctypes.c_int64, "count height width"),
        *fields(ctypes.c_int32, "channels threads"),
        *fields(ctypes.c_void_p, "tiles maps"),
    )


class AlignTask(ctypes.Structure):
    """``nlnet_align_task``."""

    _fields_ = (
        *fields(ctypes.c_int64, "height width"),
        *fields(ctypes.c_void_p, "reference other noisy other_noisy expected field fits"),
    )


class Neighbour(ctypes.Structure):
    """``nlnet_neighbour``."""

    _fields_ = (
        *fields(ctypes.c_void_p, "noisy guide field"),
        *fields(ctypes.c_float, "gain offset"),
    )


class MergeTask(ctypes.Structure):
    """``nlnet_merge_task``."""

    _fields_ = (
        *fields(ctypes.c_int64, "height width"),
        *fields(ctypes.c_int32, "channels count"),
        *fields(ctypes.c_void_p, "noisy guide"),
        ("neighbours", ctypes.POINTER(Neighbour)),
        *fields(ctypes.c_int64, "first last"),
        *fields(ctypes.c_void_p, "merged left removed"),
    )


class KeepTask(ctypes.Structure):
    """``nlnet_keep_task``."""

    _fields_ = (
        *fields(ctypes.c_int64, "height width"),
        ("channels", ctypes.c_int32),
        ("least", ctypes.c_float),
        *fields(ctypes.c_void_p, "noisy merged removed"),
        *fields(ctypes.c_int64, "first last"),
        ("kept", ctypes.c_void_p),
    )


_TASKS = (
    DenoiseTask,
    MatchTask,
    ForwardTask,
    BackwardTask,
    LookTask,
    EstimateTask,
    RemovalTask,
)


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
    """Declare the arguments of all functions, and what those return that return no status."""
    number, small, count, real = ctypes.c_int, ctypes.c_int32, ctypes.c_int64, ctypes.c_double
    pointer, to, sizes = ctypes.c_void_p, ctypes.POINTER, (ctypes.c_int64,) * 2
    block = (ctypes.c_char_p, ctypes.c_size_t)
    memory = (pointer, to(ctypes.c_size_t))
    made = (*memory, to(pointer))
    noise, level, planes = to(structures.Noise), to(structures.Level), to(structures.Planes)
    arguments: dict[str, tuple[type, ...]] = {
        "best_set": (),
        "tile_rows": (),
        "sure": (),
        "set_name": (number,),
        "network_make": (*block, number, number, *made),
        "family_at": (*block, real, *memory),
        "eye_make": (*block, number, *made),
        "sample_pages": (count, to(count)),
        "sample_grid": (*sizes, count, to(structures.Grid)),
        "tile_start": (count,) * 4,
        "find_extremes": (planes, number, to(structures.ExtremesFound)),
        "measure_sample": (to(structures.SampleGiven), *memory, to(structures.Measures)),
        "removal_sigmas": (to(RemovalTask), to(small), to(real)),
        "fill": (noise, real, real, to(real), to(real)),
        "shares": (noise, to(real), to(real)),
        "stabilise": (level, *(number,) * 3, count, pointer, pointer, *memory),
        "halve": (number, small, *sizes, pointer, pointer),
        "enlarge": (number, small, *sizes, pointer, *sizes, count, pointer, *memory),
        "widen": (number, *sizes, pointer, *sizes, pointer, *memory),
        "blend": (number, small, count, pointer, pointer, real, real),
        "align": (number, to(AlignTask), *memory),
        "merge": (number, to(MergeTask), *memory),
        "keep": (number, to(KeepTask), *memory),
        **{task.maker: (pointer, to(task), *made) for task in _TASKS},
        **dict.fromkeys(("work", "progress", "cancel", "was_cancelled", "failure"), (pointer,)),
    }
    for name, types in arguments.items():
        getattr(library, f"nlnet_{name}").argtypes = types
    library.nlnet_set_name.restype = ctypes.c_char_p
    library.nlnet_progress.restype = library.nlnet_sure.restype = real
    library.nlnet_sample_pages.restype = library.nlnet_tile_start.restype = count
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
    """Return the engine and its instruction set, such as "nlnet engine 3, AVX2"."""
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
    if status == _TOO_LARGE:
        raise InputError("The image has values that are too large beside its sigma for float32.")
    raise InputError(f"{what} cannot be made: a size or a count is beyond what the engine takes.")
