"""Photoshop's image resources, in which JPEG files keep IPTC: captions, keywords, credits."""

import struct
from collections.abc import Iterator

_SIGNATURE = b"8BIM"
_IPTC = 0x0404
_THUMBNAILS = (0x0409, 0x040C)


def iptc_of(resources: bytes) -> bytes | None:
    r"""Return the IPTC records among resources, None if there are none.

    Examples
    --------
    >>> iptc_of(with_iptc(b"\x1c\x02\x78\0\x03cat"))
    b'\x1c\x02x\x00\x03cat'
    """
    found = [data for number, _, data in _split(resources) if number == _IPTC]
    return found[0] if found else None


def with_iptc(iptc: bytes) -> bytes:
    """Return resources that hold nothing but IPTC records."""
    return _encode(_IPTC, b"\0\0", iptc)


def without_thumbnails(resources: bytes) -> bytes:
    """Return resources without small pictures; damaged ones that have none are as they were."""
    parts = list(_split(resources))
    if not any(number in _THUMBNAILS for number, _, _ in parts):
        return resources
    return b"".join(_encode(*part) for part in parts if part[0] not in _THUMBNAILS)


def _split(resources: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield number, name and data of every resource; damage ends it."""
    place = 0
    while resources[place : place + 4] == _SIGNATURE and place + 12 <= len(resources):
        (number,) = struct.unpack_from(">H", resources, place + 4)
        name_size = resources[place + 6] + 1
        name_size += name_size % 2
        start = place + 6 + name_size + 4
        if start > len(resources):
            return
        name = resources[place + 6 : start - 4]
        (size,) = struct.unpack_from(">I", resources, start - 4)
        data = resources[start : start + size]
        if len(data) < size:
            return
        yield number, name, data
        place = start + size + size % 2


def _encode(number: int, name: bytes, data: bytes) -> bytes:
    head = _SIGNATURE + struct.pack(">H", number) + name + struct.pack(">I", len(data))
    return head + data + b"\0" * (len(data) % 2)
