// Photon noise: its gain and read noise, from the flattest blocks of an image.
//
// An image is cut into blocks of 8x8 pixels, each is taken apart by the DCT, and the blocks are
// sorted into bins by their brightness. The blocks of a bin whose low frequencies are weakest have
// hardly any texture: the power of their high frequencies is that of the noise (M. Ponomarenko et
// al., "An automatic approach to lossy compression of AVIRIS images", 2007). Over the brightness,
// it is a line: its slope is the gain.
#pragma once

#include "../kernels.h"
#include "decisions.h"
#include "lines.h"
#include "sample.h"
#include "sorting.h"

namespace nlnet {
namespace {

// The blocks of one brightness that are calmest: their mean value, their noise, how many count, and
// which share of them that is.
struct CalmBlocks {
    double intensity, variance, calm, share;
};

struct BlockBins {
    int count;
    CalmBlocks bins[kBlockBins];
};

// Pairs of indices from 0 to 7 whose sum is within bounds.
constexpr int frequencies(int from, int to) {
    int count = 0;
    for (int sum = from; sum <= to; sum++) count += sum < kBlockSide ? sum + 1 : 15 - sum;
    return count;
}
constexpr int kMiddleCount = frequencies(kMiddleFrom, kMiddleTo);
constexpr int kHighCount = frequencies(kHighFrom, 14);
constexpr int kHighestCount = frequencies(kHighestFrom, 14);

// Blocks of a plane along a side.
inline int64_t blocks_along(int64_t length) {
    return length < kBlockSide ? 0 : (length - kBlockSide) / kBlockStep + 1;
}

constexpr float kLeftOutBlock = -__builtin_inff();  // in place of the mean

// Leave blocks out that reach the limit, at which noise was clipped, and constant ones.
inline void leave_blocks_out(Block *blocks, int64_t count, double limit) {
    int64_t varied = 0;
    double equal = 0;
    for (int64_t i = 0; i < count; i++) {
        if (blocks[i].least == blocks[i].most) continue;
        varied++;
        equal += double(blocks[i].equal);
    }
    const double neighbors = double(varied) * kBlockSide * (kBlockSide - 1);
    const bool drawn = varied == 0 || equal > kDrawn * neighbors;
    for (int64_t i = 0; i < count; i++) {
        const bool constant = blocks[i].least == blocks[i].most;
        if ((constant && !drawn) || !(double(blocks[i].most) < limit)) {
            blocks[i].mean = kLeftOutBlock;
        }
    }
}

constexpr int kIndexBits = 28;  // of a block, in a key that its low frequencies sort by
constexpr int kPowerBits = 31;  // of a float that is not negative
static_assert(kBlockBins <= 1 << (64 - kIndexBits - kPowerBits), "bins are the highest bits");

// Sort the blocks of a channel into bins that are equally wide on a scale of square roots. On that
// scale photon noise is equally strong everywhere, so that bright bins, which are of few blocks,
// are not narrower than they need to be.
inline BlockBins find_bins(const Block *blocks, int64_t count, Sorter &sorter) {
    BlockBins found = {};
    float least = __builtin_inff(), most = -__builtin_inff();
    for (int64_t i = 0; i < count; i++) {
        if (blocks[i].mean == kLeftOutBlock) continue;
        least = blocks[i].mean < least ? blocks[i].mean : least;
        most = blocks[i].mean > most ? blocks[i].mean : most;
    }
    if (!(least <= most)) return found;
    const double step = double(__builtin_sqrtf(most - least)) / kBlockBins;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (blocks[i].mean == kLeftOutBlock) continue;
        const double root = double(__builtin_sqrtf(blocks[i].mean - least));
        int bin = step > 0 ? int(smaller_number(root / step, kBlockBins - 1)) : kBlockBins - 1;
        while (bin > 0 && bin * step > root) bin--;
        while (bin < kBlockBins - 1 && (bin + 1) * step <= root) bin++;
        const uint64_t power = bits_of(blocks[i].low);
        sorter.keys[kept++] =
            uint64_t(bin) << (kIndexBits + kPowerBits) | power << kIndexBits | uint64_t(i);
    }
    sorter.sort(kept);
    for (int64_t first = 0, last = 0; first < kept; first = last) {
        const auto bin_at = [&](int64_t i) { return sorter.keys[i] >> (kIndexBits + kPowerBits); };
        while (last < kept && bin_at(last) == bin_at(first)) last++;
        if (last - first < kLeastBlocks) continue;
        const int64_t calm = larger_of(kLeastBlocks / 2, int64_t(kCalm * double(last - first)));
        double intensity = 0, middle = 0, high = 0, highest = 0;
        for (int64_t i = first; i < first + calm; i++) {
            const Block &block = blocks[sorter.keys[i] & ((uint64_t(1) << kIndexBits) - 1)];
            intensity += double(block.mean);
            middle += double(block.middle);
            high += double(block.high);
            highest += double(block.highest);
        }
        middle /= double(calm * kMiddleCount);
        highest /= double(calm * kHighestCount);
        const double excess = larger_number(middle / larger_number(highest, 1e-9) - 1, 0) / kFlat;
        const double share = 1 / (1 + excess * excess * excess * excess);
        found.bins[found.count++] = {intensity / double(calm), high / double(calm * kHighCount),
                                     double(calm) * share, share};
    }
    return found;
}

// How far the variance of a bin is from a line, in its standard error.
inline double misfit(const CalmBlocks &bin, const Line &line) {
    const double fitted = larger_number(line.at(bin.intensity), 1e-6);
    // Blocks overlap: there is twice the error that independent ones would have.
    const double error = 2 * fitted * square_root(2 / (kHighCount * bin.calm));
    return (larger_number(bin.variance, 1e-6) - fitted) / error;
}

// Fit a line by least squares; what lies far above is texture, and counts for little. `black` is
// where it is 0, if it is given.
inline Line fit_blocks(const BlockBins &found, const double *black = nullptr) {
    Line line = {0, 0};
    for (int round = 0; round < kBlockRounds; round++) {
        LineSums sums(black == nullptr ? found.bins[0].intensity : *black);
        for (int i = 0; i < found.count; i++) {
            const CalmBlocks &bin = found.bins[i];
            const double variance = larger_number(bin.variance, 1e-6);
            double fitted = variance, weight = bin.calm;
            if (round > 0) {
                fitted = larger_number(line.at(bin.intensity), 1e-6);
                const double away = misfit(bin, line);
                weight *= smaller_number(1, 2 / larger_number(away, 1e-9));
                weight *= smaller_number(1, 4 / larger_number(-away, 1e-9));
            }
            sums.add(bin.intensity, variance, weight / (fitted * fitted));
        }
        line = black == nullptr ? sums.fit() : sums.fit_through_origin();
    }
    return line;
}

// The same, but a line that is 0 above black is one from black, unless the blocks speak against it:
// pixels of few photons would be darker than such a line allows, and be stretched too much.
inline Line fit_from_black(const BlockBins &found, double black) {
    const Line line = fit_blocks(found);
    if (!(line.at(black) < 0)) return line;
    const Line from_black = fit_blocks(found, &black);
    double worse = 0;
    for (int i = 0; i < found.count; i++) {
        const double free = misfit(found.bins[i], line);
        const double bound = misfit(found.bins[i], from_black);
        worse += smaller_number(bound * bound, kOutlier) - smaller_number(free * free, kOutlier);
    }
    return worse < kSignificant ? from_black : line;
}

// Fit photon noise to one channel; false if it has no block. `black` is the value of no light, for
// images of one brightness; `counts` says that nothing is below it, as of photons without read
// noise.
inline bool fit_photons(const BlockBins &found, double black, bool counts, nlnet_photons *level) {
    double total = 0, mean = 0, intensity = 0;
    double darkest = found.bins[0].intensity, brightest = darkest;
    for (int i = 0; i < found.count; i++) {
        const CalmBlocks &bin = found.bins[i];
        total += bin.calm;
        mean += bin.calm * larger_number(bin.variance, 1e-6);
        intensity += bin.calm * bin.intensity;
        darkest = smaller_number(darkest, bin.intensity);
        brightest = larger_number(brightest, bin.intensity);
    }
    if (!(total > 0)) return false;
    mean /= total;
    const double light = intensity / total - black;
    if (found.count < kLeastBins) {
        *level = {mean / light, 0, black};
        return light > 0;
    }
    const Line line = counts ? fit_from_black(found, black) : fit_blocks(found);
    if (line.slope > 0) {
        *level = {line.slope, square_root(larger_number(line.foot, 0)),
                  larger_number(-line.foot / line.slope, 0)};
    } else {
        // The noise does not grow: next to none of it is of photons.
        const double width = larger_number(larger_number(brightest - darkest, light), 1e-6);
        *level = {kNoGain * mean / width, square_root(mean), 0};
    }
    return true;
}

// The line of the variance over the brightness.
inline Line line_of(const nlnet_photons &level) {
    return {level.gain, level.read * level.read - level.gain * level.black};
}

// Whether noise depends on the brightness in any way, in blocks that are not texture.
inline bool depends_on_brightness(const BlockBins &found) {
    double least = __builtin_inf(), most = 0;
    for (int i = 0; i < found.count; i++) {
        if (!(found.bins[i].calm > double(kLeastBlocks) / 4)) continue;
        least = smaller_number(least, found.bins[i].variance);
        most = larger_number(most, found.bins[i].variance);
    }
    return most > kVariation * kVariation * least;
}

// A level that was found on the scale of the sample, in the units of the image.
//
// One line has many names: the more is read noise, the lower is black. It is named with black at 0,
// unless values so far below 0, or so little noise there, say that black is elsewhere.
inline nlnet_photons in_image(const nlnet_photons &level, const SampleScale &scale, double least) {
    const double gain = level.gain * scale.unit;
    const double foot = line_of(level).foot * scale.unit * scale.unit - gain * scale.low;
    const double rounding = 1e-9 * gain * gain;  // of a line that is 0 at black
    const double read = foot > rounding ? square_root(foot) : 0;
    if (foot >= -rounding && least >= -kDarkest * read) return {gain, read, 0};
    return {gain, 0, -foot / gain};
}

// Whether noise grows with the brightness in the blocks of a channel as the eye says; if it does
// not look like that of photons, hardly any block may be texture.
inline bool grows(const Block *blocks, int64_t count, const BlockBins &found, const Line &flat,
                  const Line &seen, bool looks_so, Sorter &sorter) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (blocks[i].mean != kLeftOutBlock) sorter.keys[kept++] = key_of(double(blocks[i].mean));
    }
    sorter.sort(kept);
    const auto at = [&](int64_t place) { return number_of(sorter.keys[place]); };
    const double low = quantile(kept, kFew, at), high = quantile(kept, 1 - kFew, at);
    double shares = 0;
    for (int i = 0; i < found.count; i++) shares += found.bins[i].share;
    const bool clear = looks_so || shares > kClear * found.count || depends_on_brightness(found);
    return clear && smaller_number(flat.growth(low, high), seen.growth(low, high)) > kGrowth;
}

}  // namespace
}  // namespace nlnet
