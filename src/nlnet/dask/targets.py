"""Writing arrays to zarr and TIFF files region by region, completely or not at all."""

from __future__ import annotations

import dataclasses
import errno
import functools
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tifffile
import zarr.storage

from nlnet.arrays import Array
from nlnet.atomic import PREFIX, temporary_beside
from nlnet.dask.unfinished import Unfinished
from nlnet.dask.volumes import Volume, find_multiscales
from nlnet.errors import FileError, trying
from nlnet.files.claims import claim
from nlnet.files.volume_paths import is_zarr

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer

_NEW_CHUNK = 512
_METADATA = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
_REMOVAL_SECONDS = 10.0
_CLASSIC_TIFF = 2**32 - 2**25
"""Bytes above which a TIFF file needs 64-bit offsets, with some room for its tags."""


@dataclasses.dataclass(frozen=True)
class ZarrTarget:
    """An array in a zarr folder that is being written; `run` identifies the run that writes it."""

    path: Path
    key: str
    run: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def unfinished(self) -> Unfinished:
        """What it knows about itself."""
        return Unfinished(self.path)

    def write(self, region: tuple[slice, ...], block: Array) -> None:
        """Write a region; it must cover chunks as a whole."""
        with trying(f"write {str(self.path)!r}"):
            _check_not_given_up(self.path)
            _open_to_write(self.path, self.key, self.run)[region] = block


@dataclasses.dataclass(frozen=True)
class TiffTarget:
    """A TIFF file that is being written: uncompressed, all values in one piece.

    Not mapped into memory, where a full disk would kill the process instead of raising an error.
    """

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def write(self, region: tuple[slice, ...], block: Array) -> None:
        """Write a region, line by line."""
        starts = [part.start for part in region]
        # Axes at the end that the region covers as a whole are in one piece with the one before.
        whole = block.ndim - 1
        while whole > 0 and block.shape[whole] == self.shape[whole]:
            whole -= 1
        values = np.ascontiguousarray(block, self.dtype)
        with trying(f"write {str(self.path)!r}"), open(self.path, "r+b") as stream:
            for line in np.ndindex(block.shape[:whole]):
                place = np.add(starts, [*line, *[0] * (block.ndim - whole)])
                number = np.ravel_multi_index(tuple(place), self.shape)
                stream.seek(self.offset + int(number) * self.dtype.itemsize)
                stream.write(values[line].data)


Target = ZarrTarget | TiffTarget


@contextmanager
def new_target(path: Path, volume: Volume, run: str) -> Iterator[Target]:
    """Make a file for a result like `volume`; the block gets it under a temporary name.

    It gets its own name when the block ends, and is removed if that raises. If the block is
    interrupted, a zarr folder with some blocks stays: the next run of the same fingerprint gets it.

    Raises
    ------
    FileError
        If it cannot be written, or another process is writing it.
    """
    path = path.absolute()
    if is_zarr(path):
        with claim(path) as ours:
            if not ours:
                raise FileError(f"Another process is writing {str(path)!r}.")
            yield from _new_zarr(path, volume, run)
        return
    temporary = temporary_beside(path)
    try:
        with trying(f"write {str(path)!r}"):
            target = _make_tiff(path, temporary, volume)
        yield target
        with trying(f"write {str(path)!r}"):
            _rename(temporary, path)
    finally:
        _remove(temporary)


def unfinished_path(path: Path) -> Path:
    """Return the name of a zarr folder until it is finished."""
    return path.with_name(f"{PREFIX}{path.name}.partial")


def _new_zarr(path: Path, volume: Volume, run: str) -> Iterator[ZarrTarget]:
    temporary = unfinished_path(path)
    unfinished = Unfinished(temporary)
    try:
        with trying(f"write {str(path)!r}"):
            if unfinished.fits(run):
                target = ZarrTarget(temporary, volume.key if is_zarr(volume.path) else "")
            else:
                _remove(temporary)
                target = _make_zarr(temporary, volume)
                unfinished.begin(run)
        yield target
        with trying(f"write {str(path)!r}"):
            _rename(temporary, path)
            Unfinished(path).forget()
    except KeyboardInterrupt:
        if not unfinished.blocks():
            _remove(temporary)
        raise
    except BaseException:
        _remove(temporary)
        raise


class _UnfinishedFolder(zarr.storage.LocalStore):
    """A zarr folder that does not come back if it is removed while a block is being encoded."""

    async def set(self, key: str, value: Buffer) -> None:
        _check_not_given_up(self.root)
        await super().set(key, value)


