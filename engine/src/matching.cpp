// Block matching: for every pixel, the K nearest patches in a window around it.
//
// A part of a tile keeps, for each pixel, its best candidates so far, while all offsets of the
// window pass by from the centre outwards, a batch at a time: first the distances of all patches at
// these offsets, then, for each pixel, those of the candidates that beat its worst one. The
// distance of two patches serves both of them, so only half of the offsets are measured.
//
// Every distance is summed in one fixed order, and candidates are ordered by (distance, rank of the
// offset), whatever the order they come in: the groups do not depend on tiles, threads or the
// instruction set. A candidate whose distance overflows is none; where that leaves fewer than K,
// the pixel itself stands in.

#include "matching/candidates.h"
#include "matching/distances.h"
#include "matching/part.h"
#include "matching/strip.h"
#include "set_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Measure d(r, r + offset) for all r with one of the two in the part. `columns` is the width of the
// part in whole vectors; `distances` that of row `top - reach`, `margin` columns left of the part.
template <int Patch, typename T>
static void measure_offset(const PartSizes &sizes, const MatchingTile<T> &part, int64_t columns,
                           int dy, int dx, const PartArrays &arrays, float *distances) {
    // The columns of those r; whole vectors, so that the first one is aligned.
    const int64_t before = dx > 0 ? round_up(dx, kFloats) : 0;
    const int64_t count = before + round_up(columns + (dx < 0 ? -dx : 0), kFloats);
    // The rows of those r for which both are in the image; elsewhere the distance is infinite.
    const int64_t top = part.top > dy ? part.top - dy : 0;
    const int64_t end = part.height - dy < part.bottom ? part.height - dy : part.bottom;
    const int64_t bottom = end > top ? end : top;
    float *out = distances + (sizes.reach - dy) * sizes.plane_stride + sizes.margin - before;
    for (int64_t y = part.top - dy; y < part.bottom; ++y, out += sizes.plane_stride) {
        if (y == top && bottom > top) {
            const int64_t strip_top = part.top > sizes.reach ? part.top - sizes.reach : 0;
            const int64_t at = (y - strip_top) * sizes.strip_stride + sizes.margin - before;
            const float *here = arrays.strip + at;
            const float *there = here + dy * sizes.strip_stride + dx;
            if constexpr (Patch > 0) {
                measure<Patch>(here, there, sizes.strip_stride, bottom - top, count / kFloats,
                               arrays.columns, out, sizes.plane_stride);
            } else {
                measure_any(sizes.patch, here, there, sizes.strip_stride, bottom - top, count,
                            arrays.squares, arrays.sums, out, sizes.plane_stride);
            }
        }
        if (y < top || y >= bottom) {
            for (int64_t x = 0; x < count; ++x) out[x] = __builtin_inff();
        }
    }
}

// No pixel has any candidate yet.
static void clear(int64_t pixels, int levels, const PartArrays &arrays) {
    const Doubles far = Doubles(splat<Longs>(kFar));
    for (int64_t i = 0; i < pixels * levels; i += kDoubles) store(far, arrays.keys + i);
    for (int64_t i = 0; i < pixels; i += kDoubles) store_distances(far, arrays.worst + i);
}

// Turn the ranks in the keys' last bits into the offsets of the group's members.
template <typename T>
static void write_groups(const PartSizes &sizes, const MatchingTile<T> &part,
                         const Offsets &offsets, int64_t columns, const double *keys) {
    const int64_t group = sizes.levels + 1;
    for (int64_t y = part.top; y < part.bottom; ++y) {
        const double *row = keys + (y - part.top) * columns * sizes.levels;
        int8_t *groups = part.groups + ((y - part.top) * part.width + part.left) * group * 2;
        for (int64_t x = 0; x < part.right - part.left; ++x, groups += group * 2) {
            const double *key = row + x / kDoubles * kDoubles * sizes.levels + x % kDoubles;
            groups[0] = groups[1] = 0;
            for (int64_t level = 0; level < sizes.levels; ++level) {
                uint64_t bits;
                __builtin_memcpy(&bits, key + level * kDoubles, sizeof(bits));
                __builtin_memcpy(groups + 2 * level + 2, offsets.offsets[bits & kRankBits], 2);
            }
        }
    }
}

