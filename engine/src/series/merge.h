// A page and its neighbours, moved to where they show the same, averaged where they do.
//
// The guides, denoised pages, tell how well a neighbour fits. Over 7x7 pixels, they hardly err in
// the mean. So what the means differ by, m, is a change of brightness if it is large, and the share
// m^2 / (m^2 + c) of it is taken from the neighbour. d is the mean squared difference of the guides
// without that, in units of the noise's variance, the square of the mean of it counted once more,
// several times, and so is a large second difference of what is taken. Guides err more in texture
// than in smooth areas, and the two neighbours that fit best tell how much. So d is measured in t,
// twice the mean of the two least d, within limits, and a neighbour has the weight
// 1 / ((1 + r^2) (1 + (r / 4)^4)) with r = d / t.
#pragma once

#include "field.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kRadius = 3;          // of the windows that differences are averaged over
constexpr int kHalo = 2 * kRadius;  // of the differences that a tile needs
constexpr int kMergeRows = 64, kMergeColumns = 128;     // of a tile
constexpr float kLeastError = 0.1f, kMostError = 0.6f;  // t: beyond, a neighbour shows other things
constexpr float kFar = 1e6f;                            // d where a neighbour shows nothing
constexpr float kMeans = 4;         // how often the square of the mean difference counts
constexpr float kChange = 0.05f;    // c: square of a change of which half is taken
constexpr float kMostTypical = 10;  // d that is counted among the least

constexpr int64_t kWideRows = kMergeRows + 2 * kHalo;
constexpr int64_t kWideColumns = kMergeColumns + 2 * kHalo;
constexpr int64_t kWide = kWideRows * kWideColumns;

// Catmull and Rom's kernel, made a little sharper, as image libraries have it.
static NLNET_ALWAYS_INLINE void cubic_weights(float share, float *weights) {
    constexpr float a = -0.75f;
    const float before = 1 + share, rest = 1 - share;
    weights[0] = ((a * before - 5 * a) * before + 8 * a) * before - 4 * a;
    weights[1] = ((a + 2) * share - (a + 3)) * share * share + 1;
    weights[2] = ((a + 2) * rest - (a + 3)) * rest * rest + 1;
    weights[3] = 1 - weights[0] - weights[1] - weights[2];
}

// Where a pixel of the page is in a neighbour, and the weights of the 4x4 pixels around.
struct Tap {
    int64_t top, left;
    float y[4], x[4];
    bool outside;  // the neighbour does not show it
    bool inner;    // all pixels around are inside
};

static NLNET_ALWAYS_INLINE Tap tap_at(int64_t height, int64_t width, float y, float x) {
    Tap tap;
    // NaN is outside, too.
    tap.outside = !(y > -0.5f && x > -0.5f && y < float(height) - 0.5f && x < float(width) - 0.5f);
    if (tap.outside) y = x = 0;
    const Between v = between(y), u = between(x);
    cubic_weights(v.share, tap.y);
    cubic_weights(u.share, tap.x);
    tap.top = v.first - 1;
    tap.left = u.first - 1;
    tap.inner = tap.top >= 0 && tap.left >= 0 && tap.top + 4 <= height && tap.left + 4 <= width;
    return tap;
}

static NLNET_ALWAYS_INLINE float sample(const float *plane, int64_t height, int64_t width,
                                        const Tap &tap) {
    float sum = 0;
    if (tap.inner) {
        const float *from = plane + tap.top * width + tap.left;
        for (int i = 0; i < 4; ++i, from += width) {
            sum += tap.y[i] * ((tap.x[0] * from[0] + tap.x[1] * from[1]) +
                               (tap.x[2] * from[2] + tap.x[3] * from[3]));
        }
        return sum;
    }
    for (int i = 0; i < 4; ++i) {
        const float *from = plane + clamped(tap.top + i, height) * width;
        float line = 0;
        for (int j = 0; j < 4; ++j) line += tap.x[j] * from[clamped(tap.left + j, width)];
        sum += tap.y[i] * line;
    }
    return sum;
}