def _check_not_given_up(folder: Path) -> None:
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "The unfinished output is gone", str(folder))


@functools.lru_cache(maxsize=8)
def _open_to_write(path: Path, key: str, run: str) -> zarr.Array[Any]:
    found = zarr.open(_UnfinishedFolder(path), path=key or None, mode="r+")
    assert isinstance(found, zarr.Array)
    return found


def _make_zarr(temporary: Path, volume: Volume) -> ZarrTarget:
    if is_zarr(volume.path):
        _copy_metadata(volume.path, temporary, volume.key)
        return ZarrTarget(temporary, volume.key)
    zarr.create_array(
        str(temporary),
        shape=volume.shape,
        dtype=volume.dtype.newbyteorder("="),
        chunks=new_chunks(volume),
        dimension_names=[name.lower() for name in volume.axes] or None,
    )
    return ZarrTarget(temporary, "")


def new_chunks(volume: Volume) -> tuple[int, ...]:
    """Return the chunks of a zarr array made from a TIFF file: its tiles, or squares."""
    layout = volume.layout
    chunks = [1] * layout.ndim
    columns = layout.image_axes[1]
    tiled = volume.chunks[columns] < volume.shape[columns]
    for axis in layout.image_axes:
        side = volume.chunks[axis] if tiled else _NEW_CHUNK
        chunks[axis] = min(side, volume.shape[axis])
    if layout.channel_axis is not None:
        chunks[layout.channel_axis] = layout.shape[0]
    return tuple(chunks)


def _copy_metadata(source: Path, target: Path, key: str) -> None:
    """Copy what describes the array and the groups it is in: chunks, codecs, names, attributes."""
    folder = Path()
    for part in (Path(), *map(Path, Path(key).parts)):
        folder = folder / part
        (target / folder).mkdir(parents=True, exist_ok=True)
        for name in _METADATA:
            if (source / folder / name).is_file():
                described = json.loads((source / folder / name).read_text("utf-8"))
                attributes = described.get("attributes", described)
                scales = isinstance(attributes, dict) and find_multiscales(attributes)
                if scales:
                    levels = scales["datasets"]
                    scales["datasets"] = [each for each in levels if each.get("path") == key]
                # It lists arrays that are not copied.
                described.pop("consolidated_metadata", None)
                (target / folder / name).write_text(json.dumps(described, indent=2), "utf-8")


def _make_tiff(path: Path, temporary: Path, volume: Volume) -> TiffTarget:
    dtype = volume.dtype.newbyteorder("=")
    size = int(np.prod(volume.shape, dtype=object)) * dtype.itemsize
    ome = path.name.lower().endswith((".ome.tif", ".ome.tiff"))
    color, axis = volume.layout.shape[0] == 3, volume.layout.channel_axis
    with tifffile.TiffWriter(temporary, bigtiff=size > _CLASSIC_TIFF, ome=ome) as writer:
        written = writer.write(
            shape=volume.shape,
            dtype=dtype,
            photometric="rgb" if color else "minisblack",
            planarconfig=("contig" if axis == -1 else "separate") if color else None,
            metadata={"axes": _tiff_axes(volume)},
            returnoffset=True,
        )
    assert written is not None
    return TiffTarget(temporary, written[0], volume.shape, dtype)


def _tiff_axes(volume: Volume) -> str:
    """Return letters for the axes as TIFF knows them: those of the file, or by their order."""
    letters, stacked = "".join(volume.axes).upper(), len(volume.layout.pages)
    color = {None: "YX", -1: "YXS", -3: "SYX"}[volume.layout.channel_axis]
    known = len(letters) == len(volume.shape) and set(letters[:stacked]) <= set("TCZ")
    if known and len(set(letters)) == len(letters):
        return letters[:stacked] + color
    # More than three axes of pages have no names in OME; Q is what tifffile calls any other.
    return "TCZ"[3 - stacked :] + color if stacked <= 3 else "Q" * len(volume.shape)


def _rename(temporary: Path, path: Path) -> None:
    if not path.is_dir():
        os.replace(temporary, path)
        return
    # A folder cannot be replaced in one step: the old one makes way, and comes back if need be.
    old = temporary_beside(path)
    try:
        os.rename(path, old)
        os.rename(temporary, path)
    except BaseException:
        if old.exists() and not path.exists():
            os.rename(old, path)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    # Where one block failed, others may still be written to the folder: go on until none is.
    end = time.monotonic() + _REMOVAL_SECONDS
    while path.is_dir() and time.monotonic() < end:
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(0.05)
