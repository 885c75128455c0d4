// Rows of pixels of any type, as floats and back.
#pragma once

#include "../vectors.h"
#include "row_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

template <typename P>
static void load_pixels(const void *pixels, ptrdiff_t step, int64_t width, float *row) {
    const P *from = static_cast<const P *>(pixels);
    if (step == 1) {
        for (int64_t x = 0; x < width; x++) row[x] = float(from[x]);
    } else {
        for (int64_t x = 0; x < width; x++) row[x] = float(from[x * step]);
    }
}

template <typename P>
struct Limits {
    static constexpr bool kSigned = P(-1) < P(0);
    static constexpr int kBits = 8 * int(sizeof(P));
    static constexpr double kHigh = double((uint64_t(1) << (kBits - kSigned)) - 1);
    static constexpr double kLow = kSigned ? -kHigh - 1 : 0;
};

// To the nearest integer, to the even one of two; NaN becomes the least one.
template <typename P>
static NLNET_INLINE P rounded(float value) {
    typedef Limits<P> Range;
    const double magic = 6755399441055744.0;  // 1.5 * 2^52: what is added to it has no fraction
    const double above = double(value) > Range::kLow ? double(value) : Range::kLow;
    const double inside = above < Range::kHigh ? above : Range::kHigh;
    const double whole = (inside + magic) - magic;
    if constexpr (sizeof(P) == 4 && !Range::kSigned) {
        return P(int64_t(whole));
    } else {
        return P(int32_t(whole));
    }
}

template <typename P>
static void store_integers(const float *row, int64_t width, void *pixels, ptrdiff_t step) {
    P *to = static_cast<P *>(pixels);
    for (int64_t x = 0; x < width; x++) to[x * step] = rounded<P>(row[x]);
}

template <typename P>
static void store_floats(const float *row, int64_t width, void *pixels, ptrdiff_t step) {
    P *to = static_cast<P *>(pixels);
    for (int64_t x = 0; x < width; x++) to[x * step] = P(row[x]);
}

static void load_row(nlnet_type type, const void *pixels, ptrdiff_t step, int64_t width,
                     float *row) {
    switch (type) {
        case NLNET_UINT8: return load_pixels<uint8_t>(pixels, step, width, row);
        case NLNET_INT8: return load_pixels<int8_t>(pixels, step, width, row);
        case NLNET_UINT16: return load_pixels<uint16_t>(pixels, step, width, row);
        case NLNET_INT16: return load_pixels<int16_t>(pixels, step, width, row);
        case NLNET_UINT32: return load_pixels<uint32_t>(pixels, step, width, row);
        case NLNET_INT32: return load_pixels<int32_t>(pixels, step, width, row);
        case NLNET_FLOAT32: return load_pixels<float>(pixels, step, width, row);
        default: return load_pixels<double>(pixels, step, width, row);
    }
}

static void store_row(nlnet_type type, const float *row, int64_t width, void *pixels,
                      ptrdiff_t step) {
    switch (type) {
        case NLNET_UINT8: return store_integers<uint8_t>(row, width, pixels, step);
        case NLNET_INT8: return store_integers<int8_t>(row, width, pixels, step);
        case NLNET_UINT16: return store_integers<uint16_t>(row, width, pixels, step);
        case NLNET_INT16: return store_integers<int16_t>(row, width, pixels, step);
        case NLNET_UINT32: return store_integers<uint32_t>(row, width, pixels, step);
        case NLNET_INT32: return store_integers<int32_t>(row, width, pixels, step);
        case NLNET_FLOAT32: return store_floats<float>(row, width, pixels, step);
        default: return store_floats<double>(row, width, pixels, step);
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
