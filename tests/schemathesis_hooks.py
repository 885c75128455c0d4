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
def before_load_schema(context: schemathesis.HookContext, schema: dict) -> None:
    """Leave out what a description cannot say.

    Photon noise has no single sigma, only the pages of a stack have several, and black images have
    no noise to insist on. Who gives a sigma cannot ask for an estimate per page. An empty field
    counts as not given.
    """
    for name in ("DenoiseForm", "PreviewForm"):
        fields = schema["components"]["schemas"][name]["properties"]
        fields["job"]["pattern"] = f"^$|{fields['job']['pattern']}"
        if "noise" in fields:
            fields["noise"]["enum"] = ["auto", "white"]
            fields["per_page"]["enum"] = ["no"]
            fields["sigma"]["anyOf"].pop()


@schemathesis.hook
def filter_body(context: schemathesis.HookContext, body: object) -> bool:
    """Leave out lists: a form cannot tell a list of one value from the value."""
    return not isinstance(body, dict) or not any(isinstance(value, list) for value in body.values())
