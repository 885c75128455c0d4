"""Opening raw files with rawpy: what LibRaw knows of a sensor, and its errors as sentences."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Float32Array
from nlnet.errors import FileError, InputError
from nlnet.images.content import Source
from nlnet.raw.demosaicing import PHASES, Pattern
from nlnet.raw.mosaic import SMALLEST_SIDE, is_bayer

if TYPE_CHECKING:
    import rawpy

LARGEST = 65535
"""The largest number of 16 bits."""

_STDERR = 2
_COMPLAINT = re.compile(rb"[^\r\n]*: (Unexpected end of file|data corrupted at \d+)\r?\n")
_lock = threading.Lock()


@contextlib.contextmanager
def opened(source: Source, max_pixels: int) -> Iterator[rawpy.RawPy]:
    """Open and unpack a raw file of at most `max_pixels` pixels.

    Raises
    ------
    FileError
        If it is damaged, cut short, or not known to LibRaw.
    InputError
        If it is larger, or rawpy is missing.
    """
    try:
        import rawpy
    except ModuleNotFoundError as error:
        raise InputError(
            f"Cannot read {source.name!r}: raw files need rawpy, which is not installed: "
            "pip install 'nlnet[raw]'."
        ) from error

    with source.open() as stream:  # which says so if there is nothing to read
        if not stream.read(1):
            raise FileError(f"Cannot read {source.name!r}: the file is empty.")
    raw = rawpy.RawPy()
    try:
        complaints: list[str] = []
        with errors_of(source, complaints), caught_complaints(complaints):
            if source.path is None:
                raw.open_buffer(io.BytesIO(source.data))
            else:
                raw.open_file(os.fspath(source.path))
            source.check_pixels(raw.sizes.raw_width, raw.sizes.raw_height, max_pixels)
            raw.unpack()
        yield raw
    finally:
        raw.close()


@contextlib.contextmanager
def caught_complaints(complaints: list[str]) -> Iterator[None]:
    """Catch LibRaw's complaints, and add them to the list when the block ends.

    LibRaw offers no other way than to look at what comes out. Whatever else is written to the
    standard error meanwhile, by other threads, follows when the block ends.
    """
    with _lock, tempfile.TemporaryFile() as caught:
        try:
            original = os.dup(_STDERR)
        except OSError:  # there is no standard error to keep clean
            yield
            return
        try:
            os.dup2(caught.fileno(), _STDERR)
            yield
        finally:
            os.dup2(original, _STDERR)
            os.close(original)
            caught.seek(0)
            written = caught.read()
            complaints.extend(match[1].decode("ascii") for match in _COMPLAINT.finditer(written))
            with open(_STDERR, "wb", closefd=False) as stderr:
                stderr.write(_COMPLAINT.sub(b"", written))


@contextlib.contextmanager
def errors_of(source: Source, complaints: Sequence[str] = ()) -> Iterator[None]:
    """Turn LibRaw's errors into a sentence, with its complaint if there was one."""
    import rawpy

    try:
        yield
    except rawpy.LibRawFileUnsupportedError as error:
        raise FileError(
            f"Cannot read {source.name!r}: it is no raw file, or one of a camera that LibRaw "
            f"{'.'.join(map(str, rawpy.libraw_version))} does not know."
        ) from error
    except rawpy.LibRawUnsufficientMemoryError as error:
        raise MemoryError(f"LibRaw has too little memory for {source.name!r}.") from error
    except (rawpy.LibRawError, RuntimeError, OSError, NotImplementedError) as error:
        if isinstance(error, FileError):
            raise
        reason = next(iter((*complaints, *error.args)), "")
        words = reason.decode("ascii", "replace") if isinstance(reason, bytes) else reason
        raise source.damaged("raw", f"LibRaw: {words}") from error


