// Where patches may have moved to: the best of some guesses, to be refined.
#pragma once

#include "levels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr float kFarther = 0.05f;  // cost of a pixel further away than the whole page, in errors

// Costs are multiplied by these, for noise makes some motion look better than none: of no motion,
// of the page's median, and of neighbouring blocks.
constexpr float kStill = 0.93f, kCommon = 0.97f, kBeside = 1.07f;

struct Candidate {
    Vector2 motion;
    float factor;
};

struct Best {
    Vector2 motion;
    float cost = __builtin_inff();

    NLNET_ALWAYS_INLINE void take(const Patch &patch, const Plane &other, int64_t row,
                                  int64_t column, const Candidate &candidate) {
        const float found = candidate.factor * cost_of(patch, other, row, column, candidate.motion);
        if (found < cost) {
            cost = found;
            motion = candidate.motion;
        }
    }
};

// Look for every patch of the smallest copies around its place.
static void search(const Alignment &made, const Grid2 &grid) {
    constexpr int across = 2 * kSearch + 1, offsets = across * across;
    const Plane &reference = made.pages[0][made.levels - 1],
                &other = made.pages[1][made.levels - 1];
    const int64_t blocks = grid.size();
    for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = block / grid.columns, column = block % grid.columns;
        Patch patch;
        read_patch(reference, row, column, &patch);
        made.costs[block] = __builtin_inff();
        for (int i = 0; i < offsets; ++i) {
            const Vector2 offset = {float(i / across - kSearch), float(i % across - kSearch)};
            const float cost = cost_of(patch, other, row, column, offset);
            made.searched[i * blocks + block] = cost;
            if (cost < made.costs[block]) made.costs[block] = cost;
        }
    }
    Vector2 whole = {0, 0};  // of the page
    float least = __builtin_inff();
    for (int i = 0; i < offsets; ++i) {
        const Vector2 offset = {float(i / across - kSearch), float(i % across - kSearch)};
        float sum = 0;
        for (int64_t block = 0; block < blocks; ++block) sum += made.searched[i * blocks + block];
        sum *= 1 + 0.01f * __builtin_sqrtf(square(offset));  // the nearest of equals
        if (sum < least) {
            least = sum;
            whole = offset;
        }
    }
    const float error = typical(made, made.costs, blocks);
    for (int64_t block = 0; block < blocks; ++block) {
        least = __builtin_inff();
        for (int i = 0; i < offsets; ++i) {
            const Vector2 offset = {float(i / across - kSearch), float(i % across - kSearch)};
            const float cost = made.searched[i * blocks + block] +
                               kFarther * error * __builtin_sqrtf(square(offset - whole));
            if (cost < least) {
                least = cost;
                made.motion[block] = offset;
            }
        }
    }
}

// The motion on a copy of twice the size, before it is refined there.
static void enlarge(const Alignment &made, const Grid2 &smaller, const Grid2 &grid) {
    for (int64_t row = 0; row < grid.rows; ++row) {
        const Between y = between(0.5f * float(row) - 0.25f);
        for (int64_t column = 0; column < grid.columns; ++column) {
            const Between x = between(0.5f * float(column) - 0.25f);
            made.start[row * grid.columns + column] = 2 * interpolate(smaller, made.motion, y, x);
        }
    }
}

static Vector2 median_motion(const Alignment &made, int64_t blocks) {
    Vector2 found;
    for (int64_t i = 0; i < blocks; ++i) made.sorted[i] = made.start[i].y;
    found.y = median(made.sorted, blocks);
    for (int64_t i = 0; i < blocks; ++i) made.sorted[i] = made.start[i].x;
    found.x = median(made.sorted, blocks);
    return found;
}

// The motion that is expected of a block of a copy.
static NLNET_ALWAYS_INLINE Vector2 expected_at(const Alignment &made, int level, int64_t row,
                                               int64_t column) {
    const int64_t middle = int64_t(1) << level >> 1;
    const int64_t at = made.grid.at((row << level) + middle, (column << level) + middle);
    return (1.0f / float(1 << level)) * made.expected[at];
}

// Start each patch from the best of the motion of the smaller copy, its neighbours', the median,
// none and the expected one; others must be clearly better than its own.
static void choose(const Alignment &made, int level, const Grid2 &grid) {
    const Plane &reference = made.pages[0][level], &other = made.pages[1][level];
    const int64_t blocks = grid.size();
    const Vector2 common = median_motion(made, blocks);
    for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = block / grid.columns, column = block % grid.columns;
        Patch patch;
        read_patch(reference, row, column, &patch);
        const Candidate candidates[] = {{{0, 0}, kStill},
                                        {common, kCommon},
                                        {made.start[block], 1},
                                        {made.start[grid.at(row - 1, column)], kBeside},
                                        {made.start[grid.at(row + 1, column)], kBeside},
                                        {made.start[grid.at(row, column - 1)], kBeside},
                                        {made.start[grid.at(row, column + 1)], kBeside}};
        Best best = {};
        for (const Candidate &candidate : candidates)
            best.take(patch, other, row, column, candidate);
        if (made.expected != nullptr) {
            best.take(patch, other, row, column, {expected_at(made, level, row, column), 1});
        }
        made.motion[block] = best.motion;
        made.costs[block] = best.cost;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
