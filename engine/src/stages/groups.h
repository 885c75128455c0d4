// Groups of patches: their weighted sums, the adjoint, and the gradient of the weights.
//
// The patch transform is linear, so the sum over a group is taken of the patches themselves, before
// the transform: L_r x = F (sum_k w_k P_{i_r,k} x). A strip is some rows of a tile; its patches
// follow each other pixel by pixel, row by row.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Some rows of a tile.
struct Strip {
    int first, rows, columns;  // rows from the tile's top
    const int8_t *groups;      // of the first row, of the tile's first column
    int64_t groups_stride;     // from one row to the next
    int64_t stride;            // of windows

    NLNET_INLINE int count() const { return rows * columns; }
    // Where the patch of the strip's pixel starts in a window.
    NLNET_INLINE int64_t corner(int row, int reach) const {
        return (first + row + reach) * stride + reach;
    }
};

// patches[r] = sum_k w_k P_{i_r,k} x, Eq. (11). A vector may be written beyond the last.
template <typename T, typename S>
static void sum_groups(const S &sizes, const Strip &strip, const T *window, const T *weights,
                       T *patches) {
    typedef typename Row<T>::V V;
    constexpr int rows = S::patch_rows;
    // All weights stay in registers beside the sums, where there are enough.
    constexpr bool hold_weights = S::known && rows * Row<T>::count + S::members < kRegisters;
    V factors[hold_weights ? S::members : 1];
    if constexpr (hold_weights)
        repeat<S::members>([&](int k) NLNET_BODY { factors[k] = splat<V>(weights[k]); });
    const int patch = sizes.patch(), group = sizes.group(), columns = strip.columns;
    const int64_t stride = strip.stride;
    for (int row = 0; row < strip.rows; row++) {
        const T *origin = window + strip.corner(row, sizes.reach());
        const int8_t *members = strip.groups + row * strip.groups_stride;
        for (int x = 0; x < columns; x++, origin++, members += 2 * group) {
            if constexpr (S::known) {
                Row<T> sums[rows];
                repeat<rows>([&](int i) NLNET_BODY { sums[i] = Row<T>::zero(); });
                const auto add = [&](int k, V weight) NLNET_BODY {
                    const T *place = origin + member_place(members + 2 * k, stride);
                    repeat<rows>([&](int i) NLNET_BODY {
                        sums[i] = sums[i].plus(weight, Row<T>::read(place + i * stride));
                    });
                };
                if constexpr (hold_weights)
                    repeat<S::members>([&](int k) NLNET_BODY { add(k, factors[k]); });
                else
                    for (int k = 0; k < group; k++) add(k, splat<V>(weights[k]));
                repeat<rows>([&](int i) NLNET_BODY { sums[i].write(patches + i * patch); });
            } else {
                for (int i = 0; i < patch; i++) {
                    for (int at = 0; at < patch; at += kRow) {
                        Row<T> sum = Row<T>::zero();
                        for (int k = 0; k < group; k++)
                            sum = sum.plus(splat<V>(weights[k]),
                                           Row<T>::read(origin + i * stride + at +
                                                        member_place(members + 2 * k, stride)));
                        sum.write(patches + i * patch + at);
                    }
                }
            }
            patches += patch * patch;
        }
    }
}

// Where spreading adds: two windows, the second `shift` elements behind the first, whose sum is the
// result. A vector that crosses from one cache line to the next is slow to store, so where it would
// cross in the one, it is added to the other. One window does for vectors as long as a line.
template <typename T, typename S>
struct SpreadWindows {
    static constexpr bool two = S::known && kRow * sizeof(T) < kCacheLine;

    T *data;
    int64_t size, shift;

    // `data` starts at a cache line and has elements(size).
    SpreadWindows(T *memory, int64_t window)
        : data(memory), size(window), shift(distance(window)) {}

    static int64_t distance(int64_t size) { return round_up(size, 2 * kRow) + kRow; }
    static int64_t elements(int64_t size) { return two ? distance(size) + size : size; }

    void clear() const { __builtin_memset(data, 0, size_t(elements(size)) * sizeof(T)); }

    NLNET_INLINE T *place(int64_t at) const {
        if (!two) return data + at;
        // All bits or none, without a branch that nobody could predict.
        const int64_t crosses = -(((at & (2 * kRow - 1)) + kRow - 1) >> 4);
        return data + at + (shift & crosses);
    }

    void add_up(T *part) const {
        for (int64_t at = 0; at < size; at++)
            part[at] = two ? data[at] + data[at + shift] : data[at];
    }
};

// Pixels this far apart are spread together, each to its first member, then each to its second: a
// vector that was just written can be read again at once only where it was written, and the
// patches of neighbours overlap.
constexpr int kSpreadStep = 16;
constexpr int kSpreadTogether = 2;  // for every set, or sums would have another order

