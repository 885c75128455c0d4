"""The content of an image file and where it is read from, for all formats."""

from __future__ import annotations

import dataclasses
import functools
import io
import os
import stat
from collections.abc import Callable, Sequence
from typing import BinaryIO, TypeAlias, overload

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError, cannot
from nlnet.images.metadata import Metadata

PathLike: TypeAlias = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFile:
    """The content of an image file, or of one page of it.

    Parameters
    ----------
    pixels : array
        (H, W) for gray or (H, W, 3) for RGB; uint8, uint16, or in TIFF and ``.npy`` files int16,
        int32, uint32, float16, float32 or float64 too.
    alpha : array or None
        (H, W) of the same dtype, if the file has transparency.
    metadata : Metadata or None
        EXIF, color profile, resolution and the like, to be written with the pixels.
    data_range : float or None
        The value of white, if the file says so and it is not that of the dtype.
    notes : tuple of str
        What was converted on reading, for people.
    stacked : bool
        Whether it is a page of a stack, even if the only one.
    """

    pixels: Array
    alpha: Array | None = None
    metadata: Metadata | None = None
    data_range: float | None = None
    notes: tuple[str, ...] = ()
    stacked: bool = False

    @property
    def channels(self) -> int:
        """1 for gray, 3 for RGB."""
        return 1 if self.pixels.ndim == 2 else 3

    def upright(self, pixels: Array) -> Array:
        """Return pixels of this image turned and mirrored as its EXIF orientation says."""
        orientation = 1 if self.metadata is None else self.metadata.orientation
        if orientation in (5, 6, 7, 8):
            pixels = pixels.swapaxes(0, 1)
        if orientation in (3, 4, 7, 8):
            pixels = pixels[::-1]
        if orientation in (2, 3, 6, 7):
            pixels = pixels[:, ::-1]
        return pixels


class Pages(Sequence[ImageFile]):
    """The pages of a file, each read when it is asked for; the last one that was read is kept."""

    def __init__(self, count: int, read: Callable[[int], ImageFile]) -> None:
        self._count = count
        self._read = functools.lru_cache(maxsize=1)(read)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> ImageFile: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ImageFile]: ...
    def __getitem__(self, index: int | slice) -> ImageFile | Sequence[ImageFile]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"page {index} of {self._count}")
        return self._read(index % self._count)


@dataclasses.dataclass(frozen=True)
class Source:
    """An image file, or the bytes of one; messages call it by its name."""

    name: str
    path: PathLike | None = None
    data: bytes = b""

    @classmethod
    def of_path(cls, path: PathLike) -> Source:
        """Return the file at a path."""
        return cls(os.fspath(path), path)

    def open(self) -> BinaryIO:
        """Return a stream of the bytes; raise FileError if it is no plain file to read."""
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            # Check first: opening a pipe would wait until something is written to it.
            if not stat.S_ISREG(os.stat(self.path).st_mode) and not os.path.isdir(self.path):
                raise FileError(f"Cannot read {self.name!r}: it is not a plain file.")
            return open(self.path, "rb")
        except (OSError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise cannot(f"read {self.name!r}", error) from error

    def damaged(self, kind: str, reason: object = "") -> FileError:
        """Return the error that says so."""
        # Libraries may quote the file itself, which can be anything.
        words = "".join(letter for letter in str(reason) if letter.isprintable())[:100]
        detail = f" ({words})" if words else ""
        return FileError(
            f"Cannot read {self.name!r}: it is a damaged or incomplete {kind} file{detail}."
        )

    def check_pixels(self, width: int, height: int, limit: int) -> None:
        """Raise InputError if there are more pixels than allowed."""
        if width * height > limit:
            raise InputError(
                f"{self.name!r} has {width}x{height} pixels, but may have {limit / 1e6:g} million "
                "at most; max_pixels (for commands --max-pixels) raises that limit."
            )