// Means over 7x7 pixels of a tile with its halo; the result has a halo smaller by the radius.
// Both have rows of kWideColumns; the first element is the upper left corner of each.
static void average(const float *from, int64_t rows, int64_t columns, float *lines, float *to) {
    constexpr int across = 2 * kRadius + 1;
    for (int64_t y = 0; y < rows + 2 * kRadius; ++y) {
        const float *in = from + y * kWideColumns;
        float *out = lines + y * kWideColumns;
        for (int64_t x = 0; x < columns; ++x) {
            float sum = in[x];
            for (int i = 1; i < across; ++i) sum += in[x + i];
            out[x] = sum;
        }
    }
    for (int64_t y = 0; y < rows; ++y) {
        const float *in = lines + y * kWideColumns;
        float *out = to + y * kWideColumns;
        for (int64_t x = 0; x < columns; ++x) {
            float sum = in[x];
            for (int i = 1; i < across; ++i) sum += in[x + i * kWideColumns];
            out[x] = sum * (1.0f / (across * across));
        }
    }
}

struct MergeTile {
    int64_t top, left, rows, columns;
    float *moved;             // (count, channels, kMergeRows, kMergeColumns)
    float *differences;       // (count, kWideRows, kWideColumns): d, with a halo of the radius
    float *changes;           // the same: of brightness, to be subtracted
    float *squares, *shifts;  // (kWideRows, kWideColumns): of the guides, squared and as they are
    float *lines, *means;     // the same: sums, and means over the windows
};

static NLNET_ALWAYS_INLINE MergeTile lay_out(const MergedPages &pages, Memory &memory) {
    MergeTile tile = {};
    tile.moved = memory.take<float>(pages.count, pages.channels, kMergeRows * kMergeColumns);
    tile.differences = memory.take<float>(pages.count, kWide);
    tile.changes = memory.take<float>(pages.count, kWide);
    tile.squares = memory.take<float>(kWide);
    tile.shifts = memory.take<float>(kWide);
    tile.lines = memory.take<float>(kWide);
    tile.means = memory.take<float>(kWide);
    return tile;
}

// Move a neighbour to the page: its noisy pixels, and the differences of the guides.
static void move(const MergedPages &pages, int number, const MergeTile &tile) {
    const nlnet_neighbour &neighbour = pages.neighbours[number];
    const int64_t height = pages.height, width = pages.width, plane = height * width;
    const Grid2 grid = grid_of(height, width);
    const Vector2 *field = reinterpret_cast<const Vector2 *>(neighbour.field);
    for (int64_t j = 0; j < tile.rows + 2 * kHalo; ++j) {
        const int64_t y = clamped(tile.top - kHalo + j, height);
        const Between row = between((float(y) - 3.5f) * (1.0f / kBlock));
        float *squares = tile.squares + j * kWideColumns, *shifts = tile.shifts + j * kWideColumns;
        for (int64_t i = 0; i < tile.columns + 2 * kHalo; ++i) {
            const int64_t x = clamped(tile.left - kHalo + i, width);
            const Between column = between((float(x) - 3.5f) * (1.0f / kBlock));
            const Vector2 motion = interpolate(grid, field, row, column);
            const Tap tap = tap_at(height, width, float(y) + motion.y, float(x) + motion.x);
            const bool inside =
                j >= kHalo && j < kHalo + tile.rows && i >= kHalo && i < kHalo + tile.columns;
            float sum = 0, shift = 0;
            for (int channel = 0; channel < pages.channels; ++channel) {
                const int64_t at = channel * plane;
                const float guide =
                    neighbour.gain * sample(neighbour.guide + at, height, width, tap) +
                    neighbour.offset;
                const float apart = guide - pages.guide[at + y * width + x];
                sum += apart * apart;
                shift += apart;
                if (inside) {
                    tile.moved[((number * pages.channels + channel) * kMergeRows + j - kHalo) *
                                   kMergeColumns +
                               i - kHalo] =
                        neighbour.gain * sample(neighbour.noisy + at, height, width, tap) +
                        neighbour.offset;
                }
            }
            sum *= 1.0f / float(pages.channels);
            // NaN, where the neighbour has nothing, is far away as well.
            const bool there = !tap.outside && sum < kFar;
            squares[i] = there ? sum : kFar;
            shifts[i] = there ? shift * (1.0f / float(pages.channels)) : 0;
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
            tile.squares[at] = pages.count == 1 ? least : 0.5f * (least + second);
        }
    }
}