// Add some pixels' patches, kSpreadStep apart, to the windows at every member's place.
template <int Together, typename T, typename S>
static NLNET_INLINE void spread_pixels(const S &sizes, const T *patches, const T *weights,
                                       SpreadWindows<T, S> windows, int64_t corner, int64_t stride,
                                       const int8_t *members) {
    const int patch = sizes.patch(), group = sizes.group(), pixels = sizes.pixels();
    typedef typename Row<T>::V V;
    constexpr int height = S::patch_rows;
    Row<T> rows[Together][height];
    repeat<Together * height>([&](int at) NLNET_BODY {
        const int number = at / height, i = at % height;
        rows[number][i] =
            Row<T>::read(patches + number * kSpreadStep * pixels + i * patch).clear_from(patch);
    });
    for (int k = 0; k < group; k++) {
        const V weight = splat<V>(weights[k]);
        repeat<Together>([&](int number) NLNET_BODY {
            const int8_t *member = members + 2 * (number * kSpreadStep * group + k);
            T *place = windows.place(corner + number * kSpreadStep + member_place(member, stride));
            repeat<height>([&](int i) NLNET_BODY {
                T *line = place + i * stride;
                Row<T>::read(line).plus(weight, rows[number][i]).write(line);
            });
        });
    }
}

// The same for one pixel and a patch of any size.
template <typename T, typename S>
static NLNET_INLINE void spread_large(const S &sizes, const T *patches, const T *weights,
                                      SpreadWindows<T, S> windows, int64_t corner, int64_t stride,
                                      const int8_t *members) {
    typedef typename Row<T>::V V;
    const int patch = sizes.patch(), group = sizes.group();
    for (int k = 0; k < group; k++) {
        T *place = windows.place(corner + member_place(members + 2 * k, stride));
        for (int i = 0; i < patch; i++)
            for (int at = 0; at < patch; at += kRow)
                Row<T>::read(place + i * stride + at)
                    .plus(splat<V>(weights[k]),
                          Row<T>::read(patches + i * patch + at).clear_from(patch - at))
                    .write(place + i * stride + at);
    }
}

// The exact adjoint of sum_groups: add every patch, weighted, to its group's places.
template <typename T, typename S>
static void spread_groups(const S &sizes, const Strip &strip, const T *patches, const T *weights,
                          const SpreadWindows<T, S> &windows) {
    const int pixels = sizes.pixels(), pair = 2 * sizes.group();
    for (int row = 0; row < strip.rows; row++, patches += strip.columns * pixels) {
        const int64_t corner = strip.corner(row, sizes.reach());
        const int8_t *members = strip.groups + row * strip.groups_stride;
        if constexpr (!S::known) {
            for (int x = 0; x < strip.columns; x++)
                spread_large(sizes, patches + x * pixels, weights, windows, corner + x,
                             strip.stride, members + x * pair);
        } else {
            for (int phase = 0; phase < kSpreadStep; phase++) {
                int x = phase;
                for (; x + (kSpreadTogether - 1) * kSpreadStep < strip.columns;
                     x += kSpreadTogether * kSpreadStep)
                    spread_pixels<kSpreadTogether>(sizes, patches + x * pixels, weights, windows,
                                                   corner + x, strip.stride, members + x * pair);
                for (; x < strip.columns; x += kSpreadStep)
                    spread_pixels<1>(sizes, patches + x * pixels, weights, windows, corner + x,
                                     strip.stride, members + x * pair);
            }
        }
    }
}

// The gradient of the weights: gradient[k] += sum_r patches[r] . P_{i_r,k} x, Eq. (41).
template <typename T, typename S>
static void correlate_groups(const S &sizes, const Strip &strip, const T *window, const T *patches,
                             T *gradient) {
    const int patch = sizes.patch(), group = sizes.group();
    const int64_t stride = strip.stride;
    for (int row = 0; row < strip.rows; row++) {
        const T *origin = window + strip.corner(row, sizes.reach());
        const int8_t *groups = strip.groups + row * strip.groups_stride;
        // Some members at a time, as many sums as registers hold.
        constexpr int together = 4;
        for (int first = 0; first < group; first += together) {
            const int members = group - first < together ? group - first : together;
            Row<T> sums[together];
            for (int k = 0; k < together; k++) sums[k] = Row<T>::zero();
            for (int x = 0; x < strip.columns; x++) {
                const T *source = patches + (int64_t(row) * strip.columns + x) * patch * patch;
                const int8_t *member = groups + 2 * (x * group + first);
                for (int k = 0; k < members; k++) {
                    const T *place = origin + x + member_place(member + 2 * k, stride);
                    for (int i = 0; i < patch; i++) {
                        for (int at = 0; at < patch; at += kRow) {
                            // What lies beyond the patch's row may be anything, NaN too.
                            const Row<T> pixels =
                                Row<T>::read(place + i * stride + at).clear_from(patch - at);
                            const Row<T> factor =
                                Row<T>::read(source + i * patch + at).clear_from(patch - at);
                            sums[k] = sums[k].plus(pixels, factor);
                        }
                    }
                }
            }
            for (int k = 0; k < members; k++) gradient[first + k] += sums[k].sum();
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
