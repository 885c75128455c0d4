// What an eye sees of a pixel: its luminance, and what differs from the pixels around it.
#pragma once

#include "../kernels.h"
#include "../vectors.h"
#include "layers.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

typedef Vector<float, kLanes<float>> Seen;
typedef Vector<int32_t, kLanes<float>> SeenBits;

// The natural logarithm of numbers from 1 on, by the polynomial of Cephes.
static NLNET_INLINE Seen logarithm(Seen number) {
    // A power of two times a mantissa from sqrt(1/2) to sqrt(2).
    const SeenBits exponent = (SeenBits(number) - 0x3f3504f3) >> 23;
    const Seen mantissa = Seen(SeenBits(number) - (exponent << 23));
    const Seen power = __builtin_convertvector(exponent, Seen);
    const Seen x = mantissa - 1.0f;
    Seen sum = x * 7.0376836292e-2f - 1.1514610310e-1f;
    sum = sum * x + 1.1676998740e-1f;
    sum = sum * x - 1.2420140846e-1f;
    sum = sum * x + 1.4249322787e-1f;
    sum = sum * x - 1.6668057665e-1f;
    sum = sum * x + 2.0000714765e-1f;
    sum = sum * x - 2.4999993993e-1f;
    sum = sum * x + 3.3333331174e-1f;
    // ln 2 in two parts, the larger of which has few digits.
    const Seen tail = sum * x * x * x - power * 2.12194440e-4f - 0.5f * (x * x);
    return x + tail + power * 0.693359375f;
}

// By Newton's method, since the common language of GCC and Clang has no root of a vector.
static NLNET_INLINE Seen square_root(Seen number) {
    Seen inverse = Seen(0x5f3759df - (SeenBits(number) >> 1));
    repeat<3>([&](int)
                  NLNET_BODY { inverse = inverse * (1.5f - 0.5f * number * inverse * inverse); });
    return number * inverse;
}

// To about 3e-7 of the result, or of 1 if that is larger.
static NLNET_INLINE Seen asinh_of(Seen number) {
    const SeenBits sign = SeenBits(number) & INT32_MIN;
    const Seen size = smaller(splat<Seen>(1e9f), Seen(SeenBits(number) & INT32_MAX));
    const Seen square = size * size;
    Seen sum = square * 2.0122003309e-2f - 4.2699340972e-2f;
    sum = sum * square + 7.4847586088e-2f;
    sum = sum * square - 1.6666288134e-1f;
    const Seen near = sum * square * size + size;
    const Seen far = logarithm(size + square_root(square + 1.0f));
    return Seen(SeenBits(size < 0.5f ? near : far) | sign);
}

// A vector of one feature, to the pairs of columns that are left.
static NLNET_INLINE void store_pairs(const Seen &values, int64_t pairs, float *target) {
    float columns[kLanes<float>];
    store(values, columns);
    for (int64_t i = 0; i < smaller_of(pairs, kLanes<float> / 2); i++) {
        __builtin_memcpy(target + i * 4 * kFeatures, columns + 2 * i, 2 * sizeof(float));
    }
}

// Sums of 5 rows with their first and last columns repeated twice.
static void sum_rows(const float *const (&rows)[5], int64_t width, float *line) {
    for (int64_t x = 0; x < width; x += kLanes<float>) {
        Seen sum = load<Seen>(rows[0] + x);
        repeat<4>([&](int i) NLNET_BODY { sum += load<Seen>(rows[i + 1] + x); });
        store(sum, line + 2 + x);
    }
    line[0] = line[1] = line[2];
    line[width + 2] = line[width + 3] = line[width + 1];
}

// Feature 0 is the luminance, the others asinh of what differs from the mean of 5x5 pixels. Feature
// f of column x is channel 4 f + x % 2 from the target on.
static void features(const FeatureRow &row) {
    const auto each = [&](int feature, const auto &value) NLNET_BODY {
        for (int64_t x = 0; x < row.width; x += kLanes<float>) {
            store_pairs(value(x), (row.width - x) / 2,
                        row.target + x / 2 * 4 * kFeatures + 4 * feature);
        }
    };
    each(0, [&](int64_t x)
                NLNET_BODY { return (load<Seen>(row.rows[0][2] + x) - 127.5f) * (1.0f / 64); });
    for (int plane = 0; plane < row.planes; plane++) {
        const float *pixels = row.rows[plane][2];
        sum_rows(row.rows[plane], row.width, row.line);
        each(1 + plane, [&](int64_t x) NLNET_BODY {
            Seen sum = load<Seen>(row.line + x);
            repeat<4>([&](int i) NLNET_BODY { sum += load<Seen>(row.line + x + i + 1); });
            return asinh_of((load<Seen>(pixels + x) - sum * (1.0f / 25)) * 0.5f);
        });
    }
    for (int plane = row.planes; plane < kFeatures - 1; plane++) {
        each(1 + plane, [&](int64_t) NLNET_BODY { return Seen{}; });
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
