"""XMP packets, in which some programs store a thumbnail."""

from __future__ import annotations

import re

_THUMBNAILS = re.compile(rb"<(xmp|xap):Thumbnails\b.*?</\1:Thumbnails>", re.DOTALL)


def without_thumbnails(packet: bytes) -> bytes:
    """Return a packet without small pictures.

    Examples
    --------
    >>> without_thumbnails(b"<a><xmp:Thumbnails>/9j/</xmp:Thumbnails><b/></a>")
    b'<a><b/></a>'
    """
    return _THUMBNAILS.sub(b"", packet)
