// The work of a stage on a tile, from the image around it to what the tile adds there.
//
// A few rows of the tile's pixels, a strip, go through all steps before the next ones do: few
// enough that their patches and features stay in the cache, and enough that each step finds there
// what it needs besides.
#pragma once

#include "groups.h"
#include "products.h"
#include "psi.h"
#include "window.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Rows of a strip: fewer for patches so large that not even one row of them fits in the cache.
static int strip_rows(const Shape &shape, int rows) {
    const int fitting = rows * 49 / shape.pixels();
    return fitting < 1 ? 1 : fitting < rows ? fitting : rows;
}

constexpr int kSpreadRows = 8;
constexpr int kDifferentiateRows = 4;

// Memory is handed out array by array, each from a cache line on.
template <typename T>
struct Scratch {
    char *memory;  // null: only count
    size_t used;

    T *take(int64_t elements) {
        T *array = memory ? reinterpret_cast<T *>(memory + used) : nullptr;
        used += size_t(round_up((elements + kRoom) * int64_t(sizeof(T)), kCacheLine));
        return array;
    }
};

template <typename T, typename S>
struct SpreadArrays {
    T *window, *patches, *features, *windows;

    SpreadArrays(const Shape &shape, int tile_rows, Scratch<T> &scratch) {
        const int64_t size = window_size(shape, tile_rows);
        const int64_t pixels = strip_rows(shape, kSpreadRows) * kTileColumns;
        window = scratch.take(size);
        patches = scratch.take(pixels * shape.pixels());
        features = scratch.take(pixels * shape.filters());
        windows = scratch.take(SpreadWindows<T, S>::elements(size));
    }
};

template <typename T, typename S>
struct DifferentiateArrays {
    T *window, *error_window, *patches, *error_patches, *values, *slopes, *column, *windows;

    DifferentiateArrays(const Shape &shape, int tile_rows, Scratch<T> &scratch) {
        const int64_t size = window_size(shape, tile_rows);
        const int64_t pixels = strip_rows(shape, kDifferentiateRows) * kTileColumns;
        window = scratch.take(size);
        error_window = scratch.take(size);
        patches = scratch.take(pixels * shape.pixels());
        error_patches = scratch.take(pixels * shape.pixels());
        values = scratch.take(pixels * shape.filters());
        slopes = scratch.take(pixels * shape.filters());
        column = scratch.take(shape.filters());
        windows = scratch.take(SpreadWindows<T, S>::elements(size));
    }
};

template <typename T>
static Strip strip_of(const Shape &shape, const StageTile<T> &tile, int first, int most) {
    const int64_t stride = tile.width * shape.group * 2;
    return {first,        tile.rows - first < most ? tile.rows - first : most,
            tile.columns, tile.groups + first * stride + tile.left * shape.group * 2,
            stride,       window_stride(shape)};
}

// part = sum over the tile's pixels r of L_r^T psi(L_r x)
template <typename T, typename S>
static void spread(const S &sizes, const Shape &shape, const Stage<T> &stage, int channel,
                   const StageTile<T> &tile, void *scratch_memory) {
    Scratch<T> scratch{static_cast<char *>(scratch_memory), 0};
    const SpreadArrays<T, S> arrays(shape, tile.rows, scratch);
    const SpreadWindows<T, S> windows(arrays.windows, window_size(shape, tile.rows));
    const T *cubics = stage.cubics + int64_t(channel) * sizes.filters() * shape.intervals * 4;
    copy_window(shape, tile.estimate, tile, arrays.window);
    windows.clear();
    const int most = strip_rows(shape, kSpreadRows);
    for (int row = 0; row < tile.rows; row += most) {
        const Strip strip = strip_of(shape, tile, row, most);
        sum_groups(sizes, strip, arrays.window, stage.weights, arrays.patches);
        transform(sizes, arrays.patches, stage.transposed, strip.count(), arrays.features);
        evaluate_psi(sizes, stage, shape.intervals, cubics, arrays.features, strip.count());
        // Eq. (13): the two steps of the adjoint.
        transform_back(sizes, arrays.features, stage.filters, stage.transposed, strip.count(),
                       arrays.patches);
        spread_groups(sizes, strip, arrays.patches, stage.weights, windows);
    }
    windows.add_up(tile.part);
}

// With z for the stage's input, s = L_r z, d = L_r e, and B_r for the sum of a group's patches,
// this adds the sums over the tile's pixels r of
//   F: psi(s) (B_r e)^T + psi'(s) d (B_r z)^T
//   w_k: psi(s)^T F P_k e + (psi'(s) d)^T F P_k z
//   cubics: d * (1, t, t^2, t^3)
// and part = sum of L_r^T (psi'(s) d).
template <typename T, typename S>
static void differentiate(const S &sizes, const Shape &shape, const Stage<T> &stage, int channel,
                          const StageTile<T> &tile, const Rows<const T> &cotangent,
                          const StageSums<T> &sums, void *scratch_memory) {
    Scratch<T> scratch{static_cast<char *>(scratch_memory), 0};
    const DifferentiateArrays<T, S> arrays(shape, tile.rows, scratch);
    const SpreadWindows<T, S> windows(arrays.windows, window_size(shape, tile.rows));
    const T *cubics = stage.cubics + int64_t(channel) * sizes.filters() * shape.intervals * 4;
    copy_window(shape, tile.estimate, tile, arrays.window);
    copy_window(shape, cotangent, tile, arrays.error_window);
    windows.clear();
    const int most = strip_rows(shape, kDifferentiateRows);
    for (int row = 0; row < tile.rows; row += most) {
        const Strip strip = strip_of(shape, tile, row, most);
        const int count = strip.count();
        sum_groups(sizes, strip, arrays.window, stage.weights, arrays.patches);
        sum_groups(sizes, strip, arrays.error_window, stage.weights, arrays.error_patches);
        transform(sizes, arrays.patches, stage.transposed, count, arrays.values);
        transform(sizes, arrays.error_patches, stage.transposed, count, arrays.slopes);
        differentiate_psi(sizes, stage, shape.intervals, cubics, arrays.values, arrays.slopes,
                          count, sums.cubics);
        add_products(sizes, arrays.values, arrays.error_patches, count, sums.filters,
                     arrays.column);
        add_products(sizes, arrays.slopes, arrays.patches, count, sums.filters, arrays.column);
        transform_back(sizes, arrays.values, stage.filters, stage.transposed, count,
                       arrays.patches);
        transform_back(sizes, arrays.slopes, stage.filters, stage.transposed, count,
                       arrays.error_patches);
        correlate_groups(sizes, strip, arrays.error_window, arrays.patches, sums.weights);
        correlate_groups(sizes, strip, arrays.window, arrays.error_patches, sums.weights);
        spread_groups(sizes, strip, arrays.error_patches, stage.weights, windows);
    }
    windows.add_up(tile.part);
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
