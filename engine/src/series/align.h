// The motion from one page to another, from coarse to fine.
//
// On the smallest copies of the pages, every patch is looked for around its place. On each larger
// copy, a patch starts from the best of the motion found so far, that of its neighbours, the median
// and none; then it is refined by least squares (Lucas and Kanade). What noise does to patches with
// little structure is kept small in two ways, both weighed by how much a patch says about its
// motion, its gradient against the mean error: a patch is pulled to where it started, and the field
// is smoothed.
#pragma once

#include "patches.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kLevels = 5;      // at most
constexpr int kLeastSide = 24;  // of the smallest copy
constexpr int kSearch = 4;      // pixels of the smallest copy, each way
constexpr int kSteps = 3;       // of least squares
constexpr int kSmoothings = 8;
constexpr float kPull = 6.0f / 64;  // of the start, in mean errors: 64 pixels of a block
constexpr float kTie = 4 * kPull;   // of a neighbour
constexpr float kFarther = 0.05f;   // cost of a pixel further away than the whole page, in errors

// Costs are multiplied by these, for noise makes some motion look better than none: of no motion,
// of the page's median, and of neighbouring blocks.
constexpr float kStill = 0.93f, kCommon = 0.97f, kBeside = 1.07f;

struct Candidate {
    Vector2 motion;
    float factor;
};

struct Structure {
    float yy, yx, xx;
};

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

// What one alignment holds besides the pages.
struct Alignment {
    Plane pages[2][kLevels];  // reference and other, the largest first
    int levels;
    Vector2 *motion, *start;  // of the level, one per block
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
    const int64_t blocks = grid_of(pages.height, pages.width).size();
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

// The median error: what noise, and nothing else, leaves in most patches.
static float typical(const Alignment &made, const float *costs, int64_t blocks) {
    __builtin_memcpy(made.sorted, costs, size_t(blocks) * sizeof(float));
    return median(made.sorted, blocks) + 1e-20f;
}

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

// Start each patch from the best of the motion of the smaller copy, its neighbours', the median and
// none; others must be clearly better than its own.
static void choose(const Alignment &made, const Plane &reference, const Plane &other,
                   const Grid2 &grid) {
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
        Vector2 best = {};
        float least = __builtin_inff();
        for (const Candidate &candidate : candidates) {
            const float cost =
                candidate.factor * cost_of(patch, other, row, column, candidate.motion);
            if (cost < least) {
                least = cost;
                best = candidate.motion;
            }
        }
        made.motion[block] = best;
        made.costs[block] = least;
    }
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

// The variance of what a patch differs by from the other page, each pixel moved by what the field
// is there: vectors that fit their own block, but not together with those beside, tear it apart.
static float moved_variance(const Alignment &made, const Patch &patch, const Grid2 &grid,
                            int64_t row, int64_t column) {
    const Plane &other = made.pages[1][0];
    float difference[kArea];
    for (int i = 0; i < kArea; ++i) {
        const float down = float(i / kSide - kBefore), right = float(i % kSide - kBefore);
        const Between v = between(float(row) + (down - 3.5f) * (1.0f / kBlock));
        const Between u = between(float(column) + (right - 3.5f) * (1.0f / kBlock));
        Vector2 motion = interpolate(grid, made.motion, v, u);
        if (!(square(motion) < 1e12f)) motion = {0, 0};
        const Between y = between(float(row * kBlock) + down + motion.y);
        const Between x = between(float(column * kBlock) + right + motion.x);
        const float above =
            (1 - x.share) * other.at(y.first, x.first) + x.share * other.at(y.first, x.first + 1);
        const float below = (1 - x.share) * other.at(y.first + 1, x.first) +
                            x.share * other.at(y.first + 1, x.first + 1);
        difference[i] = (1 - y.share) * above + y.share * below - patch.pixels[i];
    }
    remove_mean(difference);
    return mean_product(difference, difference);
}

static void align(const AlignedPages &pages, Memory &memory) {
    const Alignment made = lay_out(pages, memory);
    for (int page = 0; page < 2; ++page) {
        for (int level = 1; level < made.levels; ++level) {
            halve(made.pages[page][level - 1], made.pages[page][level]);
        }
    }
    Grid2 grid = {};
    for (int level = made.levels - 1; level >= 0; --level) {
        const Plane &reference = made.pages[0][level], &other = made.pages[1][level];
        const Grid2 smaller = grid;
        grid = grid_of(reference.height, reference.width);
        if (level == made.levels - 1) {
            search(made, grid);
        } else {
            enlarge(made, smaller, grid);
            choose(made, reference, other, grid);
        }
        const float error = typical(made, made.costs, grid.size());
        refine(made, reference, other, grid, error);
        smooth(made, grid, error, reinterpret_cast<Vector2 *>(pages.field));
    }
    for (int64_t block = 0; block < grid.size(); ++block) {
        const int64_t row = block / grid.columns, column = block % grid.columns;
        Patch patch;
        read_patch(made.pages[0][0], row, column, &patch);
        float difference[kArea];
        const Vector2 motion = made.motion[block];
        pages.field[2 * block] = motion.y;
        pages.field[2 * block + 1] = motion.x;
        float *fit = pages.fits + 6 * block;
        fit[0] = patch.mean;
        fit[1] = mean_product(patch.pixels, patch.pixels);
        // The patch is without its mean here, so the mean difference is the other page's mean.
        fit[2] = differ(patch, made.pages[1][0], row, column, motion, difference);
        fit[3] = moved_variance(made, patch, grid, row, column);
        fit[4] = differ(patch, made.pages[1][0], row, column, {0, 0}, difference);
        fit[5] = mean_product(difference, difference);
    }
}

static size_t align_scratch(const AlignedPages &pages) {
    Memory counted(nullptr);
    lay_out(pages, counted);
    return counted.impossible() ? SIZE_MAX : counted.size();
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
