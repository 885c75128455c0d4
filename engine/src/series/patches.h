// Patches of 16x16 pixels around a grid of blocks of 8x8, and how well they fit another page.
#pragma once

#include "field.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kSide = 16;  // of a patch, centred on its block
constexpr int kArea = kSide * kSide;
constexpr int kBefore = (kSide - kBlock) / 2;  // columns of a patch before its block

struct Plane {
    const float *data;
    int64_t height, width;

    NLNET_ALWAYS_INLINE float at(int64_t y, int64_t x) const {
        return data[clamped(y, height) * width + clamped(x, width)];
    }
};

// A patch of the reference: its pixels and its gradient, all of them without their means.
struct Patch {
    float pixels[kArea], down[kArea], right[kArea];
    float mean;
    float yy, yx, xx;  // means of the products of the gradient
};

// Sixteen sums next to each other, so that they are vectors and still added in one order.
struct Sums {
    float lanes[kSide] = {};

    NLNET_ALWAYS_INLINE void add(const float *left, const float *right) {
        for (int i = 0; i < kSide; ++i) lanes[i] += left[i] * right[i];
    }
    NLNET_ALWAYS_INLINE void add(const float *values) {
        for (int i = 0; i < kSide; ++i) lanes[i] += values[i];
    }
    NLNET_ALWAYS_INLINE float mean() const {
        float sum = 0;
        for (int i = 0; i < kSide; ++i) sum += lanes[i];
        return sum * (1.0f / kArea);
    }
};

static NLNET_ALWAYS_INLINE float mean_product(const float *left, const float *right) {
    Sums sums;
    for (int i = 0; i < kArea; i += kSide) sums.add(left + i, right + i);
    return sums.mean();
}

static NLNET_ALWAYS_INLINE float remove_mean(float *values) {
    Sums sums;
    for (int i = 0; i < kArea; i += kSide) sums.add(values + i);
    const float mean = sums.mean();
    for (int i = 0; i < kArea; ++i) values[i] -= mean;
    return mean;
}

// Pixels of a square, `stride` apart from row to row: in the plane, or copied where the square goes
// beyond it; there, the border is repeated.
template <int Side>
struct Square {
    const float *pixels;
    int64_t stride;
    float copied[Side * Side];

    NLNET_ALWAYS_INLINE Square(const Plane &plane, int64_t top, int64_t left) {
        pixels = plane.data + top * plane.width + left;
        stride = plane.width;
        if (top >= 0 && left >= 0 && top + Side <= plane.height && left + Side <= plane.width) {
            return;
        }
        for (int y = 0; y < Side; ++y) {
            for (int x = 0; x < Side; ++x) copied[y * Side + x] = plane.at(top + y, left + x);
        }
        pixels = copied;
        stride = Side;
    }
};

static void read_patch(const Plane &plane, int64_t row, int64_t column, Patch *patch) {
    const Square<kSide + 2> square(plane, row * kBlock - kBefore - 1,
                                   column * kBlock - kBefore - 1);
    for (int y = 0; y < kSide; ++y) {
        const float *above = square.pixels + y * square.stride + 1;
        const float *here = above + square.stride, *below = here + square.stride;
        for (int x = 0; x < kSide; ++x) {
            patch->pixels[y * kSide + x] = here[x];
            patch->down[y * kSide + x] = 0.5f * (below[x] - above[x]);
            patch->right[y * kSide + x] = 0.5f * (here[x + 1] - here[x - 1]);
        }
    }
    patch->mean = remove_mean(patch->pixels);
    remove_mean(patch->down);
    remove_mean(patch->right);
    patch->yy = mean_product(patch->down, patch->down);
    patch->yx = mean_product(patch->down, patch->right);
    patch->xx = mean_product(patch->right, patch->right);
}

// What a patch differs by from the other page, moved by a vector: without its mean, which is
// returned.
static float differ(const Patch &patch, const Plane &other, int64_t row, int64_t column,
                    Vector2 motion, float *difference) {
    // Of numbers that overflow there is no place to read from.
    if (!(square(motion) < 1e12f)) motion = {0, 0};
    const float whole_y = __builtin_floorf(motion.y), whole_x = __builtin_floorf(motion.x);
    const float y_share = motion.y - whole_y, x_share = motion.x - whole_x;
    const Square<kSide + 1> square(other, row * kBlock - kBefore + int64_t(whole_y),
                                   column * kBlock - kBefore + int64_t(whole_x));
    const float *from = square.pixels;
    float above[kSide];
    for (int x = 0; x < kSide; ++x) above[x] = from[x] + x_share * (from[x + 1] - from[x]);
    for (int y = 0; y < kSide; ++y) {
        from += square.stride;
        const float *pixels = patch.pixels + y * kSide;
        float *out = difference + y * kSide;
        for (int x = 0; x < kSide; ++x) {
            const float below = from[x] + x_share * (from[x + 1] - from[x]);
            out[x] = above[x] + y_share * (below - above[x]) - pixels[x];
            above[x] = below;
        }
    }
    return remove_mean(difference);
}

// The mean squared difference, whatever the brightness.
static NLNET_ALWAYS_INLINE float cost_of(const Patch &patch, const Plane &other, int64_t row,
                                         int64_t column, Vector2 motion) {
    float difference[kArea];
    differ(patch, other, row, column, motion, difference);
    return mean_product(difference, difference);
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
