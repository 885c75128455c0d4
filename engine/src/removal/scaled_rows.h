// Rows at another scale: of values, or of the image.
#pragma once

#include "../vectors.h"
#include "row_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

static bool scale_row(float *row, int64_t width, float factor, float black) {
    float not_finite = 0;  // 0 times a finite number, or NaN
    for (int64_t x = 0; x < width; x++) {
        row[x] = row[x] * factor - black;
        const float is_nan = row[x] - row[x];
        not_finite = is_nan == 0 ? not_finite : 1.0f;
    }
    return not_finite == 0;
}

static void unscale_row(float *row, int64_t width, float factor, float black) {
    for (int64_t x = 0; x < width; x++) row[x] = (row[x] + black) / factor;
}

static void clip_row(float *row, int64_t width, float low, float high) {
    for (int64_t x = 0; x < width; x++) {
        const float above = row[x] < low ? low : row[x];
        row[x] = high < above ? high : above;
    }
}

static void subtract_row(const float *less, int64_t width, float *row) {
    for (int64_t x = 0; x < width; x++) row[x] -= less[x];
}

static void halve_row(const float *upper, const float *lower, int64_t half_width, float *row) {
    for (int64_t x = 0; x < half_width; x++) {
        const float left = upper[2 * x] + lower[2 * x];
        const float right = upper[2 * x + 1] + lower[2 * x + 1];
        row[x] = (left + right) * 0.25f;
    }
}

// The centers of pixels of half the size are between those of the full size: an even pixel is three
// quarters of the way from one to the next, an odd one a quarter. Borders are repeated.
static void enlarge_row(const float *near, const float *far, float share, int64_t half_width,
                        float *line, int64_t width, float *row) {
    for (int64_t x = 0; x < half_width; x++) line[x] = near[x] + (far[x] - near[x]) * share;
    const auto add = [&](int64_t x) {
        const int64_t last = half_width - 1, left = (x + 1) / 2 - 1, right = left + 1;
        const float from = line[left < 0 ? 0 : left > last ? last : left];
        const float to = line[right > last ? last : right];
        row[x] += from + (to - from) * (x % 2 == 0 ? 0.75f : 0.25f);
    };
    const int64_t pairs = (width < 2 * half_width ? width : 2 * half_width) / 2;
    add(0);
    for (int64_t pair = 0; pair + 1 < pairs; pair++) {
        const float from = line[pair], step = line[pair + 1] - from;
        row[2 * pair + 1] += from + step * 0.25f;
        row[2 * pair + 2] += from + step * 0.75f;
    }
    for (int64_t x = pairs > 0 ? 2 * pairs - 1 : 1; x < width; x++) add(x);
}

static void widen_row(const Widening &wide, const float *near, const float *far, float share,
                      float *row) {
    const auto at = [&](int64_t column) NLNET_BODY {
        const int64_t inside = smaller_of(larger_of(column, 0), wide.columns - 1);
        return near[inside] + (far[inside] - near[inside]) * share;
    };
    for (int64_t pair = 0; pair <= wide.columns; pair++) {
        const float left = at(pair - 1), step = at(pair) - left;
        for (int64_t x = wide.begins[pair]; x < wide.begins[pair + 1]; x++) {
            row[x] = left + step * wide.shares[x];
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
