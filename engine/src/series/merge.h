// A page and its neighbours, moved to where they show the same, averaged where they do.
//
// The guides, denoised pages, tell how well a neighbour fits. Over 7x7 pixels, they hardly err in
// the mean. So what the means differ by, m, is a change of brightness if it is large, and the share
// m^2 / (m^2 + c) of it is taken from the neighbour. The change may add to the brightness or
// multiply it; the better either fits, the more of the change multiplies. d is the mean squared
// difference of the guides after that, in units of the noise's variance, the square of the mean of
// it counted once more, several times, and so is a large second difference of what is taken. Guides
// err more in texture than in smooth areas, and the two neighbours that fit best tell how much. So
// d is measured in t, twice the mean of the two least d, within limits, and a neighbour has the
// weight 1 / ((1 + r^2) (1 + (r / 4)^4)) with r = d / t, less if its noise is made stronger.
#pragma once

#include "tiles.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr float kLeastError = 0.1f, kMostError = 1.0f;  // t: beyond, a neighbour shows other things
constexpr float kMeans = 4;         // how often the square of the mean difference counts
constexpr float kChange = 0.05f;    // c: square of a change of which half is taken
constexpr float kMostTypical = 10;  // d that is counted among the least
constexpr float kDark = 0.5f;       // mean below which a factor is not known
constexpr float kMostFactor = 2;    // by which brightness is multiplied; at least its inverse

// The means of a window.
struct Window {
    float shift, bright, squares, cross, power;

    // The mean squared difference, the neighbour multiplied by 1 + scale, so that a change is taken
    // from its mean.
    NLNET_ALWAYS_INLINE float apart(float change, float scale) const {
        const float rest = -change - scale * bright;
        const float d = squares + scale * (2 * cross + scale * power) +
                        rest * (rest + 2 * (shift + scale * bright));
        return d > 0 ? d : 0;
    }
};

// The change of a neighbour's brightness around every pixel, and what is left of the differences.
static void explain(const MergeTile &tile, int number, int64_t rows, int64_t columns) {
    for (int what = 0; what < kShown; ++what) {
        average(tile.shown[what], rows, columns, tile.lines, tile.means[what]);
    }
    float *apart = tile.differences + number * kWide, *changes = tile.changes + number * kWide;
    float *scales = tile.scales + number * kWide, *brightness = tile.brightness + number * kWide;
    for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = y * kWideColumns; x < y * kWideColumns + columns; ++x) {
            const Window window = {tile.means[kShift][x], tile.means[kBright][x],
                                   tile.means[kSquares][x], tile.means[kCross][x],
                                   tile.means[kPower][x]};
            const float squared = window.shift * window.shift;
            const float rest = window.shift * (kChange / (squared + kChange));
            const float change = window.shift - rest, bright = window.bright + tile.base;
            const float least = bright < bright - change ? bright : bright - change;
            float factor = least > kDark ? 1 - change / bright : 1;
            factor = factor > kMostFactor       ? kMostFactor
                     : factor < 1 / kMostFactor ? 1 / kMostFactor
                                                : factor;
            const float added = window.apart(change, 0);
            const float multiplied = window.apart(change, factor - 1);
            const float left = added * added, right = multiplied * multiplied;
            const float scale = (factor - 1) * (left / (left + right + 1e-9f));
            changes[x] = change;
            scales[x] = scale;
            brightness[x] = bright;
            apart[x] = window.apart(change, scale) + kMeans * (rest * rest);
        }
    }
}

// The two least differences of each pixel.
static void order(const MergedPages &pages, const MergeTile &tile, int64_t rows, int64_t columns) {
    for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
            const int64_t at = y * kWideColumns + x;
            float least = kMostTypical, second = kMostTypical;
            for (int number = 0; number < pages.count; ++number) {
                const float d = tile.differences[number * kWide + at];
                second = d < least ? least : d < second ? d : second;
                least = d < least ? d : least;
            }
            tile.shown[kSquares][at] = pages.count == 1 ? least : 0.5f * (least + second);
        }
    }
}

