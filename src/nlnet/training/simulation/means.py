"""Which demosaicers, in-camera denoisers and encoders there are, and how far photos are changed."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Means:
    """Which demosaicers, in-camera denoisers and encoders there are, with their weights.

    `smallest` is how far photos are scaled down; `strongest` is how much noise a denoiser expects
    at most, times what there is; `residue` is the share of camera pictures with some; `sparing` is
    the share of cameras that denoise detail, and sharpen flat areas, less than the rest; `harsh`
    are the shares of photos that are sharpened and aliased; `soft` is the share of photon noise
    that is blurred, and by how many pixels; `cut` is the share of files that were cut anywhere and
    saved again.
    """

    demosaicers: tuple[tuple[str, float], ...] = (
        ("bilinear", 0.3),
        ("malvar", 0.35),
        ("edge", 0.25),
        ("none", 0.1),
    )
    denoisers: tuple[tuple[str, float], ...] = (
        ("none", 0.35),
        ("bilateral", 0.2),
        ("median", 0.08),
        ("guided", 0.12),
        ("shrinkage", 0.13),
        ("smoothing", 0.12),
    )
    encoders: tuple[tuple[str, float], ...] = (("jpeg", 1.0),)
    smallest: float = 0.45
    strongest: float = 1.3
    residue: float = 0.0
    sparing: float = 0.0
    harsh: tuple[float, float] = (0.0, 0.0)
    soft: tuple[float, float, float] = (0.25, 0.35, 1.2)
    cut: float = 0.0


TRAINED = Means()
BROADER = Means(
    smallest=0.2,
    strongest=4.0,
    residue=0.5,
    sparing=0.5,
    harsh=(0.25, 0.12),
    soft=(0.4, 0.35, 2.5),
    cut=0.3,
)
HELD_BACK = Means((("vng", 1.0),), (("nonlocal", 1.0),), (("webp", 0.35), ("jpeg", 0.65)))
