// Everything that is decided about the noise of an image, in numbers: what is looked at, what the
// eye's maps mean, and from when on noise is taken for which kind. All strengths are on the scale
// of the sample, on which what the values fill is 0 to 255, unless it says otherwise.
#pragma once

#include <stdint.h>

namespace nlnet {

// ---- The sample ----

// Of larger images, so many pixels are looked at, in square tiles on a grid. A page has some tiles
// at least: if there is room for fewer, they are half as wide.
constexpr int64_t kMostPixels = 400000;
constexpr int64_t kTileSide = 192;
constexpr int64_t kLeastTiles = 4;

// Pixels that an image must have along a side.
constexpr int64_t kLeastSide = 8;

// Values that are sorted to find what they fill: percentiles, moved apart by a tenth of what is
// between them, but not beyond the extremes, at which most images end. So stars and hot pixels are
// not taken for white.
constexpr int64_t kMostValues = 50000;
constexpr double kOutside = 0.01;  // share of the values below, and above
constexpr double kBeyond = 0.1;

// Scaled values are cut off here, where they are no numbers to reckon with any more.
constexpr double kMostScaled = 1e9;

// A value that so many pixels share, and none goes beyond, is one where values were clipped.
constexpr double kClippedShare = 1e-3;

// Constant patches and blocks carry no information on noise, and are left out; unless a larger
// share of the neighbors in all others are equal. Then the image is a drawing, and they say that it
// has no noise.
constexpr double kDrawn = 0.5;

// ---- The eye ----

// Maps that the eye gives of every cell: log2(1 + strength) of luma at the full size, at half and
// at a quarter of it, then those of chroma; the natural logarithm of how far off each may be; and
// the logits of the kinds, in the order of nlnet_found_kind. More may follow.
constexpr int kScales = 3;
constexpr int kStrengths = 0, kStrengthMaps = 2 * kScales;
constexpr int kSpreads = kStrengths + kStrengthMaps;
constexpr int kLogits = kSpreads + kStrengthMaps, kKinds = 4;
constexpr int kEyeMaps = kLogits + kKinds;  // at least

// Cells along a side of the pieces that the eye looks at, at most.
constexpr int64_t kPieceCells = 16;

// Values that the eye sees: stars are cut off.
constexpr float kSeenLow = -255, kSeenHigh = 510;

// Share of the pixels of a cell that were not clipped, at least, for it to count; others have next
// to no weight, but tell in an image that is clipped everywhere.
constexpr double kAlive = 0.9;
constexpr float kNearlyNone = 1e-5f;

// Bounds of the logarithm of how far off a value may be: a cell that the eye is very sure of, such
// as a clipped one, does not speak for the rest of the image.
constexpr double kLeastSpread = -2, kMostSpread = 2;

// ---- Maps and brightness ----

constexpr int64_t kSquareCells = 4;  // along a side of a square of the map
constexpr int kCurveBins = 8;        // of brightness
constexpr double kBinPrior = 0.05;   // what all cells tell counts in each bin, of the mean bin
constexpr double kPrior = 0.5;       // what the brightness tells of a cell counts, of the mean cell

// Rounds of the fit of a line to the variance over the brightness; what is off by more than this
// share counts for less.
constexpr int kEyeRounds = 6;
constexpr double kClose = 0.3;

// ---- Photon noise ----

constexpr int kBlockSide = 8;                   // of the blocks that are transformed
constexpr int kBlockStep = 3;                   // pixels from a block to the next one
constexpr int kBlockBins = 24, kLeastBins = 4;  // of brightness, and those that a line takes
constexpr int64_t kLeastBlocks = 40;            // of a bin
constexpr double kCalm = 0.1;                   // share of a bin's blocks that are taken for flat
constexpr int kBlockRounds = 20;

// The spectrum of noise is flat, that of texture falls: a bin counts for half if middle frequencies
// have more power than the highest by this share, and for hardly anything if by twice as much.
constexpr double kFlat = 0.25;

// The sums of two indices of the DCT that are low, middle, high and highest frequencies.
constexpr int kLowFrom = 1, kLowTo = 8, kMiddleFrom = 6, kMiddleTo = 8;
constexpr int kHighFrom = 9, kHighestFrom = 11;

// Squared errors by which a line that fits best must fit better than one from black to be taken,
// and those that a bin counts at most.
constexpr double kSignificant = 9, kOutlier = 16;

// Share of the variance that grows over the brightness, where photon noise is asked for but none is
// found.
constexpr double kNoGain = 0.01;

// Share of the blocks that may be brighter, or darker, than where growth is looked for: stars.
constexpr double kFew = 0.02;

// Share of the calmest blocks that are not texture, from which on they decide alone.
constexpr double kClear = 0.9;

// Times that photon noise grows over the image, at least, both to the eye and in flat blocks; what
// grows less is white.
constexpr double kGrowth = 1.2;

// Standard deviations of the read noise that values may lie below black.
constexpr double kDarkest = 6;

// ---- Which kind ----

// Times that noise varies with the brightness in any way, to the eye and in flat blocks, to be
// removed by maps if no line fits.
constexpr double kVariation = 2;

// If steps between values are finer than this share of what 8 bits have, noise is not improbable,
// and at half the size it is not stronger than this times what white noise would have, it is not
// correlated.
constexpr double kFine = 0.5, kImprobable = 0.5, kOctave = 1.35;

// Probability from which on noise looks like that of photons.
constexpr double kProbable = 0.5;

// Slope and shift that turn the eye's odds of no noise into how often there is none: fitted to
// pictures that it was not trained on (benchmarks/certainty.py).
constexpr double kCalibrationSlope = 2.01, kCalibrationShift = 1.67;

// Below this probability noise is taken for none.
constexpr double kDoubtful = 0.35;

// Noise below this share of the smallest difference between values is taken for none.
constexpr double kTooLittle = 0.5;

}  // namespace nlnet