static void merge_pixel(const MergedPages &pages, const MergeTile &tile, int64_t j, int64_t i,
                        float allowed) {
    const int64_t at = (tile.top + j) * pages.width + tile.left + i;
    const int64_t middle = (j + kRadius) * kWideColumns + i + kRadius;
    float sums[3] = {}, weights = 1, variance = 1;
    for (int channel = 0; channel < pages.channels; ++channel) {
        sums[channel] = pages.noisy[channel * pages.height * pages.width + at];
    }
    for (int number = 0; number < pages.count; ++number) {
        const int64_t here = number * kWide + middle;
        // A change of brightness is smooth: what is there in one page only bends it.
        const float *change = tile.changes + here;
        const float along = 2 * *change - change[-kRadius] - change[kRadius];
        const float down =
            2 * *change - change[-kRadius * kWideColumns] - change[kRadius * kWideColumns];
        const float bend = along * along + down * down;
        const float d =
            tile.differences[here] + kMeans * (bend * (bend * bend / (1 + bend * bend)));
        const float ratio = d / allowed, squared = ratio * ratio;
        // Noise that is made stronger counts less.
        const float scale = tile.scales[here];
        const float factor = pages.neighbours[number].gain * (1 + scale), power = factor * factor;
        const float weight =
            1 / ((1 + squared) * (1 + squared * squared * (1.0f / 256)) * (power > 1 ? power : 1));
        const float taken = *change + scale * tile.brightness[here];
        weights += weight;
        variance += weight * weight * power;
        const float *moved = tile.moved + number * pages.channels * kMergeRows * kMergeColumns +
                             j * kMergeColumns + i;
        for (int channel = 0; channel < pages.channels; ++channel) {
            sums[channel] +=
                weight * ((1 + scale) * moved[channel * kMergeRows * kMergeColumns] - taken);
        }
    }
    const float own = 1 / weights;
    for (int channel = 0; channel < pages.channels; ++channel) {
        pages.merged[channel * pages.height * pages.width + at] = sums[channel] * own;
    }
    const float left = variance * (own * own), removed = left + 1 - 2 * own;
    pages.left[at] = __builtin_sqrtf(left);
    pages.removed[at] = removed > 0 ? __builtin_sqrtf(removed) : 0;
}

static void merge_tile(const MergedPages &pages, const MergeTile &tile) {
    const int64_t wide_rows = tile.rows + 2 * kRadius, wide_columns = tile.columns + 2 * kRadius;
    for (int number = 0; number < pages.count; ++number) {
        move(pages, number, tile);
        explain(tile, number, wide_rows, wide_columns);
    }
    order(pages, tile, wide_rows, wide_columns);
    float *typical = tile.means[kSquares];
    average(tile.shown[kSquares], tile.rows, tile.columns, tile.lines, typical);
    for (int64_t j = 0; j < tile.rows; ++j) {
        for (int64_t i = 0; i < tile.columns; ++i) {
            const float twice = 2 * typical[j * kWideColumns + i];
            merge_pixel(pages, tile, j, i,
                        twice < kLeastError  ? kLeastError
                        : twice > kMostError ? kMostError
                                             : twice);
        }
    }
}

static void merge(const MergedPages &pages, Memory &memory) {
    MergeTile tile = lay_out(pages, memory);
    const int64_t plane = pages.height * pages.width;
    for (tile.top = pages.first; tile.top < pages.last; tile.top += kMergeRows) {
        tile.rows = smaller_of(kMergeRows, pages.last - tile.top);
        for (tile.left = 0; tile.left < pages.width; tile.left += kMergeColumns) {
            tile.columns = smaller_of(kMergeColumns, pages.width - tile.left);
            const float *middle = pages.guide + (tile.top + tile.rows / 2) * pages.width +
                                  tile.left + tile.columns / 2;
            tile.base = 0;
            for (int channel = 0; channel < pages.channels; ++channel) {
                tile.base += middle[channel * plane] * (1.0f / float(pages.channels));
            }
            merge_tile(pages, tile);
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
