"""A new DNG of a mosaic, with all that is known about the raw file that it was read from."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.images import exif, ifd
from nlnet.images import tiff_tags as tiff
from nlnet.images.ifd import Directory, Entry, Layout
from nlnet.images.ifd_writing import TiffBytes, Values, entries_of
from nlnet.raw.dng_copy import as_jpeg, copy_with, shrunk
from nlnet.raw.metadata import Exif
from nlnet.raw.sensors import Sensor

if TYPE_CHECKING:
    import rawpy

_PRIVATE = 50740
_D65 = 21
_PREVIEW_SIDE = 1536

_ORIENTATIONS = (1, 2, 4, 3, 5, 8, 6, 7)
"""The orientation of EXIF for each way in which LibRaw turns pictures."""

_SRGB_OF_XYZ = np.array(
    [[3.2405, -1.5371, -0.4985], [-0.9693, 1.8760, 0.0416], [0.0556, -0.2040, 1.0572]]
)


def is_dng(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a file is a DNG."""
    return Path(path).suffix.lower() == ".dng"


def encode_dng(
    raw: rawpy.RawPy,
    sensor: Sensor,
    found: Exif | None,
    mosaic: npt.NDArray[np.uint16],
    picture: Array,
) -> bytes:
    """Return a DNG: a copy of the raw file if that is one, else a new file.

    Parameters
    ----------
    raw, sensor, found
        What LibRaw, our own code and EXIF say about the raw file.
    mosaic : (H, W) array
        All pixels of the sensor, in the units of the file.
    picture : (h, w, 3) or (h, w) array of uint8
        The preview, upright.
    """
    flip = raw.sizes.flip
    if flip & 4:
        picture = picture.swapaxes(0, 1)
    picture = picture[:: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1]
    if picture.ndim == 2:
        picture = np.dstack([picture] * 3)
    copy = None if found is None else copy_with(found.data, mosaic, picture)
    if copy is not None:
        return copy
    file = TiffBytes(Layout(found.tags.layout.order if found else "<"))
    pixels = mosaic.astype(f"{file.layout.order}u2").tobytes()
    values = _strip(file.add(pixels), pixels, mosaic.shape)
    inner = file.add_directory(entries_of(values | _of_sensor(raw, sensor), file.layout))
    scale = min(1.0, _PREVIEW_SIDE / max(picture.shape))
    height, width = (max(1, round(scale * side)) for side in picture.shape[:2])
    pixels = as_jpeg(shrunk(picture, width, height))
    values = _strip(file.add(pixels), pixels, (height, width)) | {
        tiff.SUBFILE: (ifd.LONG, 1),
        tiff.BITS: (ifd.SHORT, (8, 8, 8)),
        tiff.COMPRESSION: (ifd.SHORT, tiff.JPEG),
        tiff.PHOTOMETRIC: (ifd.SHORT, tiff.YCBCR),
        tiff.SAMPLES: (ifd.SHORT, 3),
        tiff.SUB_IMAGES: (ifd.LONG, inner),
    }
    described = {} if found is None else _described(found)
    file.add_page(described | entries_of(values | _of_camera(raw, sensor), file.layout))
    return bytes(file)


def _strip(place: int, pixels: bytes, shape: tuple[int, ...]) -> Values:
    """Return how a mosaic is stored."""
    height, width = shape
    return {
        tiff.SUBFILE: (ifd.LONG, 0),
        tiff.WIDTH: (ifd.LONG, width),
        tiff.HEIGHT: (ifd.LONG, height),
        tiff.BITS: (ifd.SHORT, 16),
        tiff.COMPRESSION: (ifd.SHORT, tiff.UNCOMPRESSED),
        tiff.STRIP_OFFSETS: (ifd.LONG, place),
        tiff.SAMPLES: (ifd.SHORT, 1),
        tiff.ROWS_PER_STRIP: (ifd.LONG, height),
        tiff.STRIP_SIZES: (ifd.LONG, len(pixels)),
        tiff.PLANAR: (ifd.SHORT, 1),
    }


