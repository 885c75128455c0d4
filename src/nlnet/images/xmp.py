"""XMP packets, in which some programs store a thumbnail."""

from __future__ import annotations

import re

_THUMBNAILS = re.compile(rb"<(xmp|xap):Thumbnails\b.*?</\1:Thumbnails>", re.DOTALL)


def without_thumbnails(packet: bytes) -> tuple[bytes, bool]:
    """Return a packet without small pictures, and whether there were any.

    Examples
    --------
    >>> without_thumbnails(b"<a><xmp:Thumbnails>/9j/</xmp:Thumbnails><b/></a>")
    (b'<a><b/></a>', True)
    """
    rest, count = _THUMBNAILS.subn(b"", packet)
    return rest, count > 0
