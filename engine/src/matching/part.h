// How matching cuts a tile into parts that fit the cache, and where their data is in arrays.
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

// Sizes of a part, and of what it needs in arrays.
struct PartSizes {
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

static PartSizes part_sizes(const Shape &shape, int tile_rows) {
    PartSizes sizes;
    sizes.patch = shape.patch;
    sizes.levels = shape.group - 1;
    sizes.reach = shape.reach();
    sizes.columns = kPartColumns;
    while (sizes.columns > kWidest && sizes.columns * sizes.levels > kMostKeys) sizes.columns /= 2;
    const int64_t most =
        kMostKeys / (int64_t(sizes.columns) * (sizes.levels > 0 ? sizes.levels : 1));
    sizes.rows = tile_rows < kPartRows ? tile_rows : kPartRows;
    if (sizes.rows > most) sizes.rows = most > 1 ? int(most) : 1;
    sizes.margin = round_up(sizes.reach, kWidest);
    sizes.plane_rows = sizes.rows + sizes.reach;
    sizes.plane_stride = sizes.margin + round_up(sizes.columns + sizes.reach, kWidest);
    sizes.strip_rows = sizes.rows + 2 * sizes.reach + sizes.patch - 1;
    sizes.strip_stride = sizes.plane_stride + sizes.margin + round_up(sizes.patch - 1, kWidest);
    return sizes;
}

// PartArrays of one part, taken from what the caller gives.
struct PartArrays {
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
static size_t lay_out(const PartSizes &sizes, char *base, PartArrays *arrays) {
    Layout layout = {base, 0};
    arrays->strip = layout.take<float>(sizes.strip_size());
    arrays->keys = layout.take<double>(sizes.pixels() * sizes.levels);
    arrays->worst = layout.take<float>(sizes.pixels());
    arrays->distances = layout.take<float>(kBatch * sizes.plane_size());
    arrays->columns = layout.take<float>(sizes.plane_rows * round_up(sizes.patch - 1, kWidest));
    arrays->squares = layout.take<float>(sizes.squares_size());
    arrays->sums = layout.take<float>(sizes.squares_size());
    return layout.used;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
