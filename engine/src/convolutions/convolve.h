// One row of a convolution. Pixels hold all their channels, so that a row of a 3x3 kernel is
// multiplied with 3 * channels elements next to each other.
#pragma once

#include "../stages/products.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Height pixels, Width vectors of their outputs.
template <int Height, int Width, typename V, typename T>
static NLNET_INLINE void convolve_block(const ConvolvedRow<T> &row, int64_t pixel, int at) {
    constexpr int lanes = sizeof(V) / sizeof(T);
    V sums[Height][Width];
    repeat<Width>([&](int j) NLNET_BODY {
        const V bias = load<V>(row.biases + at + j * lanes);
        repeat<Height>([&](int i) NLNET_BODY { sums[i][j] = bias; });
    });
    const int64_t step = row.step, outputs = row.outputs;
    const int inner = row.inner;
    for (int line = 0; line < row.lines; line++) {
        if (row.sources[line] == nullptr) continue;
        const T *factors = row.sources[line] + pixel * step;
        const T *weights = row.weights + line * inner * outputs + at;
        for (int k = 0; k < inner; k++, factors++, weights += outputs) {
            V terms[Width];
            repeat<Width>([&](int j) NLNET_BODY { terms[j] = load<V>(weights + j * lanes); });
            repeat<Height>([&](int i) NLNET_BODY {
                const V factor = splat<V>(factors[i * step]);
                repeat<Width>([&](int j) NLNET_BODY { sums[i][j] += factor * terms[j]; });
            });
        }
    }
    repeat<Height * Width>([&](int place) NLNET_BODY {
        const int i = place / Width, j = place % Width;
        const int64_t here = (pixel + i) * outputs + at + j * lanes;
        V sum = sums[i][j];
        if (row.addend != nullptr) sum += load<V>(row.addend + here);
        store(row.rectified ? larger(sum, V{}) : sum, row.target + here);
    });
}

template <int Height, typename T>
static NLNET_INLINE void convolve_pixels(const ConvolvedRow<T> &row, int64_t pixel) {
    typedef Vector<T, kLanes<T>> V;
    constexpr int lanes = kLanes<T>;
    int at = 0;
    for (; at + kBlockWidth * lanes <= row.outputs; at += kBlockWidth * lanes)
        convolve_block<Height, kBlockWidth, V>(row, pixel, at);
    for (; at + lanes <= row.outputs; at += lanes) convolve_block<Height, 1, V>(row, pixel, at);
    if constexpr (lanes > 8) {
        if (at < row.outputs) convolve_block<Height, 1, Vector<T, 8>>(row, pixel, at);
    }
}

template <typename T>
static void convolve(const ConvolvedRow<T> &row) {
    int64_t pixel = 0;
    for (; pixel + kBlockHeight <= row.pixels; pixel += kBlockHeight)
        convolve_pixels<kBlockHeight>(row, pixel);
    if (pixel == row.pixels) return;
    if (row.pixels >= kBlockHeight) {
        // Some of them once more: that takes less time than one by one.
        convolve_pixels<kBlockHeight>(row, row.pixels - kBlockHeight);
        return;
    }
    for (; pixel < row.pixels; pixel++) convolve_pixels<1>(row, pixel);
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
