"""Arrays of any size in zarr and TIFF files: their layout, and reading them region by region."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import tifffile
import zarr

from nlnet.arrays import Array
from nlnet.dask.chunks import Layout
from nlnet.errors import InputError, trying
from nlnet.files.volume_paths import is_zarr
from nlnet.images.content import Source
from nlnet.inputs import KINDS


@dataclasses.dataclass(frozen=True)
class Volume:
    """Where an array of images lies, and what it looks like.

    It holds no open file: it goes to the workers of a cluster as it is, and is opened there.

    Parameters
    ----------
    path : Path
        The zarr folder or TIFF file.
    key : str
        Name of the array in a zarr group; empty if `path` is the array itself.
    modified : int
        Modification time of the file; if it changes, the file is opened again.
    shape, dtype
        Those of the array.
    chunks : tuple of int
        Shape of what is read and, in zarr, written at once: chunks, shards, tiles or strips.
    axes : tuple of str
        Names of the axes, where the file has them.
    layout : Layout
        What its axes are.
    """

    path: Path
    key: str
    modified: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    axes: tuple[str, ...]
    layout: Layout

    @property
    def noise_axis(self) -> int | None:
        """The axis of pages that differ in their noise: the channels, if the file names them."""
        names = [name.lower() for name in self.axes[: len(self.layout.pages)]]
        return names.index("c") if "c" in names else None

    @property
    def ndim(self) -> int:
        """Number of axes, which dask asks for."""
        return len(self.shape)

    def __getitem__(self, region: tuple[slice, ...]) -> Array:
        with _readable(self.path):
            array = _open_array(self.path, self.key, self.modified)
            return np.asarray(array[region])

    def as_dask(self, blocks: tuple[int, ...]) -> da.Array:
        """Return it as a dask array of such chunks, read by as few and large pieces."""
        pieces = tuple(
            min(length, unit * max(1, block // unit))
            for length, unit, block in zip(self.shape, self.chunks, blocks, strict=True)
        )
        # No name by content, which would be read for it.
        read = da.from_array(self, chunks=pieces, name=False, inline_array=True, asarray=False)
        rechunked: da.Array = read.rechunk(blocks)
        return rechunked


def open_volume(path: Path) -> Volume:
    """Find the array of images in a zarr folder or a TIFF file.

    Of a zarr group it is the first level of its pyramid, or its only array; of a TIFF file the
    first series at full resolution.

    Raises
    ------
    FileError
        If it cannot be read.
    InputError
        If it holds no array, more than one, or one that cannot be denoised.
    """
    path = path.absolute()
    with _readable(path):
        modified = path.stat().st_mtime_ns
        key, axes = _find_zarr(path) if is_zarr(path) else ("", ())
        array = _open_array(path, key, modified)
        names = _axis_names(array, axes)
        shape, dtype, chunks = array.shape, array.dtype, array.shards or array.chunks
    layout = Layout.of(shape, dtype, *_find_pages(path, shape, names))
    return Volume(path, key, modified, shape, dtype, chunks, names, layout)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever comes of reading into a sentence: neither library checks all it reads."""
    kind = "zarr" if is_zarr(path) else "TIFF"
    with Source.of_path(path).reading(kind), trying(f"read {str(path)!r}"):
        yield


@functools.lru_cache(maxsize=8)
def _open_array(path: Path, key: str, modified: int) -> zarr.Array[Any]:
    if is_zarr(path):
        found = zarr.open(str(path), path=key or None, mode="r")
    else:
        file = tifffile.TiffFile(path)
        found = zarr.open(file.series[0].aszarr(level=0), mode="r")
        weakref.finalize(found, file.close)
    if not isinstance(found, zarr.Array):
        raise InputError(f"{str(path / key)!r} is a zarr group, but must be an array.")
    return found


def _find_zarr(path: Path) -> tuple[str, Sequence[Any]]:
    """Return the name of the array in the group, and its axes where OME-Zarr describes them."""
    found = zarr.open(str(path), mode="r")
    if isinstance(found, zarr.Array):
        return "", ()
    scales = find_multiscales(found.attrs.asdict())
    if scales is not None:
        return str(scales["datasets"][0]["path"]), scales.get("axes", ())
    names = sorted(name for name, _ in found.arrays())
    if len(names) != 1:
        listed = f" ({', '.join(names[:10])})" if names else ""
        raise InputError(
            f"{str(path)!r} is a zarr group of {len(names)} arrays{listed}, but must be an array, "
            "a group of one, or an OME-Zarr image; name one of its arrays as IN.zarr/NAME."
        )
    return names[0], ()


def find_multiscales(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an OME-Zarr image's description of its pyramid, of version 0.5 or before."""
    scales = attributes.get("ome", attributes).get("multiscales")
    return scales[0] if scales else None


def _axis_names(array: Any, axes: Sequence[Any]) -> tuple[str, ...]:
    names: Sequence[Any] = (
        [axis["name"] if isinstance(axis, dict) else axis for axis in axes]
        or getattr(array.metadata, "dimension_names", None)
        or array.attrs.get("_ARRAY_DIMENSIONS")
        or ()
    )
    return tuple(map(str, names)) if len(names) == array.ndim and all(names) else ()


def _find_pages(
    path: Path, shape: tuple[int, ...], names: tuple[str, ...]
) -> tuple[int, int | None]:
    """Return how many axes count pages, and which one holds the channels of a page."""
    lower = [name.lower() for name in names]
    channel_axis = None
    if is_zarr(path):
        # Without names, three values at the end are RGB, as `nlnet.denoise` takes them.
        if len(shape) > 2 and shape[-1] == 3 and (not names or lower[-1] != "x"):
            channel_axis = -1
    elif "s" in lower:
        channel_axis = lower.index("s") - len(shape)
        if shape[channel_axis] not in KINDS or channel_axis not in (-1, -3):
            raise InputError(
                f"The TIFF file {str(path)!r} has {shape[channel_axis]} samples per pixel (axes "
                f"{''.join(names)}), but must have 1 (gray) or 3 (RGB)."
            )
    stacked = len(shape) - (2 if channel_axis is None else 3)
    if stacked < 0 or 0 in shape:
        raise InputError(
            f"The array in {str(path)!r} has shape {shape}, but must be (H, W) for gray or "
            "(H, W, 3) for RGB, with any axes of pages before."
        )
    return stacked, channel_axis
