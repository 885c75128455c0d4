// The motion from one page to another, from coarse to fine.
//
// On the smallest copies of the pages, every patch is looked for around its place. On each larger
// copy, a patch starts from the best of the motion found so far, that of its neighbours, the
// median, none, and what is expected; then it is refined by least squares (Lucas and Kanade).
#pragma once

#include "candidates.h"
#include "refine.h"
#include "samples.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// The variance of what a patch differs by from the other page, each pixel moved by what the field
// is there: vectors that fit their own block, but not together with those beside, tear it apart.
static float moved_variance(const Alignment &made, const Patch &patch, const Grid2 &grid,
                            int64_t row, int64_t column) {
    constexpr int across = kSide / 2;  // every other pixel will do
    const Plane &other = made.pages[1][0];
    float sum = 0, squares = 0;
    for (int i = 0; i < across * across; ++i) {
        const int j = 2 * (i / across), k = 2 * (i % across);
        const float down = float(j - kBefore), right = float(k - kBefore);
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
        const float difference =
            (1 - y.share) * above + y.share * below - patch.pixels[j * kSide + k] - patch.mean;
        sum += difference;
        squares += difference * difference;
    }
    const float mean = sum * (1.0f / (across * across));
    const float variance = squares * (1.0f / (across * across)) - mean * mean;
    return variance > 0 ? variance : 0;
}

// The covariance of a block of the noisy page with the other noisy page, moved by a vector, without
// means and slopes. Noise adds nothing to it on average, and weak texture counts that denoising has
// taken from the guides.
static float covariance(const AlignedPages &pages, int64_t row, int64_t column, Vector2 motion) {
    constexpr int across = kBlock / 2;  // every other pixel will do
    float products = 0, sums[2] = {}, down[2] = {}, right[2] = {};
    for (int i = 0; i < across * across; ++i) {
        const int j = i / across, k = i % across;
        const int64_t y = row * kBlock + 2 * j, x = column * kBlock + 2 * k;
        const Tap tap = tap_at(pages.height, pages.width, float(y) + motion.y, float(x) + motion.x);
        if (y >= pages.height || x >= pages.width || tap.outside) return 0;
        const float values[] = {pages.noisy[y * pages.width + x],
                                sample(pages.other_noisy, pages.height, pages.width, tap)};
        products += values[0] * values[1];
        for (int page = 0; page < 2; ++page) {
            sums[page] += values[page];
            down[page] += float(2 * j - across + 1) * values[page];
            right[page] += float(2 * k - across + 1) * values[page];
        }
    }
    constexpr int pixels = across * across, slopes = pixels * (pixels - 1) / 3;
    return (products - sums[0] * sums[1] / pixels -
            (down[0] * down[1] + right[0] * right[1]) / slopes) /
           (pixels - 3);
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
            choose(made, level, grid);
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
        float *fit = pages.fits + 8 * block;
        fit[0] = patch.mean;
        fit[1] = mean_product(patch.pixels, patch.pixels);
        // The patch is without its mean here, so the mean difference is the other page's mean.
        fit[2] = differ(patch, made.pages[1][0], row, column, motion, difference);
        fit[3] = moved_variance(made, patch, grid, row, column);
        fit[4] = differ(patch, made.pages[1][0], row, column, {0, 0}, difference);
        fit[5] = mean_product(difference, difference);
        fit[6] = covariance(pages, row, column, motion);
        fit[7] = covariance(pages, row, column, {0, 0});
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
