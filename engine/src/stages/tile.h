// The work of a stage on a tile, from the image around it to what the tile adds there.
//
// A few rows of the tile's pixels, a strip, go through all steps before the next ones do: few
// enough that their patches and features stay in the cache, and enough that each step finds there
// what it needs besides.
#pragma once

#include "gates.h"
#include "groups.h"
#include "window.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Rows of a strip: fewer for patches so large that not even one row of them fits in the cache.
static int strip_rows(const Shape &shape, int rows) {
    const int fitting = rows * 49 / (shape.pixels() * shape.together());
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

// Memory of the gates, or none.
template <typename T>
static GateMemory<T> gate_memory(const Shape &shape, Scratch<T> &scratch) {
    const int width = shape.features();
    return {scratch.take(shape.gated ? GateMemory<T>::elements(width) : 0), width};
}

// Arrays of the channels that go through all steps at once: each has its own window, and two to
// spread to.
template <typename T, typename S>
struct SpreadMemory {
    T *window[3], *windows[3], *patches, *features;
    GateMemory<T> gates;

    SpreadMemory(const Shape &shape, int tile_rows, Scratch<T> &scratch)
        : window(), windows(), gates(gate_memory(shape, scratch)) {
        const int64_t size = window_size(shape, tile_rows);
        const int64_t pixels = strip_rows(shape, kSpreadRows) * kTileColumns;
        for (int channel = 0; channel < shape.together(); channel++) {
            window[channel] = scratch.take(size);
            windows[channel] = scratch.take(SpreadWindows<T, S>::elements(size));
        }
        patches = scratch.take(pixels * shape.pixels());
        features = scratch.take(pixels * shape.filters() * shape.together());
    }
};

template <typename T, typename S>
struct DifferentiateMemory {
    T *window[3], *error_window[3], *windows[3], *patches[3], *error_patches[3];
    T *values, *slopes, *column;
    GateMemory<T> gates;

    DifferentiateMemory(const Shape &shape, int tile_rows, Scratch<T> &scratch)
        : window(),
          error_window(),
          windows(),
          patches(),
          error_patches(),
          gates(gate_memory(shape, scratch)) {
        const int64_t size = window_size(shape, tile_rows);
        const int64_t pixels = strip_rows(shape, kDifferentiateRows) * kTileColumns;
        for (int channel = 0; channel < shape.together(); channel++) {
            window[channel] = scratch.take(size);
            error_window[channel] = scratch.take(size);
            windows[channel] = scratch.take(SpreadWindows<T, S>::elements(size));
            patches[channel] = scratch.take(pixels * shape.pixels());
            error_patches[channel] = scratch.take(pixels * shape.pixels());
        }
        values = scratch.take(pixels * shape.filters() * shape.together());
        slopes = scratch.take(pixels * shape.filters() * shape.together());
        column = scratch.take(shape.filters());
    }
};

template <template <typename, typename> class Memory, typename T, typename S>
static size_t scratch_bytes(const Shape &shape, int tile_rows) {
    Scratch<T> scratch{nullptr, 0};
    Memory<T, S> memory(shape, tile_rows, scratch);
    (void)memory;
    return scratch.used;
}

template <typename T>
static Strip strip_of(const Shape &shape, const StageTile<T> &tile, int first, int most) {
    const int64_t stride = tile.width * shape.group * 2;
    return {first,        tile.rows - first < most ? tile.rows - first : most,
            tile.columns, tile.groups + first * stride + tile.left * shape.group * 2,
            stride,       window_stride(shape)};
}

// Some channels of a tile: one, or all of them if gates connect their features. Features of a pixel
// follow each other, channel by channel.
template <bool Gated, typename T, typename S>
static void spread_channels(const Shape &shape, const S &sizes, const Stage<T> &stage,
                            const StageTile<T> &tile, int first, const SpreadMemory<T, S> &memory) {
    const int together = Gated ? shape.channels : 1, filters = sizes.filters();
    const int width = Gated ? shape.features() : filters;
    const int64_t size = window_size(shape, tile.rows);
    const T *cubics = stage.cubics + int64_t(first) * filters * shape.intervals * 4;
    for (int c = 0; c < together; c++) {
        copy_window(shape, tile.estimate[first + c], tile, memory.window[c]);
        SpreadWindows<T, S>(memory.windows[c], size).clear();
    }
    const int most = strip_rows(shape, kSpreadRows);
    for (int row = 0; row < tile.rows; row += most) {
        const Strip strip = strip_of(shape, tile, row, most);
        for (int c = 0; c < together; c++) {
            sum_groups(sizes, strip, memory.window[c], stage.weights, memory.patches);
            transform(sizes, memory.patches, stage.transposed, strip.count(),
                      memory.features + c * filters, width);
        }
        if (Gated) gate(stage, width, memory.features, strip.count(), memory.gates);
        evaluate_psi(width, stage, shape.intervals, cubics, memory.features, strip.count());
        // Eq. (13): the two steps of the adjoint.
        for (int c = 0; c < together; c++) {
            transform_back(sizes, memory.features + c * filters, width, stage.filters,
                           stage.transposed, strip.count(), memory.patches);
            spread_groups(sizes, strip, memory.patches, stage.weights,
                          SpreadWindows<T, S>(memory.windows[c], size));
        }
    }
    for (int c = 0; c < together; c++)
        SpreadWindows<T, S>(memory.windows[c], size).add_up(tile.part[first + c]);
}

// part = sum over the tile's pixels r of L_r^T psi(L_r x)
template <typename T, typename S>
static void spread(const Shape &shape, const Stage<T> &stage, const StageTile<T> &tile,
                   void *scratch_memory) {
    const S sizes(shape);
    Scratch<T> scratch{static_cast<char *>(scratch_memory), 0};
    const SpreadMemory<T, S> memory(shape, tile.rows, scratch);
    if (shape.gated) return spread_channels<true>(shape, sizes, stage, tile, 0, memory);
    for (int channel = 0; channel < shape.channels; channel++)
        spread_channels<false>(shape, sizes, stage, tile, channel, memory);
}

template <bool Gated, typename T, typename S>
static void differentiate_channels(const Shape &shape, const S &sizes, const Stage<T> &stage,
                                   const StageTile<T> &tile, const Rows<const T> *cotangents,
                                   int first, const StageSums<T> &sums,
                                   const DifferentiateMemory<T, S> &memory) {
    const int together = Gated ? shape.channels : 1, filters = sizes.filters();
    const int width = Gated ? shape.features() : filters;
    const int64_t size = window_size(shape, tile.rows);
    const int64_t table = int64_t(first) * filters * shape.intervals * 4;
    for (int c = 0; c < together; c++) {
        copy_window(shape, tile.estimate[first + c], tile, memory.window[c]);
        copy_window(shape, cotangents[first + c], tile, memory.error_window[c]);
        SpreadWindows<T, S>(memory.windows[c], size).clear();
    }
    const int most = strip_rows(shape, kDifferentiateRows);
    for (int row = 0; row < tile.rows; row += most) {
        const Strip strip = strip_of(shape, tile, row, most);
        const int count = strip.count();
        for (int c = 0; c < together; c++) {
            sum_groups(sizes, strip, memory.window[c], stage.weights, memory.patches[c]);
            sum_groups(sizes, strip, memory.error_window[c], stage.weights,
                       memory.error_patches[c]);
            transform(sizes, memory.patches[c], stage.transposed, count,
                      memory.values + c * filters, width);
            transform(sizes, memory.error_patches[c], stage.transposed, count,
                      memory.slopes + c * filters, width);
        }
        if (Gated)
            differentiate_gates(stage, width, shape.intervals, stage.cubics + table, memory.values,
                                memory.slopes, count, sums.cubics + table, sums.gates,
                                memory.gates);
        else
            differentiate_psi(width, stage, shape.intervals, stage.cubics + table, memory.values,
                              memory.slopes, count, sums.cubics + table);
        for (int c = 0; c < together; c++) {
            T *patches = memory.patches[c], *error_patches = memory.error_patches[c];
            const T *values = memory.values + c * filters, *slopes = memory.slopes + c * filters;
            add_products(sizes, values, width, error_patches, count, sums.filters, memory.column);
            add_products(sizes, slopes, width, patches, count, sums.filters, memory.column);
            transform_back(sizes, values, width, stage.filters, stage.transposed, count, patches);
            transform_back(sizes, slopes, width, stage.filters, stage.transposed, count,
                           error_patches);
            correlate_groups(sizes, strip, memory.error_window[c], patches, sums.weights);
            correlate_groups(sizes, strip, memory.window[c], error_patches, sums.weights);
            spread_groups(sizes, strip, error_patches, stage.weights,
                          SpreadWindows<T, S>(memory.windows[c], size));
        }
    }
    for (int c = 0; c < together; c++)
        SpreadWindows<T, S>(memory.windows[c], size).add_up(tile.part[first + c]);
}

// With z for the stage's input, s = L_r z, d = L_r e, and B_r for the sum of a group's patches,
// this adds the sums over the tile's pixels r of
//   F: psi(s) (B_r e)^T + psi'(s) d (B_r z)^T
//   w_k: psi(s)^T F P_k e + (psi'(s) d)^T F P_k z
//   cubics: d * (1, t, t^2, t^3)
// and part = sum of L_r^T (psi'(s) d). With gates, psi(s) and psi'(s) d are those of psi after the
// gates.
template <typename T, typename S>
static void differentiate(const Shape &shape, const Stage<T> &stage, const StageTile<T> &tile,
                          const Rows<const T> *cotangents, const StageSums<T> &sums,
                          void *scratch_memory) {
    const S sizes(shape);
    Scratch<T> scratch{static_cast<char *>(scratch_memory), 0};
    const DifferentiateMemory<T, S> memory(shape, tile.rows, scratch);
    if (shape.gated)
        return differentiate_channels<true>(shape, sizes, stage, tile, cotangents, 0, sums, memory);
    for (int channel = 0; channel < shape.channels; channel++)
        differentiate_channels<false>(shape, sizes, stage, tile, cotangents, channel, sums, memory);
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