static void merge_tile(const MergedPages &pages, const MergeTile &tile) {
    const int64_t wide_rows = tile.rows + 2 * kRadius, wide_columns = tile.columns + 2 * kRadius;
    for (int number = 0; number < pages.count; ++number) {
        move(pages, number, tile);
        float *apart = tile.differences + number * kWide;
        float *changes = tile.changes + number * kWide;
        average(tile.squares, wide_rows, wide_columns, tile.lines, apart);
        average(tile.shifts, wide_rows, wide_columns, tile.lines, tile.means);
        for (int64_t y = 0; y < wide_rows; ++y) {
            for (int64_t x = y * kWideColumns; x < y * kWideColumns + wide_columns; ++x) {
                const float shift = tile.means[x], squared = shift * shift;
                const float rest = shift * (kChange / (squared + kChange));
                changes[x] = shift - rest;
                apart[x] += (1 + kMeans) * (rest * rest) - squared;
            }
        }
    }
    order(pages, tile, wide_rows, wide_columns);
    average(tile.squares, tile.rows, tile.columns, tile.lines, tile.means);
    for (int64_t j = 0; j < tile.rows; ++j) {
        for (int64_t i = 0; i < tile.columns; ++i) {
            const int64_t at = (tile.top + j) * pages.width + tile.left + i;
            const int64_t inside = j * kMergeColumns + i;
            const float typical = 2 * tile.means[j * kWideColumns + i];
            const float allowed = typical < kLeastError  ? kLeastError
                                  : typical > kMostError ? kMostError
                                                         : typical;
            const int64_t middle = (j + kRadius) * kWideColumns + i + kRadius;
            const float *apart = tile.differences + middle, *changes = tile.changes + middle;
            float sums[3] = {}, weights = 1, variance = 1;
            for (int channel = 0; channel < pages.channels; ++channel) {
                sums[channel] = pages.noisy[channel * pages.height * pages.width + at];
            }
            for (int number = 0; number < pages.count; ++number) {
                // Noise that the gain makes stronger counts less.
                const float gain = pages.neighbours[number].gain, power = gain * gain;
                // A change of brightness is smooth: what is there in one page only bends it.
                const float *change = changes + number * kWide;
                const float along = 2 * *change - change[-kRadius] - change[kRadius];
                const float down =
                    2 * *change - change[-kRadius * kWideColumns] - change[kRadius * kWideColumns];
                const float bend = along * along + down * down;
                const float d =
                    apart[number * kWide] + kMeans * (bend * (bend * bend / (1 + bend * bend)));
                const float ratio = d / allowed, squared = ratio * ratio;
                const float weight = 1 / ((1 + squared) * (1 + squared * squared * (1.0f / 256)) *
                                          (power > 1 ? power : 1));
                weights += weight;
                variance += weight * weight * power;
                const float *moved =
                    tile.moved + number * pages.channels * kMergeRows * kMergeColumns + inside;
                for (int channel = 0; channel < pages.channels; ++channel) {
                    sums[channel] +=
                        weight * (moved[channel * kMergeRows * kMergeColumns] - *change);
                }
            }
            for (int channel = 0; channel < pages.channels; ++channel) {
                pages.merged[channel * pages.height * pages.width + at] = sums[channel] / weights;
            }
            pages.left[at] = __builtin_sqrtf(variance) / weights;
        }
    }
}

static void merge(const MergedPages &pages, Memory &memory) {
    MergeTile tile = lay_out(pages, memory);
    for (tile.top = pages.first; tile.top < pages.last; tile.top += kMergeRows) {
        tile.rows = smaller_of(kMergeRows, pages.last - tile.top);
        for (tile.left = 0; tile.left < pages.width; tile.left += kMergeColumns) {
            tile.columns = smaller_of(kMergeColumns, pages.width - tile.left);
            merge_tile(pages, tile);
        }
    }
}

static size_t merge_scratch(const MergedPages &pages) {
    Memory counted(nullptr);
    lay_out(pages, counted);
    return counted.impossible() ? SIZE_MAX : counted.size();
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
