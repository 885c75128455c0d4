"""What the eye sees: how strong the noise of every place is, and of which kind.

The eye is a small network (`nlnet.network.eye`), trained on simulated pictures of everything that
cameras, films and microscopes do (`nlnet.training.eye`). For every square of 16x16 pixels it says
how strong the noise is at full, half and quarter size, in luma and in chroma, how far off each of
these may be, and which kind of noise it is. Here its answers become maps: squares are averaged by
how sure the eye is of them, and where it is unsure, squares of the same brightness tell.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nlnet.engine.tasks import look
from nlnet.network.eye import Eye, EyeConfig
from nlnet.network.layers import Layer
from nlnet.network.prepared import prepare_eye
from nlnet.noise.cells import Cells, Curve, Maps, map_of
from nlnet.noise.record import SCALES, Camera
from nlnet.noise.sample import Sample

KINDS = ("none", "white", "poisson", "camera")
"""What the eye tells apart, in its order."""

_PIECE = 16
"""Cells along a side of the pieces that the engine works on, at most."""

_VARIATION = 2.0
"""Times that it must vary with the brightness in any way to be removed by maps."""

_FINE = 0.5
_NONE = 0.5
_OCTAVE = 1.35
"""If steps between values are finer than this share of what 8 bits have, noise is not improbable,
and at half the size it is not stronger than this times what white noise would have, it is not
correlated."""

_CALIBRATION = (1.17, 1.24)
"""Slope and shift that turn the eye's odds of no noise into how often there is none: fitted to
pictures that it was not trained on (`benchmarks.certainty`)."""

_DOUBTFUL = 0.35
"""Below this probability noise is taken for none."""

_SEEN = (-255.0, 510.0)
"""Values that the eye sees, where most of the image is from 0 to 255: stars are cut off."""


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What the eye sees of an image.

    Parameters
    ----------
    strengths : (2, 3, h, w) array
        As of `nlnet.noise.record.Camera`, in the units of the image.
    odds : dict
        The probability of each of `KINDS`.
    line : (slope, foot)
        Variance of the noise over the brightness, on the scale of the sample.
    variation : float
        How many times stronger it is at the brightness where it is strongest than elsewhere.
    fine : bool
        Whether values are finer than those of 8 bits, and so cannot be from a lossy file.
    """

    strengths: Maps
    odds: dict[str, float]
    line: tuple[float, float]
    variation: float
    fine: bool

    @property
    def kind(self) -> str:
        """The most probable kind; "white" for any uncorrelated noise.

        Whether that is of photons, no single place tells, but how it grows with the brightness.
        """
        if self._is_uncorrelated:
            return "white"
        return "camera" if self.noisy > _DOUBTFUL else "none"

    @property
    def looks_like_photons(self) -> bool:
        """Whether it looks like photon noise most; how it grows with the brightness decides."""
        return self.odds["poisson"] > max(self.odds["white"], self.odds["camera"])

    @property
    def _is_uncorrelated(self) -> bool:
        uncorrelated = self.odds["white"] + self.odds["poisson"]
        if self.fine and self.odds["none"] < _NONE and self._octave < _OCTAVE:
            return True  # nothing has smoothed it: neither its spectrum nor a lossy file says so
        return uncorrelated > max(self.odds["none"], self.odds["camera"])

    @property
    def _octave(self) -> float:
        """How much stronger luma is at half the size than white noise would be."""
        full, half = self.strengths[0, :2].mean(axis=(1, 2))
        return float(2 * half / max(full, 1e-30))

    @property
    def varies(self) -> bool:
        """Whether the noise depends on the brightness in any way."""
        return self.variation > _VARIATION

    @property
    def certainty(self) -> float:
        """The probability that there is noise, or none if that is the kind."""
        return 1 - self.noisy if self.kind == "none" else self.noisy

    @property
    def noisy(self) -> float:
        """The probability that there is noise, as often right as it says (`_CALIBRATION`)."""
        slope, shift = _CALIBRATION
        none = min(max(self.odds["none"], 1e-6), 1 - 1e-6)
        return 1 / (1 + math.exp(shift + slope * math.log(none / (1 - none))))

    @property
    def sigma(self) -> float:
        """Standard deviation at the full size, on average over the image."""
        return float(self.strengths[0, 0].mean())

    def as_camera(self) -> Camera | None:
        """Return the noise as that of a camera; None if there is none."""
        if not self.sigma > 0:
            return None
        return Camera(self.strengths)


