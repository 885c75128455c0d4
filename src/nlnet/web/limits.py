"""The limits of a server: a bound for everything that requests use up."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of one server.

    Parameters
    ----------
    upload_bytes : int
        Size of one upload, its form fields included.
    pixels : int
        Width times height of an image, read from its header before it is decoded.
    waiting : int
        Jobs that may wait while one runs; further ones are refused.
    job_seconds : float
        Time one job may run, from decoding to encoding.
    upload_seconds : float
        Time a client may take to send its upload.
    """

    upload_bytes: int = 160 * 2**20
    pixels: int = 50_000_000
    waiting: int = 16
    job_seconds: float = 300.0
    upload_seconds: float = 120.0

    @property
    def held_bytes(self) -> int:
        """Bytes of uploads in memory at once, over all requests."""
        return 3 * self.upload_bytes
