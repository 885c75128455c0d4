// Tiles of a page, and what neighbours show there after they have moved.
#pragma once

#include "samples.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kRadius = 3;          // of the windows that differences are averaged over
constexpr int kHalo = 2 * kRadius;  // of the differences that a tile needs
constexpr int kMergeRows = 64, kMergeColumns = 128;  // of a tile
constexpr float kFar = 1e6f;                         // squared difference where nothing is shown

constexpr int64_t kWideRows = kMergeRows + 2 * kHalo;
constexpr int64_t kWideColumns = kMergeColumns + 2 * kHalo;
constexpr int64_t kWide = kWideRows * kWideColumns;

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

// What a neighbour's guide and the page's show, of which windows are averaged: the difference, the
// neighbour's brightness above that of the tile, and products.
enum Shown { kShift, kBright, kSquares, kCross, kPower, kShown };

struct MergeTile {
    int64_t top, left, rows, columns;
    float base;            // brightness in the middle of the tile: sums of squares stay small
    float *moved;          // (count, channels, kMergeRows, kMergeColumns)
    float *differences;    // (count, kWideRows, kWideColumns): d, with a halo of the radius
    float *changes;        // the same: of brightness, to be subtracted
    float *scales;         // the same: by which what is bright changes more
    float *brightness;     // the same: mean of the neighbour
    float *shown[kShown];  // (kWideRows, kWideColumns)
    float *means[kShown];  // the same: over the windows
    float *lines;          // the same: sums
};

static NLNET_ALWAYS_INLINE MergeTile lay_out(const MergedPages &pages, Memory &memory) {
    MergeTile tile = {};
    tile.moved = memory.take<float>(pages.count, pages.channels, kMergeRows * kMergeColumns);
    tile.differences = memory.take<float>(pages.count, kWide);
    tile.changes = memory.take<float>(pages.count, kWide);
    tile.scales = memory.take<float>(pages.count, kWide);
    tile.brightness = memory.take<float>(pages.count, kWide);
    for (float *&each : tile.shown) each = memory.take<float>(kWide);
    for (float *&each : tile.means) each = memory.take<float>(kWide);
    tile.lines = memory.take<float>(kWide);
    return tile;
}

// Move a neighbour to the page: its noisy pixels, and what the guides show.
static void move(const MergedPages &pages, int number, const MergeTile &tile) {
    const nlnet_neighbour &neighbour = pages.neighbours[number];
    const int64_t height = pages.height, width = pages.width, plane = height * width;
    const float share = 1.0f / float(pages.channels);
    const Grid2 grid = grid_of(height, width);
    const Vector2 *field = reinterpret_cast<const Vector2 *>(neighbour.field);
    for (int64_t j = 0; j < tile.rows + 2 * kHalo; ++j) {
        const int64_t y = clamped(tile.top - kHalo + j, height);
        const Between row = between((float(y) - 3.5f) * (1.0f / kBlock));
        for (int64_t i = 0; i < tile.columns + 2 * kHalo; ++i) {
            const int64_t x = clamped(tile.left - kHalo + i, width);
            const Between column = between((float(x) - 3.5f) * (1.0f / kBlock));
            const Vector2 motion = interpolate(grid, field, row, column);
            const Tap tap = tap_at(height, width, float(y) + motion.y, float(x) + motion.x);
            const bool inside =
                j >= kHalo && j < kHalo + tile.rows && i >= kHalo && i < kHalo + tile.columns;
            float sums[kShown] = {};
            for (int channel = 0; channel < pages.channels; ++channel) {
                const int64_t at = channel * plane;
                const float guide =
                    neighbour.gain * sample(neighbour.guide + at, height, width, tap) +
                    neighbour.offset;
                const float apart = guide - pages.guide[at + y * width + x];
                const float bright = guide - tile.base;
                sums[kShift] += apart;
                sums[kBright] += bright;
                sums[kSquares] += apart * apart;
                sums[kCross] += apart * bright;
                sums[kPower] += bright * bright;
                if (inside) {
                    tile.moved[((number * pages.channels + channel) * kMergeRows + j - kHalo) *
                                   kMergeColumns +
                               i - kHalo] =
                        neighbour.gain * sample(neighbour.noisy + at, height, width, tap) +
                        neighbour.offset;
                }
            }
            // NaN, where the neighbour has nothing, is far away as well.
            const bool there = !tap.outside && sums[kSquares] * share < kFar;
            for (int what = 0; what < kShown; ++what) {
                tile.shown[what][j * kWideColumns + i] = there              ? sums[what] * share
                                                         : what == kSquares ? kFar
                                                                            : 0;
            }
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
