// Copies of two pages from large to small, and what is known of the motion between them.
#pragma once

#include "patches.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kLevels = 5;      // at most
constexpr int kLeastSide = 24;  // of the smallest copy
constexpr int kSearch = 4;      // pixels of the smallest copy, each way

struct Structure {
    float yy, yx, xx;
};

// What one alignment holds besides the pages.
struct Alignment {
    Plane pages[2][kLevels];  // reference and other, the largest first
    int levels;
    Vector2 *motion, *start;  // of the level, one per block
    const Vector2 *expected;  // of the blocks of the pages, or null
    Grid2 grid;               // of the pages
    Structure *structure;
    float *costs, *sorted;
    float *searched;  // the cost of each offset for each block of the smallest copy
};

static NLNET_ALWAYS_INLINE Alignment lay_out(const AlignedPages &pages, Memory &memory) {
    Alignment made = {};
    int64_t height = pages.height, width = pages.width;
    made.levels = 1;
    while (made.levels < kLevels && smaller_of(height, width) >= 2 * kLeastSide) {
        height /= 2;
        width /= 2;
        for (int i = 0; i < 2; ++i) {
            made.pages[i][made.levels] = {memory.take<float>(height, width), height, width};
        }
        ++made.levels;
    }
    made.pages[0][0] = {pages.reference, pages.height, pages.width};
    made.pages[1][0] = {pages.other, pages.height, pages.width};
    const int64_t smallest = grid_of(height, width).size();
    made.expected = reinterpret_cast<const Vector2 *>(pages.expected);
    made.grid = grid_of(pages.height, pages.width);
    const int64_t blocks = made.grid.size();
    made.motion = memory.take<Vector2>(blocks);
    made.start = memory.take<Vector2>(blocks);
    made.structure = memory.take<Structure>(blocks);
    made.costs = memory.take<float>(blocks);
    made.sorted = memory.take<float>(blocks);
    made.searched = memory.take<float>((2 * kSearch + 1) * (2 * kSearch + 1), smallest);
    return made;
}

static void halve(const Plane &from, const Plane &to) {
    float *out = const_cast<float *>(to.data);
    for (int64_t y = 0; y < to.height; ++y) {
        const float *above = from.data + 2 * y * from.width, *below = above + from.width;
        for (int64_t x = 0; x < to.width; ++x) {
            out[y * to.width + x] =
                0.25f * ((above[2 * x] + above[2 * x + 1]) + (below[2 * x] + below[2 * x + 1]));
        }
    }
}

// The median: the values are put into another order.
static float median(float *values, int64_t count) {
    const int64_t middle = count / 2;
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) ++i;
            while (pivot < values[j]) --j;
            if (i > j) break;
            const float other = values[i];
            values[i++] = values[j];
            values[j--] = other;
        }
        if (middle <= j) {
            high = j;
        } else if (middle >= i) {
            low = i;
        } else {
            break;
        }
    }
    return values[middle];
}

// The median error: what noise, and nothing else, leaves in most patches.
static float typical(const Alignment &made, const float *costs, int64_t blocks) {
    __builtin_memcpy(made.sorted, costs, size_t(blocks) * sizeof(float));
    return median(made.sorted, blocks) + 1e-20f;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