// Find the groups of a part of a tile.
template <int Patch, int Levels, typename T>
static void match_part(const PartSizes &sizes, const Offsets &offsets, const MatchingTile<T> &part,
                       const PartArrays &arrays) {
    const int64_t columns = round_up(part.right - part.left, kFloats);
    const int64_t rows = part.bottom - part.top;
    const int pairs = (2 * sizes.reach + 1) * (2 * sizes.reach + 1) / 2;
    fill_strip(sizes, part, arrays.strip);
    clear(rows * columns, sizes.levels, arrays);
    Candidates candidates;
    for (int first = 0; first < pairs; first += kBatch) {
        const int batch = pairs - first < kBatch ? pairs - first : kBatch;
        candidates.count = 2 * batch;
        for (int number = 0; number < batch; ++number) {
            const int32_t *pair = offsets.pairs[first + number];
            const int dy = offsets.offsets[pair[0]][0], dx = offsets.offsets[pair[0]][1];
            const int64_t begin = number * sizes.plane_size();
            measure_offset<Patch>(sizes, part, columns, dy, dx, arrays, arrays.distances + begin);
            candidates.steps[2 * number] = begin;
            candidates.keys[2 * number] = kKeyBase + uint64_t(pair[0]);
            candidates.steps[2 * number + 1] = begin - dy * sizes.plane_stride - dx;
            candidates.keys[2 * number + 1] = kKeyBase + uint64_t(pair[1]);
        }
        for (int64_t row = 0; row < rows; ++row) {
            const int64_t start = (row + sizes.reach) * sizes.plane_stride + sizes.margin;
            offer_row<Levels>(sizes.levels, columns / kFloats, arrays.distances + start, candidates,
                              arrays.keys + row * columns * sizes.levels,
                              arrays.worst + row * columns);
        }
    }
    write_groups(sizes, part, offsets, columns, arrays.keys);
}

template <int Patch, int Levels, typename T>
static void match_parts(const PartSizes &sizes, const Offsets &offsets, const MatchingTile<T> &tile,
                        const PartArrays &arrays) {
    // Parts of even height: a last one of few rows would measure nearly as much as a whole one.
    const int64_t height = tile.bottom - tile.top;
    const int64_t count = (height + sizes.rows - 1) / sizes.rows;
    for (int64_t number = 0; number < count; ++number) {
        MatchingTile<T> part = tile;
        part.top = tile.top + height * number / count;
        part.bottom = tile.top + height * (number + 1) / count;
        part.groups += (part.top - tile.top) * tile.width * (sizes.levels + 1) * 2;
        for (part.left = tile.left; part.left < tile.right; part.left = part.right) {
            const int64_t end = part.left + sizes.columns;
            part.right = end < tile.right ? end : tile.right;
            match_part<Patch, Levels>(sizes, offsets, part, arrays);
        }
    }
}

static size_t scratch(const Shape &shape, int tile_rows) {
    PartArrays arrays;
    return lay_out(part_sizes(shape, tile_rows), nullptr, &arrays);
}

template <typename T>
static void match(const Shape &shape, const Offsets &offsets, const MatchingTile<T> &tile,
                  void *scratch) {
    if (shape.group == 1) {
        for (int64_t y = 0; y < tile.bottom - tile.top; ++y) {
            __builtin_memset(tile.groups + (y * tile.width + tile.left) * 2, 0,
                             size_t(tile.right - tile.left) * 2);
        }
        return;
    }
    const PartSizes sizes = part_sizes(shape, int(tile.bottom - tile.top));
    PartArrays arrays;
    lay_out(sizes, static_cast<char *>(scratch), &arrays);
    if (shape.patch == 5 && shape.group == 8) {
        match_parts<5, 7>(sizes, offsets, tile, arrays);
    } else if (shape.patch == 7 && shape.group == 8) {
        match_parts<7, 7>(sizes, offsets, tile, arrays);
    } else {
        match_parts<0, 0>(sizes, offsets, tile, arrays);
    }
}

}  // namespace

extern const MatchingKernels<float> matching_float = {scratch, match<float>};
extern const MatchingKernels<double> matching_double = {scratch, match<double>};

}  // namespace NLNET_SET
}  // namespace nlnet