def see(sample: Sample) -> Seen | None:
    """Look at a sample of an image; None if all of its values are the same."""
    if sample.unit == 0:
        return None
    tiles = [np.clip(tile, *_SEEN) for tile in sample.scaled_tiles]
    cells = [
        Cells.of(tile, maps, sample.scaled_limits)
        for tile, maps in zip(tiles, _look(tiles), strict=True)
    ]
    curve = Curve(cells)
    values = map_of(cells, curve, sample)  # (6, h, w)
    strengths = np.maximum(np.exp2(values) - 1, 0) * sample.unit
    if sample.shape[0] == 3:
        strengths *= math.sqrt(3)  # the luminance, a mean of three, has less noise than colors
    sides = np.exp2(np.arange(SCALES)).reshape(1, SCALES, 1, 1)
    maps = strengths.reshape(2, SCALES, *strengths.shape[1:]) / sides
    if sample.shape[0] == 1:
        maps[1] = maps[0]
    alive = [each.alive for each in cells]
    votes = [(each.logits * each.alive).sum(axis=(1, 2)) for each in cells]
    logits = np.sum(votes, axis=0) / np.sum([each.sum() for each in alive])
    odds = np.exp(logits - logits.max())
    shares = (odds / odds.sum()).tolist()
    kinds = dict(zip(KINDS, shares, strict=True))
    fine = sample.step < _FINE * sample.unit
    return Seen(maps.astype(np.float32), kinds, curve.line, curve.variation, fine)


def _look(tiles: Iterable[Maps]) -> list[Maps]:
    """Return what the eye says of tiles, (16, h, w) each: for every cell of 16x16 pixels.

    Tiles of any size are cut into equal pieces, which the engine's threads share; pieces overlap
    where they do not fit, and cells beyond the border are mirrored.
    """
    eye = prepare_eye(shipped_eye())
    answers = []
    for tile in tiles:
        cells = [-(-length // eye.unit) for length in tile.shape[1:]]
        padding = [
            (0, n * eye.unit - length) for n, length in zip(cells, tile.shape[1:], strict=True)
        ]
        padded = np.pad(tile, [(0, 0), *padding], mode="symmetric")
        sides = [-(-n // -(-n // _PIECE)) for n in cells]
        starts = [_starts(n, side) for n, side in zip(cells, sides, strict=True)]
        places = [(top, left) for top in starts[0] for left in starts[1]]
        pieces = np.stack([_cut(padded, place, sides, eye.unit) for place in places])
        whole = np.empty((eye.outputs, *cells), np.float32)
        for (top, left), maps in zip(places, look(eye, pieces), strict=True):
            whole[:, top : top + sides[0], left : left + sides[1]] = maps
        answers.append(whole)
    return answers


def _starts(count: int, side: int) -> list[int]:
    """Return where pieces of so many cells begin, so that they cover all."""
    return [min(first, count - side) for first in range(0, count, side)]


def _cut(padded: Maps, place: tuple[int, int], sides: Sequence[int], unit: int) -> Maps:
    (top, left), (height, width) = place, sides
    rows, columns = (
        slice(top * unit, (top + height) * unit),
        slice(left * unit, (left + width) * unit),
    )
    return padded[:, rows, columns]


@functools.cache
def shipped_eye() -> Eye:
    """Return the eye that is part of the package."""
    from safetensors.numpy import load

    content = (importlib.resources.files(__package__) / "eye.safetensors").read_bytes()
    return eye_from_tensors(load(content))


def eye_from_tensors(tensors: Mapping[str, npt.NDArray[np.floating]]) -> Eye:
    """Return an eye of the usual sizes from its weights and biases, by the names of layers."""
    config = EyeConfig(outputs=16)
    layers = (
        Layer(
            tensors[f"{spec.name}.weights"].astype(np.float32),
            tensors[f"{spec.name}.biases"].astype(np.float32),
        )
        for spec in config.layers
    )
    return Eye(config, tuple(layers))
