"""Cameras' raw files, denoised before they are developed; the extra ``raw`` is for reading them.

`mosaic` works on arrays, with no file in sight; `files` reads, develops and writes with rawpy.
"""

from __future__ import annotations

import os
from pathlib import Path

RAW_SUFFIXES = (
    ".3fr",
    ".arw",
    ".cr2",
    ".cr3",
    ".crw",
    ".dcr",
    ".dng",
    ".erf",
    ".fff",
    ".iiq",
    ".kdc",
    ".mef",
    ".mos",
    ".mrw",
    ".nef",
    ".nrw",
    ".orf",
    ".pef",
    ".raf",
    ".rw2",
    ".rwl",
    ".srf",
    ".sr2",
    ".srw",
    ".x3f",
)
"""Suffixes of the files that go to LibRaw, in lower case; what they hold, it finds out itself."""


def is_raw(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a file is the raw data of a camera.

    Examples
    --------
    >>> is_raw("shots/IMG_0001.CR3"), is_raw("IMG_0001.tif")
    (True, False)
    """
    return Path(path).suffix.lower() in RAW_SUFFIXES
