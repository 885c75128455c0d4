// How matching cuts a tile into parts that fit the cache, and where their data is in memory.
#pragma once

#include "../shape.h"
#include "../vectors.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Rows, margins and blocks are whole vectors, whichever the set: the widest has 16 floats.
constexpr int kWidest = 16;

// Offsets whose distances are in memory at the same time, each for both of its ends. A multiple of
// 4, as a window has; 16 of them take 5 to 10 % longer where the second-level cache has 512 KB.
constexpr int kBatch = 12;

// Pixels of a part: the more, the fewer distances are measured beyond its edges; the fewer, the
// more of its keys and distances stay in the second-level cache.
constexpr int kPartRows = 66;
constexpr int kPartColumns = 128;

// Keys of a part, unless a single row of kWidest pixels has more.
constexpr int64_t kMostKeys = int64_t(1) << 17;

// Sizes of a part, and of what it needs in memory.
struct Plan {
    int patch, levels, reach;
    int rows, columns;  // pixels, at most
    int64_t margin;     // columns left of the first pixel
    int64_t strip_rows, strip_stride;
    int64_t plane_rows, plane_stride;  // of the distances of one offset

    int64_t strip_size() const { return strip_rows * strip_stride; }
    int64_t plane_size() const { return plane_rows * plane_stride; }
    // The rows of one offset's differences, where a patch of any size is measured.
    int64_t squares_size() const { return (plane_rows + patch - 1) * strip_stride; }
    int64_t pixels() const { return int64_t(rows) * columns; }
};

static Plan plan_for(const Shape &shape, int tile_rows) {
    Plan plan;
    plan.patch = shape.patch;
    plan.levels = shape.group - 1;
    plan.reach = shape.reach();
    plan.columns = kPartColumns;
    while (plan.columns > kWidest && plan.columns * plan.levels > kMostKeys) plan.columns /= 2;
    const int64_t most = kMostKeys / (int64_t(plan.columns) * (plan.levels > 0 ? plan.levels : 1));
    plan.rows = tile_rows < kPartRows ? tile_rows : kPartRows;
    if (plan.rows > most) plan.rows = most > 1 ? int(most) : 1;
    plan.margin = round_up(plan.reach, kWidest);
    plan.plane_rows = plan.rows + plan.reach;
    plan.plane_stride = plan.margin + round_up(plan.columns + plan.reach, kWidest);
    plan.strip_rows = plan.rows + 2 * plan.reach + plan.patch - 1;
    plan.strip_stride = plan.plane_stride + plan.margin + round_up(plan.patch - 1, kWidest);
    return plan;
}

// Memory of one part, taken from what the caller gives.
struct Memory {
    // The image around the part, padded by symmetric boundaries as far as patches reach, infinite
    // beyond: nothing is like a patch outside the image. Column x - left + margin is where the
    // patches around the image's column x start.
    float *strip;
    double *keys;           // (pixels / D, levels, D), D the lanes of doubles
    float *worst;           // (pixels): the distances of the last level
    float *distances;       // (kBatch, plane_rows, plane_stride): d(r, r + offset)
    float *columns;         // column sums that the strips of distances hand on
    float *squares, *sums;  // of one offset, for patches of any size
};

struct Layout {
    char *base;
    size_t used;

    template <typename T>
    T *take(int64_t count) {
        T *start = base ? reinterpret_cast<T *>(base + used) : nullptr;
        used += size_t(round_up(count * int64_t(sizeof(T)), kCacheLine));
        return start;
    }
};

// Lay the memory out from `base` on, or from nowhere to learn its size.
static size_t lay_out(const Plan &plan, char *base, Memory *memory) {
    Layout layout = {base, 0};
    memory->strip = layout.take<float>(plan.strip_size());
    memory->keys = layout.take<double>(plan.pixels() * plan.levels);
    memory->worst = layout.take<float>(plan.pixels());
    memory->distances = layout.take<float>(kBatch * plan.plane_size());
    memory->columns = layout.take<float>(plan.plane_rows * round_up(plan.patch - 1, kWidest));
    memory->squares = layout.take<float>(plan.squares_size());
    memory->sums = layout.take<float>(plan.squares_size());
    return layout.used;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
