// Sizes of a network, and of the tiles that its work is cut into.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Never a symbol of its own: code for one instruction set must not be merged with that for another.
#define NLNET_ALWAYS_INLINE __attribute__((always_inline)) inline

namespace nlnet {

struct Shape {
    int channels;  // 1 or 3
    int stages;
    int patch;   // side of a patch, odd
    int group;   // K, patches of a group
    int window;  // side of the search window, odd
    int rbf_count;
    int intervals;  // of psi's table

    NLNET_ALWAYS_INLINE int radius() const { return patch / 2; }
    // How far the members of a group are from it, at most.
    NLNET_ALWAYS_INLINE int reach() const { return window / 2; }
    // How far around its pixels matching and a stage read and write.
    NLNET_ALWAYS_INLINE int margin() const { return reach() + radius(); }
    NLNET_ALWAYS_INLINE int pixels() const { return patch * patch; }
    NLNET_ALWAYS_INLINE int filters() const { return patch * patch - 1; }
};

// Columns of a stage's tiles, and of matching's.
constexpr int kTileColumns = 64;
constexpr int kMatchColumns = 128;

constexpr int kCacheLine = 64;

// Kernels read and write whole vectors: behind every array there is room for one of the widest.
constexpr int kRoom = 16;

NLNET_ALWAYS_INLINE constexpr int64_t round_up(int64_t number, int64_t step) {
    return (number + step - 1) / step * step;
}

NLNET_ALWAYS_INLINE constexpr int64_t smaller_of(int64_t left, int64_t right) {
    return left < right ? left : right;
}
NLNET_ALWAYS_INLINE constexpr int64_t larger_of(int64_t left, int64_t right) {
    return left < right ? right : left;
}

// Where a row or column of an image that is padded by symmetric boundaries comes from:
// ... 1 0 | 0 1 2 | 2 1 ...
NLNET_ALWAYS_INLINE constexpr int64_t mirrored(int64_t at, int64_t size) {
    return at < 0 ? -1 - at : at < size ? at : 2 * size - 1 - at;
}

// Elements from one row to the next of the window around a tile: a whole number of cache lines (of
// floats), so that all rows of a patch cross one or none does. An odd number: rows a power of two
// apart would be in each other's way in the cache.
NLNET_ALWAYS_INLINE int64_t window_stride(const Shape &shape) {
    const int line = kCacheLine / 4;
    const int64_t columns = kTileColumns + 2 * shape.margin() + round_up(shape.patch, 8);
    return (((columns + line - 1) / line) | 1) * line;
}

// Elements of the window around a tile of so many rows.
NLNET_ALWAYS_INLINE int64_t window_size(const Shape &shape, int tile_rows) {
    return (tile_rows + 2 * shape.margin()) * window_stride(shape);
}

}  // namespace nlnet
