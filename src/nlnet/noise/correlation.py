"""Correlated noise, and what tells it from texture, which looks much like it.

Four differences are measured. What correlates the noise of a photo has softened the photo as much:
texture as sharp as pixels allow speaks against it. Noise is correlated over a few pixels only, so
that at half the size its spectrum is nearly flat; texture is as rough at every scale. In noise the
frequencies are independent: where low ones happen to be weak, medium ones are as strong as
elsewhere; in texture both are weak or strong together. And blotches of noise have colors of their
own, while texture is of one color mostly.

Together they give the probability that there is noise. It decides whether any is removed, and how
much at most. The constants were chosen on photos of simulated cameras and on images without noise,
all of BSDS500's `train`; ``python -m benchmarks.texture`` fits the weights and counts errors on
others. Nine scenes of real photos (PolyU) were looked at meanwhile, the other twenty were not.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.noise.blocks import Blocks, cut_blocks, halve

SCALES = 3
"""Scales at which correlated noise is measured: the full size, half and quarter of it."""

_BINS = (12, 12, 6)
"""Bins of brightness at each scale."""

_CONSTANT = 0.01
"""Variance below which blocks are constant: a tenth of a gray level, if white is 255."""

_WEIGHTS = (1.04, 0.085, 0.82, -3.2)
_OFFSET = -7.2
"""Logistic regression of noise against texture: weights of softness, degrees, color and
dependence. Fitted to a part of `train`; fits to other parts give less weight to the degrees, down
to 0.05, find as much noise, and change twice as many soft images without noise."""

_SOFTEST = 8.0
"""Softness that is as good as any larger one: no fine detail at all."""

_COLORS = (-3.0, 0.5)
_WITHOUT_COLOR = -1.0
"""Bounds of the evidence of colors, and what is taken for it in a gray image."""

_LIKE_NOISE = (35.0, 0.03)
"""Degrees of freedom at least, and dependence at most, of blocks that look like noise in every way.
What follows is not asked of them, so that strong noise in images without texture is found, too."""

_LIKELY = 0.3
_SURE = 0.9
_NEARLY = 0.1
"""Probability from which on noise is taken for correlated, and from which on it surely is noise; it
surely is, too, if blocks look like noise in nearly every way, up to this dependence."""

_SPECTRUM = (3.0, 2.0)
_STRONGER = (4.5, 2.0)
"""Times that low frequencies must be stronger than high ones in flat blocks, and times that the
noise there must be stronger than what fits white noise; less if it surely is noise. White noise of
5 in BSD68's texture comes to 7 and 5 times, but to 1.4 times what fits it where noise is sure.
Noise whose neighbors are correlated by a third comes to 2.3 and 6 times."""

_SLIGHTLY = 6.0
_HARMLESS = 1.7
"""If low frequencies are no more than so many times stronger, and it is not sure to be noise, what
is removed from the luminance does not harm: an image without noise stays above 40 dB, even if it
has the grain of a film, as one of BSD68. Noise of photos comes to more than 10 times."""

_USUAL = 6.0
_UNUSUAL = 0.7
"""Usual strength of a photo's noise, if its values go from 0 to 255, and the spread of stronger
noise, as a logarithm: what is much stronger is more likely to be texture."""

_MEASURED = 0.75
_MOST_TIMES = 2.0
"""How much the measured strength counts at most, as a power: the less sure it is that what was
measured is noise, the nearer to the usual the noise is taken to be, but never for more than so many
times what was measured. In photos, flat blocks have less noise than others, or texture."""

_DAMAGE = (1.0, 5.0)
"""Bound of what is removed from the luminance, times the probability that it is texture: the less
sure, the less is removed. More if blocks look like noise in every way: those of images without
noise have no more than 4 of what looks like it."""

_GROWTH = ((0.4, 0.65), (0.2, 0.5))
"""Least and largest growth of correlated noise from one scale to the next, in natural logarithms:
more is texture, less is an error of the measurement. White noise does not grow; noise whose
neighbors are all alike doubles, by 0.69."""

_RED_BLUE = np.array([1, 0, -1], np.float32) / np.float32(math.sqrt(2))
_GREEN_MAGENTA = np.array([1, -2, 1], np.float32) / np.float32(math.sqrt(6))
"""Differences of colors, in which white noise is as strong as in each channel."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What speaks for noise and against texture.

    Parameters
    ----------
    softness : float
        Logarithm of the power of low frequencies over that of high ones where there is texture:
        the mean of full and half size.
    degrees : float
        Degrees of freedom of flat blocks at half the size: the more, the flatter their spectrum.
    color : float
        How strong differences of colors are in flat blocks at a quarter of the size, relative to
        the luminance, as a logarithm.
    dependence : float
        How much stronger medium frequencies are where low ones are stronger, as a logarithm: the
        mean of full and half size. JPEG makes them so in noise, too, but at the full size only.
    """

    softness: float
    degrees: float
    color: float
    dependence: float

    @property
    def score(self) -> float:
        """Logarithm of how many times likelier noise is than texture alone."""
        values: tuple[float, ...] = dataclasses.astuple(self)
        return _OFFSET + sum(w * value for w, value in zip(_WEIGHTS, values, strict=True))

    @property
    def like_noise(self) -> bool:
        """Whether flat blocks look like noise in every way."""
        return self.degrees > _LIKE_NOISE[0] and self.dependence < _LIKE_NOISE[1]

    @property
    def nearly_like_noise(self) -> bool:
        """Whether flat blocks look like noise in nearly every way."""
        return self.degrees > _LIKE_NOISE[0] and self.dependence < _NEARLY


@dataclasses.dataclass(frozen=True)
class Flatness:
    """What the flattest blocks of an image say about correlated noise.

    Parameters
    ----------
    levels : tuple of float
        Standard deviation of the noise at each scale, times the scale.
    spectrum : float
        How many times stronger low frequencies are than high ones.
    evidence : Evidence
        What speaks for noise and against texture.
    channels : int
        Number of the image's channels.
    """

    levels: tuple[float, ...]
    spectrum: float
    evidence: Evidence
    channels: int

    @property
    def certainty(self) -> float:
        """Probability that there is correlated noise, rather than texture alone."""
        score = self.evidence.score
        if not self.evidence.like_noise:
            beyond = max(math.log(self.levels[0] / _USUAL), 0.0)
            score -= 0.5 * (beyond / _UNUSUAL) ** 2
        return 1 / (1 + math.exp(-score))

    @property
    def removable(self) -> float:
        """Strength of the noise that is removed if nobody says that it is noise."""
        certainty, strength = self.certainty, self.levels[0]
        if not self.evidence.like_noise:
            trust = _MEASURED * certainty
            strength = strength**trust * min(_USUAL, _MOST_TIMES * strength) ** (1 - trust)
        bound = _DAMAGE[self.evidence.like_noise] / max(1 - certainty, 1e-9)
        if self.spectrum < _SLIGHTLY and not self._sure:
            bound = min(bound, _HARMLESS)
        return min(strength, math.sqrt(self.channels) * bound)

    @property
    def _sure(self) -> bool:
        return self.evidence.nearly_like_noise or self.certainty > _SURE

    def is_correlated(self, white: float) -> bool:
        """Tell whether it is to be taken for correlated noise, or for white noise of a sigma."""
        return (
            self.certainty > _LIKELY
            and self.spectrum > _SPECTRUM[self._sure]
            and self.levels[0] > _STRONGER[self._sure] * white
            # Where less would be removed than as white noise, that is what it is.
            and self.removable > white
        )


def measure_flatness(tiles: Sequence[Array], low: float, high: float) -> Flatness | None:
    """Look at the flattest blocks of an image at several scales; None if there are too few.

    Parameters
    ----------
    tiles : sequence of (C, H, W) arrays
        The tiles of the image.
    low, high : float
        Blocks that reach one of these values are left out: there noise was clipped.
    """
    channels = len(tiles[0])
    # The mean of three channels has noise of 1 / sqrt(3): it is scaled to be as strong as theirs.
    scale = math.sqrt(channels)
    measured: list[_Measure] = []
    for number in range(SCALES):
        gray = [np.float32(scale * 2**number) * tile.mean(axis=0) for tile in tiles]
        limits = (scale * 2**number * low, scale * 2**number * high)
        measure = _measure(cut_blocks(gray, *limits), number)
        if measure is None:
            break
        measured.append(measure)
        if number < SCALES - 1:
            tiles = [halve(tile) for tile in tiles]
    if len(measured) < 2:
        return None
    full, half = measured[:2]
    evidence = Evidence(
        softness=(full.softness + half.softness) / 2,
        degrees=half.degrees,
        color=_color(tiles, measured),
        dependence=max((full.dependence + half.dependence) / 2, 0.0),
    )
    levels = [full.level]
    pairs = itertools.pairwise(each.level for each in measured)
    for (before, after), limits in zip(pairs, _GROWTH, strict=False):
        levels.append(levels[-1] + float(np.clip(after - before, *limits)))
    return Flatness(tuple(map(math.exp, levels)), full.spectrum, evidence, channels)


@dataclasses.dataclass(frozen=True)
class _Measure:
    """What blocks say at one scale; the level is the logarithm of the noise's sigma."""

    level: float
    degrees: float
    spectrum: float = 0.0
    softness: float = 0.0
    dependence: float = 0.0


