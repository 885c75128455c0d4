"""The structures of removal in ``nlnet_engine.h``, with their names and their order."""

from __future__ import annotations

import ctypes

from nlnet.engine.library import Rows
from nlnet.engine.structures import Task, fields

SCALES = 3
"""``NLNET_SCALES``: the full size, half and quarter of it."""

WHITE, DEPENDENT, CAMERA = range(3)
"""``nlnet_noise_kind``."""

ELSEWHERE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int32,
    *(ctypes.c_int64,) * 2,
    *(ctypes.c_void_p,) * 2,
    *(ctypes.c_double,) * 2,
)


class Pixels(ctypes.Structure):
    """``nlnet_pixels``."""

    _fields_ = (("type", ctypes.c_int), ("rows", Rows))


class Level(ctypes.Structure):
    """``nlnet_level``."""

    _fields_ = (
        *fields(ctypes.c_double, "gain offset"),
        ("points", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    )


class Noise(ctypes.Structure):
    """``nlnet_noise``."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("level_count", ctypes.c_int32),
        ("sigma", ctypes.c_double),
        ("levels", ctypes.POINTER(Level)),
        ("strengths", ctypes.c_void_p),
        *fields(ctypes.c_int64, "rows columns"),
        ("certainty", ctypes.c_double),
    )


class Place(ctypes.Structure):
    """``nlnet_place``."""

    _fields_ = (
        ("scale", ctypes.c_int32),
        *fields(ctypes.c_int64, "height width top left"),
        ("change", ctypes.c_void_p),
    )


class RemovalTask(Task):
    """``nlnet_removal_task``."""

    maker = "remove"
    _fields_ = (
        *fields(ctypes.c_int64, "height width"),
        ("channels", ctypes.c_int32),
        *fields(Pixels, "noisy denoised"),
        ("noise", Noise),
        *fields(ctypes.c_double, "luma chroma span black low high"),
        ("place", ctypes.POINTER(Place)),
        ("elsewhere", ELSEWHERE),
        ("context", ctypes.c_void_p),
        *fields(ctypes.c_int32, "threads tile_rows"),
    )


def declare(library: ctypes.CDLL) -> None:
    """Declare the functions for removal."""
    number, pointer, count, real = (
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_double,
    )
    memory = (pointer, ctypes.POINTER(ctypes.c_size_t))
    reals, task = ctypes.POINTER(real), ctypes.POINTER(RemovalTask)
    arguments: dict[str, tuple[type, ...]] = {
        "removal_sigmas": (task, ctypes.POINTER(ctypes.c_int32), reals),
        "remove": (pointer, task, *memory, ctypes.POINTER(pointer)),
        "fill": (ctypes.POINTER(Noise), real, real, reals, reals),
        "shares": (ctypes.POINTER(Noise), reals, reals),
        "stabilise": (
            ctypes.POINTER(Level),
            *(number,) * 3,
            count,
            pointer,
            pointer,
            *memory,
        ),
        "halve": (number, ctypes.c_int32, count, count, pointer, pointer),
        "enlarge": (
            number,
            ctypes.c_int32,
            count,
            count,
            pointer,
            *(count,) * 3,
            pointer,
            *memory,
        ),
        "widen": (number, count, count, pointer, count, count, pointer, *memory),
        "blend": (number, ctypes.c_int32, count, pointer, pointer, real, real),
        "sure": (),
    }
    for name, types in arguments.items():
        getattr(library, f"nlnet_{name}").argtypes = types
    library.nlnet_sure.restype = real
