"""What schemathesis must know of the API: a file is an image, and a form holds plain values."""

from __future__ import annotations

import numpy as np
import schemathesis
from hypothesis import strategies

from nlnet.images import ImageFile, encode

# Black: whatever a request names as white, no value lies above it.
IMAGES = [encode(ImageFile(np.zeros((16, 18), np.uint8)), suffix) for suffix in (".png", ".tif")]

schemathesis.openapi.format("binary", strategies.sampled_from(IMAGES))


@schemathesis.hook
def filter_body(context: schemathesis.HookContext, body: object) -> bool:
    """Leave lists out: a form cannot tell a list of one value from the value."""
    values = body.values() if isinstance(body, dict) else ()
    return not any(isinstance(value, list) for value in values)