def _measure(blocks: Blocks, number: int) -> _Measure | None:
    """Measure the blocks of a scale; None if there are too few."""
    members = list(blocks.bins_of_equal_count(_BINS[number]))
    if len(members) < 2:
        return None
    bins = [blocks.calmest(each) for each in members]
    # Blocks without any noise, saturated or flattened by JPEG, say nothing about the others.
    noisy = [each for each in bins if each.variance > _CONSTANT]
    bins = sorted(noisy if 2 * len(noisy) > len(bins) else bins, key=lambda each: each.spread)
    # Where blocks are most alike, they are of noise.
    alike = bins[: max(2, len(bins) // 4)]
    variance = float(np.median([each.variance for each in alike]))
    level = 0.5 * math.log(max(variance, 1e-6))
    degrees = float(np.median([each.degrees for each in alike]))
    if number > 1:
        return _Measure(level, degrees)
    dependences = sorted(blocks.dependence(each) for each in members)
    return _Measure(
        level,
        degrees,
        float(np.median([blocks.untextured(each)[1] for each in members])) if number == 0 else 0.0,
        min(-math.log(max(blocks.sharpness(), 1e-9)), _SOFTEST),
        dependences[max(1, len(members) // 4 - 1)],
    )


def _color(tiles: Sequence[Array], measured: Sequence[_Measure]) -> float:
    """Return the evidence of colors; the tiles are those of the coarsest scale."""
    if len(tiles[0]) == 1 or len(measured) < SCALES:
        return _WITHOUT_COLOR
    found = []
    for weights in (_RED_BLUE, _GREEN_MAGENTA):
        planes = [np.float32(2 ** (SCALES - 1)) * np.tensordot(weights, tile, 1) for tile in tiles]
        measure = _measure(cut_blocks(planes, -math.inf, math.inf), SCALES - 1)
        if measure is not None:
            found.append(measure.level)
    return float(np.clip(max(found) - measured[-1].level, *_COLORS)) if found else _WITHOUT_COLOR
