// A field of motion: one vector per block of 8x8 pixels.
#pragma once

#include "../memory.h"
#include "../set_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kBlock = 8;

struct Vector2 {
    float y, x;
};

static NLNET_ALWAYS_INLINE Vector2 operator+(Vector2 left, Vector2 right) {
    return {left.y + right.y, left.x + right.x};
}
static NLNET_ALWAYS_INLINE Vector2 operator-(Vector2 left, Vector2 right) {
    return {left.y - right.y, left.x - right.x};
}
static NLNET_ALWAYS_INLINE Vector2 operator*(float scale, Vector2 vector) {
    return {scale * vector.y, scale * vector.x};
}
static NLNET_ALWAYS_INLINE float square(Vector2 vector) {
    return vector.y * vector.y + vector.x * vector.x;
}

static NLNET_ALWAYS_INLINE int64_t clamped(int64_t place, int64_t count) {
    return place < 0 ? 0 : place < count ? place : count - 1;
}

struct Grid2 {
    int64_t rows, columns;

    NLNET_ALWAYS_INLINE int64_t at(int64_t row, int64_t column) const {
        return clamped(row, rows) * columns + clamped(column, columns);
    }
    NLNET_ALWAYS_INLINE int64_t size() const { return rows * columns; }
};

static NLNET_ALWAYS_INLINE Grid2 grid_of(int64_t height, int64_t width) {
    return {(height + kBlock - 1) / kBlock, (width + kBlock - 1) / kBlock};
}

// Where a place between the blocks' centres is: the block before it, and the share of the next.
struct Between {
    int64_t first;
    float share;
};

static NLNET_ALWAYS_INLINE Between between(float place) {
    const float whole = __builtin_floorf(place);
    return {int64_t(whole), place - whole};
}

// The field between four blocks.
static NLNET_ALWAYS_INLINE Vector2 interpolate(const Grid2 &grid, const Vector2 *field, Between y,
                                               Between x) {
    const Vector2 *from = field;
    const Vector2 above = (1 - x.share) * from[grid.at(y.first, x.first)] +
                          x.share * from[grid.at(y.first, x.first + 1)];
    const Vector2 below = (1 - x.share) * from[grid.at(y.first + 1, x.first)] +
                          x.share * from[grid.at(y.first + 1, x.first + 1)];
    return (1 - y.share) * above + y.share * below;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
