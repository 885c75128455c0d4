"""How LibRaw makes a picture of a mosaic: a few of its options, under its own names."""

import dataclasses
from typing import Any

from nlnet.errors import InputError

OUTPUT_COLORS = {"sRGB": "srgb", "P3D65": "p3"}
"""Color spaces, and what libvips calls the profile of each."""

CHOICES = {
    "highlight_mode": ("Clip", "Ignore", "Blend", "ReconstructDefault"),
    "output_color": tuple(OUTPUT_COLORS),
    "demosaic_algorithm": ("LINEAR", "VNG", "PPG", "AHD", "DCB", "DHT", "AAHD"),
}
"""The names that some of the options may have."""

SRGB_CURVE = (2.4, 12.92)
"""Power and slope of the tone curve of both color spaces, as LibRaw writes it."""


@dataclasses.dataclass(frozen=True)
class Development:
    """Options of development, with LibRaw's names and meanings.

    Parameters
    ----------
    use_auto_wb : bool
        Balance white by the picture itself; otherwise as the camera did it.
    no_auto_bright : bool
        Leave the brightness as it is, instead of raising it until a hundredth of the pixels is
        white.
    bright : float
        Factor of the brightness.
    highlight_mode : str
        What becomes of saturated pixels: ``"Clip"``, ``"Ignore"``, ``"Blend"`` or
        ``"ReconstructDefault"``.
    output_color : str
        ``"sRGB"`` or ``"P3D65"``, which is Display P3.
    demosaic_algorithm : str
        ``"LINEAR"``, ``"VNG"``, ``"PPG"``, ``"AHD"``, ``"DCB"``, ``"DHT"`` or ``"AAHD"``.

    Examples
    --------
    >>> Development(highlight_mode="Blend").bright
    1.0
    """

    use_auto_wb: bool = False
    no_auto_bright: bool = False
    bright: float = 1.0
    highlight_mode: str = "Clip"
    output_color: str = "sRGB"
    demosaic_algorithm: str = "AHD"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(known)}."
                )
        if not 0 < self.bright < 1000:
            raise InputError(f"bright is {self.bright:g}, but must be above 0 and below 1000.")

    def parameters(self) -> dict[str, Any]:
        """Return the options as rawpy takes them."""
        import rawpy

        return {
            **vars(self),
            "use_camera_wb": not self.use_auto_wb,
            "highlight_mode": rawpy.HighlightMode[self.highlight_mode],
            "output_color": rawpy.ColorSpace[self.output_color],
            "demosaic_algorithm": rawpy.DemosaicAlgorithm[self.demosaic_algorithm],
            "gamma": SRGB_CURVE,
        }


DEFAULT = Development()
