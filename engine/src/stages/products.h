// Products with the filters, and the gradient of the filters.
//
// A BLAS packs its operands and is made for large ones; here one of them is a few kilobytes, and
// the other comes from the first-level cache and goes back there. There are F = P - 1 filters, a
// multiple of 8: the products have F columns in whole vectors, and a last one by itself.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// A left factor: a matrix, or its transpose with the two steps exchanged.
template <typename T>
struct Left {
    const T *data;
    int64_t row, column;  // elements from one to the next
};

// So many rows and vectors of a product are summed in registers, with some left for operands.
constexpr int kBlockWidth = 3;
constexpr int kBlockHeight = kRegisters >= 32 ? 8 : 4;

// out[i, j] = (out[i, j] if Add, plus) sum_k left[i, k] * right[k, j] for Height rows, Width
// vectors
template <bool Add, int Height, int Width, typename V, typename T>
static NLNET_INLINE void multiply_block(const Left<T> &left, const T *right, int64_t right_stride,
                                        int inner, T *out, int64_t out_stride) {
    constexpr int lanes = sizeof(V) / sizeof(T);
    V sums[Height][Width];
    repeat<Height * Width>([&](int at) NLNET_BODY { sums[at / Width][at % Width] = V{}; });
    const T *factors = left.data;
    for (int k = 0; k < inner; k++, factors += left.column, right += right_stride) {
        V terms[Width];
        repeat<Width>([&](int j) NLNET_BODY { terms[j] = load<V>(right + j * lanes); });
        repeat<Height>([&](int i) NLNET_BODY {
            const V factor = splat<V>(factors[i * left.row]);
            repeat<Width>([&](int j) NLNET_BODY { sums[i][j] += factor * terms[j]; });
        });
    }
    repeat<Height * Width>([&](int at) NLNET_BODY {
        const int i = at / Width, j = at % Width;
        T *place = out + i * out_stride + j * lanes;
        store(Add ? load<V>(place) + sums[i][j] : sums[i][j], place);
    });
}

// The same for Height rows and `width` columns, a multiple of 8.
template <bool Add, int Height, typename T>
static NLNET_INLINE void multiply_rows(const Left<T> &left, const T *right, int64_t right_stride,
                                       int inner, int width, T *out, int64_t out_stride) {
    typedef Vector<T, kLanes<T>> V;
    constexpr int lanes = kLanes<T>;
    int at = 0;
    for (; at + kBlockWidth * lanes <= width; at += kBlockWidth * lanes)
        multiply_block<Add, Height, kBlockWidth, V>(left, right + at, right_stride, inner, out + at,
                                                    out_stride);
    if (at + 2 * lanes <= width) {
        multiply_block<Add, Height, 2, V>(left, right + at, right_stride, inner, out + at,
                                          out_stride);
        at += 2 * lanes;
    }
    if (at + lanes <= width) {
        multiply_block<Add, Height, 1, V>(left, right + at, right_stride, inner, out + at,
                                          out_stride);
        at += lanes;
    }
    if constexpr (lanes > 8) {
        if (at < width)
            multiply_block<Add, Height, 1, Vector<T, 8>>(left, right + at, right_stride, inner,
                                                         out + at, out_stride);
    }
}

template <bool Add, typename T>
static NLNET_INLINE void multiply(const Left<T> &left, int rows, const T *right,
                                  int64_t right_stride, int inner, int width, T *out,
                                  int64_t out_stride) {
    int row = 0;
    for (; row + kBlockHeight <= rows; row += kBlockHeight)
        multiply_rows<Add, kBlockHeight>(Left<T>{left.data + row * left.row, left.row, left.column},
                                         right, right_stride, inner, width, out + row * out_stride,
                                         out_stride);
    for (; row < rows; row++)
        multiply_rows<Add, 1>(Left<T>{left.data + row * left.row, left.row, left.column}, right,
                              right_stride, inner, width, out + row * out_stride, out_stride);
}

// features = patches F^T for `count` pixels, Eq. (12); `transposed` is F^T, (P, F).
template <typename T, typename S>
static void transform(const S &sizes, const T *patches, const T *transposed, int count,
                      T *features) {
    const int filters = sizes.filters(), pixels = sizes.pixels();
    multiply<false>(Left<T>{patches, pixels, 1}, count, transposed, filters, pixels, filters,
                    features, filters);
}

// patches = features F, the adjoint. The last column is a scalar product for each pixel.
template <typename T, typename S>
static void transform_back(const S &sizes, const T *features, const T *matrix, const T *transposed,
                           int count, T *patches) {
    const int filters = sizes.filters(), pixels = sizes.pixels();
    multiply<false>(Left<T>{features, filters, 1}, count, matrix, pixels, filters, filters, patches,
                    pixels);
    typedef Pack<T, 8> Terms;
    const T *column = transposed + int64_t(filters) * filters;
    for (int row = 0; row < count; row++) {
        const T *line = features + int64_t(row) * filters;
        Terms sum = Terms::zero();
        for (int at = 0; at < filters; at += 8)
            sum = sum.plus(Terms::read(line + at), Terms::read(column + at));
        patches[int64_t(row) * pixels + filters] = sum.sum();
    }
}

// gradient += features^T patches, Eq. (45): (F, P). `column` has room for F elements.
template <typename T, typename S>
static void add_products(const S &sizes, const T *features, const T *patches, int count,
                         T *gradient, T *column) {
    const int filters = sizes.filters(), pixels = sizes.pixels();
    // So many pixels at a time that both operands stay in the first-level cache.
    constexpr int together = 64;
    for (int first = 0; first < count; first += together) {
        const int here = count - first < together ? count - first : together;
        const T *some_features = features + int64_t(first) * filters;
        const T *some_patches = patches + int64_t(first) * pixels;
        multiply<true>(Left<T>{some_features, 1, filters}, filters, some_patches, pixels, here,
                       filters, gradient, pixels);
        multiply<false>(Left<T>{some_patches + filters, 1, pixels}, 1, some_features, filters, here,
                        filters, column, filters);
        for (int i = 0; i < filters; i++) gradient[i * pixels + filters] += column[i];
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