def _of_sensor(raw: rawpy.RawPy, sensor: Sensor) -> Values:
    """Return what DNG says about a mosaic: its colors, levels and areas."""
    sizes = raw.sizes
    height, width = sensor.mosaic.shape
    top, left = sizes.top_margin, sizes.left_margin
    crop = 0, 0, width, height
    inset = sizes.crop_left_margin - left, sizes.crop_top_margin - top
    if min(inset) >= 0 and 0 < sizes.crop_width <= width:
        crop = *inset, sizes.crop_width, sizes.crop_height
    values: Values = {
        tiff.PHOTOMETRIC: (ifd.SHORT, tiff.LINEAR_RAW if sensor.pattern is None else tiff.CFA),
        50713: (ifd.SHORT, (2, 2)),
        50714: (ifd.LONG, sensor.black),
        50717: (ifd.LONG, raw.white_level),
        50719: (ifd.LONG, crop[:2]),
        50720: (ifd.LONG, crop[2:]),
        50829: (ifd.LONG, (top, left, top + height, left + width)),
        50935: (ifd.FRACTION, 1.0),  # noise reduction was applied
    }
    if sensor.pattern is not None:
        values |= {33421: (ifd.SHORT, (2, 2)), 33422: (ifd.BYTE, sensor.pattern)}
        values |= {50710: (ifd.BYTE, (0, 1, 2)), 50711: (ifd.SHORT, 1)}
    return values


def _of_camera(raw: rawpy.RawPy, sensor: Sensor) -> Values:
    """Return what DNG says about a camera: how it was held, and its colors."""
    values: Values = {
        exif.ORIENTATION: (ifd.SHORT, _ORIENTATIONS[raw.sizes.flip]),
        tiff.DNG_VERSION: (ifd.BYTE, (1, 4, 0, 0)),
        50707: (ifd.BYTE, (1, 1, 0, 0)),
    }
    if sensor.pattern is not None:
        neutral = sensor.white_balance[1] / np.array(sensor.white_balance)
        values |= {
            50721: (ifd.SIGNED_FRACTION, _camera_of_xyz(raw)),
            50728: (ifd.FRACTION, neutral.clip(max=999)),
            50778: (ifd.SHORT, _D65),
        }
    return values


def _camera_of_xyz(raw: rawpy.RawPy) -> npt.NDArray[np.float64]:
    """Return the matrix from XYZ to the camera's colors in daylight."""
    known = np.asarray(raw.rgb_xyz_matrix[:3], np.float64)
    srgb_of_camera = np.asarray(raw.color_matrix[:, :3], np.float64)
    if known.any() or not srgb_of_camera.any():
        return known if known.any() else _SRGB_OF_XYZ
    # LibRaw's matrix makes white of daylight; so its colors in the camera come back.
    white = np.asarray(raw.daylight_whitebalance[:3])
    return np.asarray(np.linalg.inv(srgb_of_camera) @ _SRGB_OF_XYZ / white[:, np.newaxis])


def _described(found: Exif) -> Directory:
    """Return entries about the shot; the maker's notes are where DNG has them if they moved."""
    entries = dict(found.tags.entries)
    inner = entries.get(exif.EXIF_DIRECTORY, Entry(ifd.LONG)).directory or {}
    notes = inner.pop(exif.MAKER_NOTE, Entry(ifd.UNDEFINED)).data
    if notes:
        head = found.tags.layout.header[:2] + struct.pack(">I", found.data.find(notes))
        block = b"MakN" + struct.pack(">I", len(head + notes)) + head + notes
        entries[_PRIVATE] = Entry(ifd.BYTE, b"Adobe\0" + block + bytes(len(block) % 2))
    maker, model = ((found.tags.data(tag) or b"").strip(b"\0 ") for tag in (tiff.MAKE, tiff.MODEL))
    name = model if model.split()[:1] == maker.split()[:1] else maker + b" " + model
    return entries | {50708: Entry(ifd.TEXT, name + b"\0")}