@dataclasses.dataclass(frozen=True, eq=False)
class Sensor:
    """The mosaic and what LibRaw knows of it; black is 0 here.

    `black` is what was subtracted at the first 2x2 pixels.
    """

    mosaic: Float32Array
    pattern: Pattern | None
    black: npt.NDArray[np.int64]
    white: float
    white_balance: tuple[float, float, float]

    @classmethod
    def of(cls, source: Source, raw: rawpy.RawPy) -> Sensor:
        """Read the mosaic; refuse kinds of sensors that are not supported by their names."""
        indices, pattern = _color_filters(source, raw)
        visible = raw.raw_image_visible
        if min(visible.shape) < SMALLEST_SIDE:
            raise InputError(
                f"{source.name!r} has {visible.shape[1]}x{visible.shape[0]} pixels, but must have "
                f"at least {SMALLEST_SIDE}x{SMALLEST_SIDE}."
            )
        levels = np.asarray(raw.black_level_per_channel)
        black = levels[indices]
        white = float(raw.white_level) - min(levels)
        if white <= 0:
            raise FileError(f"Cannot read {source.name!r}: its white level is below black.")
        mosaic = visible.astype(np.float32)
        for row, column in PHASES:
            mosaic[row::2, column::2] -= black[row, column]
        return cls(mosaic, pattern, black, white, _white_balance(raw))

    def numbers_of(self, mosaic: Float32Array, raw: rawpy.RawPy) -> npt.NDArray[np.uint16]:
        """Return all pixels of the sensor with a denoised mosaic, as the numbers of the file.

        They are rounded up or down at random, so that flat areas keep their brightness and get no
        steps.
        """
        random = np.random.default_rng(0)
        width = mosaic.shape[1]
        black = np.tile(self.black, (1, width // 2 + 1))[:, :width]
        whole = np.array(raw.raw_image)
        top, left = raw.sizes.top_margin, raw.sizes.left_margin
        for row, values in enumerate(mosaic):
            numbers = np.floor(values + black[row % 2] + random.random(width, np.float32))
            whole[top + row, left : left + width] = numbers.clip(0, LARGEST)
        return whole

    def sigma(self, noise: tuple[float, float]) -> float:
        """Return the standard deviation of the noise at a quarter of white."""
        gain, read = noise
        return float(np.sqrt(gain * self.white / 4 + read**2))


def _color_filters(
    source: Source, raw: rawpy.RawPy
) -> tuple[npt.NDArray[np.int64], Pattern | None]:
    """Return LibRaw's numbers of the colors of the first 2x2 visible pixels, and their pattern.

    A sensor without colors has no pattern, and number 0 everywhere.
    """
    import rawpy

    if raw.raw_type != rawpy.RawType.Flat:
        raise _refused(source, "has all colors in every pixel (linear DNG, Foveon or sRAW)")
    with errors_of(source):
        array = raw.raw_pattern
    if array is None:
        raise _refused(source, "has an unknown color filter array")
    if raw.num_colors == 1:
        return np.zeros((2, 2), np.int64), None
    if array.shape != (2, 2):
        kind = {(6, 6): "an X-Trans"}.get(array.shape, f"a {array.shape[0]}x{array.shape[1]}")
        raise _refused(source, f"has {kind} color filter array")
    shift = -raw.sizes.top_margin, -raw.sizes.left_margin
    indices = np.roll(array, shift, axis=(0, 1)).astype(np.int64)
    letters = raw.color_desc.decode("ascii", "replace")
    (a, b), (c, d) = [["RGB".find(letters[index]) for index in row] for row in indices]
    if not is_bayer(pattern := ((a, b), (c, d))):
        raise _refused(source, f"has filters of the colors {letters}, but no Bayer pattern")
    return indices, pattern


def _refused(source: Source, what: str) -> InputError:
    return InputError(
        f"The sensor of {source.name!r} {what}, but must be one with a Bayer pattern or without "
        "colors; develop it with another program, and denoise the picture."
    )


def _white_balance(raw: rawpy.RawPy) -> tuple[float, float, float]:
    """Return the camera's white balance, or else that of daylight, or else none."""
    for factors in (raw.camera_whitebalance, raw.daylight_whitebalance):
        red, green, blue = map(float, factors[:3])
        if min(red, green, blue) > 0 and red + green + blue < math.inf:
            return red, green, blue
    return 1.0, 1.0, 1.0
