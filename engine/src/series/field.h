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

// The field between four blocks. Those that move otherwise than the nearest one, as across the edge
// of a thing, count less: between two motions there is no third one.
static NLNET_ALWAYS_INLINE Vector2 interpolate(const Grid2 &grid, const Vector2 *field, Between y,
                                               Between x) {
    const Vector2 *above = field + clamped(y.first, grid.rows) * grid.columns;
    const Vector2 *below = field + clamped(y.first + 1, grid.rows) * grid.columns;
    const int64_t left = clamped(x.first, grid.columns), right = clamped(x.first + 1, grid.columns);
    const Vector2 vectors[] = {above[left], above[right], below[left], below[right]};
    const float shares[] = {(1 - y.share) * (1 - x.share), (1 - y.share) * x.share,
                            y.share * (1 - x.share), y.share * x.share};
    const Vector2 nearest = vectors[(y.share >= 0.5f ? 2 : 0) + (x.share >= 0.5f ? 1 : 0)];
    Vector2 sum = {0, 0};
    float weights = 0;
    for (int i = 0; i < 4; ++i) {
        const float apart = square(vectors[i] - nearest);
        const float weight = shares[i] / (1 + apart * apart);
        sum = sum + weight * vectors[i];
        weights += weight;
    }
    return (1 / weights) * sum;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
