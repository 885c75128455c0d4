"""The structures of ``nlnet_engine.h`` that estimates of noise take and give."""

from __future__ import annotations

import ctypes

import numpy as np

from nlnet.engine.structures import Task, fields

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


FUNCTIONS: dict[str, tuple[type, ...]] = {
    "sample_pages": (ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)),
    "sample_grid": (*(ctypes.c_int64,) * 3, ctypes.POINTER(Grid)),
    "tile_start": (ctypes.c_int64,) * 4,
    "find_extremes": (ctypes.POINTER(Planes), ctypes.c_int, ctypes.POINTER(ExtremesFound)),
    "measure_sample": (
        ctypes.POINTER(SampleGiven),
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(Measures),
    ),
}
"""The arguments of the functions ``nlnet_...`` that are not jobs."""
