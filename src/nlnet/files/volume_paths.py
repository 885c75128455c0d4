"""Recognizing zarr and TIFF by their paths, without loading anything heavy."""

from pathlib import Path

ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
"""What a zarr array or group has in its folder, depending on its version."""


def is_zarr(path: Path) -> bool:
    """Whether a path names a zarr array or group, by its suffix or by what it holds.

    Examples
    --------
    >>> is_zarr(Path("slide.zarr"))
    True
    """
    return path.suffix.lower() == ".zarr" or any((path / name).is_file() for name in ZARR_FILES)


def is_tiff(path: Path) -> bool:
    """Whether a path names a TIFF file."""
    return path.suffix.lower() in (".tif", ".tiff")
