"""What models are chosen if none is named; it imports nothing, so that commands list it at once."""

FAST, BEST = QUALITIES = ("fast", "best")
"""What may be asked for; the first is the default."""

FAMILIES = {
    FAST: {1: "gray", 3: "color"},
    BEST: {1: "gray-plus", 3: "color-plus"},
}
"""The model of a quality, by the number of channels."""
