"""The content of an image file and where it is read from, for all formats."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import math
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias, overload

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError, NLNetError, cannot
from nlnet.images.metadata import Metadata

PathLike: TypeAlias = str | os.PathLike[str]


class TooLargeError(InputError):
    """An image is larger than allowed; `fact` says so to those who cannot raise the limit."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"{fact}; max_pixels (for commands --max-pixels) raises that limit.")
        self.fact = f"{fact}."


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
    leading : tuple of int
        How long the axes of pages are, if it is a page of a stack, even the only one.
    """

    pixels: Array
    alpha: Array | None = None
    metadata: Metadata | None = None
    data_range: float | None = None
    notes: tuple[str, ...] = ()
    leading: tuple[int, ...] = ()

    @classmethod
    def of_bands(cls, bands: Array, **more: Any) -> ImageFile:
        """Return an image of (H, W, bands): one or three channels, and maybe alpha behind them."""
        count = bands.shape[2]
        pixels = bands[..., 0] if count < 3 else bands[..., :3]
        return cls(pixels, bands[..., -1] if count in (2, 4) else None, **more)

    @property
    def bands(self) -> Array:
        """Pixels and alpha as one array, (H, W, bands)."""
        pixels = self.pixels.reshape(*self.pixels.shape[:2], -1)
        return pixels if self.alpha is None else np.dstack([pixels, self.alpha])

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


def joined(pages: Sequence[ImageFile]) -> Array:
    """Return pages as one array, with the axes of the file that they are from."""
    arrays = [page.pixels if page.alpha is None else page.bands for page in pages]
    leading = pages[0].leading
    if math.prod(leading) != len(pages):
        leading = (len(pages),)
    stacked: Array = np.stack(arrays).reshape(*leading, *arrays[0].shape)
    return stacked


class Pages(Sequence[ImageFile]):
    """The pages of a file, each read when it is asked for; the last one that was read is kept.

    `format` is the name of the file's format.
    """

    format = ""

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
            if stat.S_IFMT(os.stat(self.path).st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                return open(self.path, "rb")
        except (OSError, ValueError) as error:  # a name with a zero in it has the latter
            raise cannot(f"read {self.name!r}", error) from error
        raise FileError(f"Cannot read {self.name!r}: it is not a plain file.")

    @contextlib.contextmanager
    def reading(self, kind: str) -> Iterator[None]:
        """Turn whatever a library raises of a damaged file into a sentence."""
        try:
            yield
        except (NLNetError, MemoryError):
            raise
        except Exception as error:
            raise self.damaged(kind, error) from error

    def damaged(self, kind: str, reason: object = "") -> FileError:
        """Return the error that says so."""
        # Libraries may quote the file itself, which can be anything.
        words = "".join(letter for letter in str(reason) if letter.isprintable())[:100]
        detail = f" ({words})" if words else ""
        return FileError(
            f"Cannot read {self.name!r}: it is a damaged or incomplete {kind} file{detail}."
        )

    def check_pixels(self, width: int, height: int, limit: int) -> None:
        """Raise TooLargeError if there are more pixels than allowed."""
        if width * height > limit:
            raise TooLargeError(
                f"{self.name!r} has {width}x{height} pixels, but may have {limit / 1e6:g} million "
                "at most"
            )

    def stored_page(
        self,
        stream: BinaryIO,
        kind: str,
        start: int,
        size: int,
        decode: Callable[[bytes], ImageFile],
    ) -> Pages:
        """Return the only page, whose pixels lie in the file as they are.

        Parameters
        ----------
        stream : binary stream
            The file.
        kind : str
            What errors call the format.
        start, size : int
            Where the bytes of the pixels are, and how many.
        decode : callable
            Makes an image of them.
        """
        if stream.seek(0, os.SEEK_END) < start + size:
            raise self.damaged(kind, "it is too short")

        def read(index: int) -> ImageFile:
            with self.open() as stream:
                stream.seek(start)
                data = stream.read(size)
            with self.reading(kind):
                return decode(data)

        return Pages(1, read)
