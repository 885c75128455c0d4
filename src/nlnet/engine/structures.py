"""The structures of ``nlnet_engine.h`` that estimating and removing noise take, in their order."""

from __future__ import annotations

import ctypes
from typing import ClassVar

import numpy as np


def fields(kind: type, names: str) -> list[tuple[str, type]]:
    """Return consecutive fields of one type."""
    return [(name, kind) for name in names.split()]


class Task(ctypes.Structure):
    """What a job does; ``nlnet_...`` with the name of its maker makes the job."""

    maker: ClassVar[str]


ROWS_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class Rows(ctypes.Structure):
    """``nlnet_rows``: rows of an image, in memory or by callback."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        *fields(ctypes.c_ssize_t, "channel_stride row_stride column_stride"),
        ("rows", ROWS_CALLBACK),
        ("context", ctypes.c_void_p),
    )


TYPES = {
    np.dtype(name): number
    for number, name in enumerate(
        ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64")
    )
}
"""``nlnet_type``, by dtype."""

SAMPLE_PAGES = 8
"""``NLNET_SAMPLE_PAGES``."""


class Grid(ctypes.Structure):
    """``nlnet_grid``."""

    _fields_ = fields(ctypes.c_int64, "rows columns height width")


class Planes(ctypes.Structure):
    """``nlnet_planes``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        *fields(ctypes.c_int64, "channels height width"),
        *fields(ctypes.c_ssize_t, "channel_stride row_stride column_stride"),
    )


class ExtremesFound(ctypes.Structure):
    """``nlnet_extremes``."""

    _fields_ = (
        *fields(ctypes.c_double, "low high"),
        *fields(ctypes.c_int64, "low_count high_count count"),
    )


class SampleGiven(ctypes.Structure):
    """``nlnet_sample``."""

    _fields_ = (
        ("extremes", ExtremesFound),
        *fields(ctypes.c_int32, "type channels"),
        ("pages", ctypes.c_int64),
        ("grid", Grid),
        ("tiles", ctypes.POINTER(Planes)),
    )


class Measures(ctypes.Structure):
    """``nlnet_measures``."""

    _fields_ = fields(ctypes.c_double, "low high step mean")


class PhotonsFound(ctypes.Structure):
    """``nlnet_photons``."""

    _fields_ = fields(ctypes.c_double, "gain read black")


class NoiseFound(ctypes.Structure):
    """``nlnet_found_noise``."""

    _fields_ = (
        *fields(ctypes.c_int32, "kind looked"),
        *fields(ctypes.c_double, "sigma certainty"),
        ("photons", PhotonsFound * 3),
        ("strengths", ctypes.c_void_p),
        *fields(ctypes.c_int64, "rows columns"),
        ("odds", ctypes.c_double * 4),
        *fields(ctypes.c_double, "slope foot variation"),
    )


class EstimateTask(Task):
    """``nlnet_estimate_task``."""

    maker = "estimate_noise"
    _fields_ = (
        ("sample", SampleGiven),
        ("measures", Measures),
        ("kind", ctypes.c_int32),
        ("set", ctypes.c_int),
        ("threads", ctypes.c_int32),
        ("found", ctypes.POINTER(NoiseFound)),
    )


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
