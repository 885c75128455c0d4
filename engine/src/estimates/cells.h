// What the eye says of cells, squares of 16x16 pixels of the tiles.
#pragma once

#include "../memory.h"
#include "decisions.h"
#include "sample.h"

namespace nlnet {
namespace {

// Average a map with the places around each, by 1/4, 1/2 and 1/4 each way; `line` is as long as the
// longer side.
inline void smooth(float *map, int64_t rows, int64_t columns, float *line) {
    const auto along = [&](float *first, int64_t count, int64_t apart) {
        for (int64_t i = 0; i < count; i++) {
            const float before = first[larger_of(i - 1, 0) * apart];
            const float behind = first[smaller_of(i + 1, count - 1) * apart];
            line[i] = (before + 2 * first[i * apart] + behind) / 4;
        }
        for (int64_t i = 0; i < count; i++) first[i * apart] = line[i];
    };
    for (int64_t x = 0; x < columns; x++) along(map + x, rows, columns);
    for (int64_t y = 0; y < rows; y++) along(map + y * columns, columns, 1);
}

// The cells of all tiles.
struct Cells {
    int64_t tiles, rows, columns;  // and of a tile
    int side, maps;                // pixels of a cell, and maps that the eye gives
    float *answers;                // (tiles, maps, rows, columns): what it says
    float *weights;                // (tiles, kStrengthMaps, rows, columns): of the strengths
    float *brightness;             // (tiles, rows, columns)
    float *alive;                  // (tiles, rows, columns): 1, or next to nothing where clipped
    float *line;                   // scratch

    int64_t of_tile() const { return rows * columns; }
    int64_t count() const { return tiles * of_tile(); }
    const float *answer(int64_t tile, int map) const {
        return answers + (tile * maps + map) * of_tile();
    }
    const float *strengths(int64_t tile, int map) const { return answer(tile, kStrengths + map); }
    const float *weights_of(int64_t tile, int map) const {
        return weights + (tile * kStrengthMaps + map) * of_tile();
    }

    void take_memory(const nlnet_grid &grid, int64_t tile_count, int cell, int eye_maps,
                     Memory &memory) {
        tiles = tile_count;
        rows = (grid.height + cell - 1) / cell;
        columns = (grid.width + cell - 1) / cell;
        side = cell;
        maps = eye_maps;
        answers = memory.take<float>(count(), maps);
        weights = memory.take<float>(count(), kStrengthMaps);
        brightness = memory.take<float>(count());
        alive = memory.take<float>(count());
        line = memory.take<float>(tiles, larger_of(rows, columns));
    }

    // Measure the cells of a tile, (channels, height, width).
    void measure(int64_t tile, const float *pixels, int64_t channels, const nlnet_grid &grid,
                 const ClipLimits &limits) const {
        const float low = float(limits.low), high = float(limits.high);
        for (int64_t number = 0; number < of_tile(); number++) {
            const int64_t top = number / columns * side, left = number % columns * side;
            const int64_t bottom = smaller_of(top + side, grid.height);
            const int64_t right = smaller_of(left + side, grid.width);
            double sum = 0;
            int64_t inside = 0;
            for (int64_t row = 0; row < channels * (bottom - top); row++) {
                const int64_t channel = row / (bottom - top), y = top + row % (bottom - top);
                const float *values = pixels + (channel * grid.height + y) * grid.width;
                float of_row = 0;
                int32_t inside_row = 0;
                for (int64_t x = left; x < right; x++) {
                    const float least = values[x] > kSeenLow ? values[x] : kSeenLow;
                    const float value = least < kSeenHigh ? least : kSeenHigh;
                    of_row += value;
                    inside_row += value > low && value < high;
                }
                sum += double(of_row);
                inside += inside_row;
            }
            const double total = double(channels * (bottom - top) * (right - left));
            brightness[tile * of_tile() + number] = float(sum / total);
            alive[tile * of_tile() + number] = double(inside) / total > kAlive ? 1 : kNearlyNone;
        }
        // The eye tells of a cell and those around it.
        smooth(brightness + tile * of_tile(), rows, columns,
               line + tile * larger_of(rows, columns));
    }

    // Say how much every answer counts.
    void weigh() const {
        for (int64_t tile = 0; tile < tiles; tile++) {
            for (int64_t i = 0; i < kStrengthMaps * of_tile(); i++) {
                const double spread =
                    within(double(answer(tile, kSpreads)[i]), kLeastSpread, kMostSpread);
                weights[tile * kStrengthMaps * of_tile() + i] =
                    alive[tile * of_tile() + i % of_tile()] * float(exp_of(-2 * spread));
            }
        }
    }

    // The probabilities of the kinds, by the mean of the logits.
    void find_odds(double (&odds)[kKinds]) const {
        double total = 0, sums[kKinds] = {}, most = -__builtin_inf();
        for (int64_t i = 0; i < count(); i++) total += double(alive[i]);
        for (int kind = 0; kind < kKinds; kind++) {
            for (int64_t i = 0; i < count(); i++) {
                const int64_t tile = i / of_tile();
                sums[kind] +=
                    double(answer(tile, kLogits + kind)[i % of_tile()]) * double(alive[i]);
            }
            most = larger_number(most, sums[kind] / total);
        }
        double sum = 0;
        for (int kind = 0; kind < kKinds; kind++)
            sum += odds[kind] = exp_of(sums[kind] / total - most);
        for (double &each : odds) each /= sum;
    }
};

}  // namespace
}  // namespace nlnet
