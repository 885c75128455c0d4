// Motion to a fraction of a pixel, and smooth. What noise does to patches with little structure is
// kept small in two ways, both weighed by how much a patch says about its motion, its gradient
// against the mean error: a patch is pulled to where it started, and the field is smoothed.
#pragma once

#include "levels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kSteps = 3;  // of least squares
constexpr int kSmoothings = 8;
constexpr float kPull = 6.0f / 64;  // of the start, in mean errors: 64 pixels of a block
constexpr float kTie = 4 * kPull;   // of a neighbour

// Least weight of what a vector is tied to, so that systems can be solved in float.
static NLNET_ALWAYS_INLINE float least_tie(const Structure &structure) {
    return 1e-4f * (structure.yy + structure.xx) + 1e-6f;
}

// Solve a symmetric system of two equations.
static NLNET_ALWAYS_INLINE Vector2 solve(const Structure &matrix, Vector2 right) {
    const float over = 1 / (matrix.yy * matrix.xx - matrix.yx * matrix.yx);
    return {(matrix.xx * right.y - matrix.yx * right.x) * over,
            (matrix.yy * right.x - matrix.yx * right.y) * over};
}

static NLNET_ALWAYS_INLINE Vector2 multiply(const Structure &matrix, Vector2 vector) {
    return {matrix.yy * vector.y + matrix.yx * vector.x,
            matrix.yx * vector.y + matrix.xx * vector.x};
}

// Least squares from where the patches are, pulled to it.
static void refine(const Alignment &made, const Plane &reference, const Plane &other,
                   const Grid2 &grid, float error) {
    for (int64_t block = 0; block < grid.size(); ++block) {
        const int64_t row = block / grid.columns, column = block % grid.columns;
        Patch patch;
        read_patch(reference, row, column, &patch);
        const Structure structure = {patch.yy, patch.yx, patch.xx};
        const float wanted = kPull * error, least = least_tie(structure);
        const float pull = wanted < least ? least : wanted;
        const Structure pulled = {patch.yy + pull, patch.yx, patch.xx + pull};
        const Vector2 start = made.motion[block];
        Vector2 motion = start;
        for (int step = 0; step < kSteps; ++step) {
            float difference[kArea];
            differ(patch, other, row, column, motion, difference);
            const Vector2 slope = {mean_product(patch.down, difference),
                                   mean_product(patch.right, difference)};
            const Vector2 change = solve(pulled, slope + pull * (motion - start));
            // No more than a pixel at a time: the gradient does not reach further.
            motion.y -= change.y < -1 ? -1 : change.y > 1 ? 1 : change.y;
            motion.x -= change.x < -1 ? -1 : change.x > 1 ? 1 : change.x;
        }
        made.motion[block] = motion;
        made.structure[block] = structure;
    }
}

// Smooth the field: each vector minimises what its patch and its neighbours ask for. Neighbours
// that move otherwise, as across the edge of a thing, count less.
static void smooth(const Alignment &made, const Grid2 &grid, float error, Vector2 *spare) {
    const int64_t blocks = grid.size();
    Vector2 *found = made.start;  // what the patches ask for
    __builtin_memcpy(found, made.motion, size_t(blocks) * sizeof(Vector2));
    Vector2 *from = made.motion, *to = spare;
    for (int round = 0; round < kSmoothings; ++round) {
        for (int64_t row = 0; row < grid.rows; ++row) {
            for (int64_t column = 0; column < grid.columns; ++column) {
                const int64_t block = row * grid.columns + column;
                const Vector2 own = from[block];
                const int64_t around[] = {grid.at(row - 1, column), grid.at(row + 1, column),
                                          grid.at(row, column - 1), grid.at(row, column + 1)};
                const Structure &structure = made.structure[block];
                const float least = least_tie(structure);
                Vector2 asked = multiply(structure, found[block]);
                float ties = 0;
                for (const int64_t neighbour : around) {
                    const float wanted = kTie * error / (1 + square(from[neighbour] - own));
                    const float tie = wanted < least ? least : wanted;
                    asked = asked + tie * from[neighbour];
                    ties += tie;
                }
                to[block] = solve({structure.yy + ties, structure.yx, structure.xx + ties}, asked);
            }
        }
        Vector2 *other = from;
        from = to;
        to = other;
    }
    static_assert(kSmoothings % 2 == 0, "the result is where the motion was");
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
