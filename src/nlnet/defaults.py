"""Defaults that the help of commands names; it imports nothing, so that they start at once."""

FAST, BEST = QUALITIES = ("fast", "best")
"""Qualities that may be asked for; the first is the default."""

FAMILIES = {
    FAST: {1: "gray", 3: "color"},
    BEST: {1: "gray-plus", 3: "color-plus"},
}
"""The model of a quality, by the number of channels."""

JPEG_QUALITY = 95
"""A lower one puts new artifacts where the noise was."""

MAX_PIXELS = 250_000_000
"""Larger images are refused before they are decoded."""
