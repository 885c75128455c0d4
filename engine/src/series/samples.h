// Pages between their pixels.
#pragma once

#include "field.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

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
        float columns[4] = {};
        for (int i = 0; i < 4; ++i, from += width) {
            for (int j = 0; j < 4; ++j) columns[j] += tap.y[i] * from[j];
        }
        return (tap.x[0] * columns[0] + tap.x[1] * columns[1]) +
               (tap.x[2] * columns[2] + tap.x[3] * columns[3]);
    }
    for (int i = 0; i < 4; ++i) {
        const float *from = plane + clamped(tap.top + i, height) * width;
        float line = 0;
        for (int j = 0; j < 4; ++j) line += tap.x[j] * from[clamped(tap.left + j, width)];
        sum += tap.y[i] * line;
    }
    return sum;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
