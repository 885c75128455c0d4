// Squared distances of patches to others at one offset.
//
// A distance is the sum of its column sums. Both sums have one order, whatever the vectors: n terms
// are the sum of the first n / 2, plus that of the next n / 2, plus the last one if n is odd.
#pragma once

#include "../vectors.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

using Floats = Vector<float, kLanes<float>>;
constexpr int kFloats = kLanes<float>;

// Elements Step, Step + 1, ... of two vectors side by side.
template <int Step, typename V>
NLNET_INLINE V shifted(V left, V right) {
    constexpr int kCount = sizeof(V) / sizeof(left[0]);
    if constexpr (Step == 0) {
        return left;
    } else if constexpr (kCount == 4) {
        return __builtin_shufflevector(left, right, Step, Step + 1, Step + 2, Step + 3);
    } else if constexpr (kCount == 8) {
        return __builtin_shufflevector(left, right, Step, Step + 1, Step + 2, Step + 3, Step + 4,
                                       Step + 5, Step + 6, Step + 7);
    } else {
        static_assert(kCount == 16, "4, 8 or 16 floats");
        return __builtin_shufflevector(left, right, Step, Step + 1, Step + 2, Step + 3, Step + 4,
                                       Step + 5, Step + 6, Step + 7, Step + 8, Step + 9, Step + 10,
                                       Step + 11, Step + 12, Step + 13, Step + 14, Step + 15);
    }
}

// The sum of the last N vectors, by some log2(N) additions each.
template <int N>
struct RunningSum {
    RunningSum<N / 2> half;
    Floats halves[N / 2];  // the sums of N / 2 vectors that came before
    Floats even;           // of the N - 1 vectors before

    // Add one vector and return the sum, which counts from the N-th vector on.
    NLNET_INLINE Floats add(Floats value) {
        const Floats newer = half.add(value);
        Floats total = halves[0] + newer;
        for (int i = 0; i + 1 < N / 2; ++i) halves[i] = halves[i + 1];
        halves[N / 2 - 1] = newer;
        if (N % 2 == 0) return total;
        const Floats before = even;
        even = total;
        return before + value;
    }
};

template <>
struct RunningSum<1> {
    NLNET_INLINE Floats add(Floats value) { return value; }
};

// For each element of Count vectors side by side, the sum of N elements from it on. Where that
// reaches beyond the last vector, the sum means nothing.
template <int N, int Count>
struct NeighbourSums {
    Floats sums[Count];

    explicit NLNET_INLINE NeighbourSums(const Floats *vectors) {
        if constexpr (N == 1) {
            for (int i = 0; i < Count; ++i) sums[i] = vectors[i];
        } else {
            const NeighbourSums<N / 2, Count> half(vectors);
            for (int i = 0; i < Count; ++i) {
                sums[i] = half.sums[i] + later<N / 2>(half.sums, i);
                if (N % 2) sums[i] += later<N - 1>(vectors, i);
            }
        }
    }

    // The elements Step after those of vector i.
    template <int Step>
    static NLNET_INLINE Floats later(const Floats *vectors, int i) {
        const int first = i + Step / kFloats;
        if (first >= Count) return Floats{};
        return shifted<Step % kFloats>(vectors[first],
                                       first + 1 < Count ? vectors[first + 1] : vectors[first]);
    }
};

NLNET_INLINE Floats squared_difference(const float *here, const float *there) {
    const Floats difference = load<Floats>(here) - load<Floats>(there);
    return difference * difference;
}

// Vectors of column sums that a strip of patches needs from its right-hand neighbour.
template <int Patch>
constexpr int kBeyond = (Patch - 1 + kFloats - 1) / kFloats;

// The column sums of kBeyond vectors, for `rows` rows downwards.
template <int Patch>
static void measure_columns(const float *here, const float *there, int64_t pitch, int64_t rows,
                            float *columns) {
    RunningSum<Patch> running[kBeyond<Patch>] = {};
    for (int64_t row = 0; row < rows + Patch - 1; ++row) {
        for (int i = 0; i < kBeyond<Patch>; ++i) {
            const int64_t at = row * pitch + i * kFloats;
            const Floats sum = running[i].add(squared_difference(here + at, there + at));
            if (row >= Patch - 1) {
                store(sum, columns + ((row - Patch + 1) * kBeyond<Patch> + i) * kFloats);
            }
        }
    }
}

// The distances of Strip vectors of patches side by side, for `rows` rows downwards.
//
// Column sums are running sums, kept in registers on the way down, and each serves all the patches
// that it belongs to. `columns` holds those right of the strip, and then its own first ones.
template <int Patch, int Strip>
static void measure_strip(const float *here, const float *there, int64_t pitch, int64_t rows,
                          float *columns, float *out, int64_t stride) {
    constexpr int kMore = kBeyond<Patch>;
    RunningSum<Patch> running[Strip] = {};
    for (int row = 0; row < Patch - 1; ++row, here += pitch, there += pitch) {
        for (int i = 0; i < Strip; ++i) {
            running[i].add(squared_difference(here + i * kFloats, there + i * kFloats));
        }
    }
    for (int64_t row = 0; row < rows; ++row) {
        Floats sums[Strip + kMore];
        for (int i = 0; i < Strip; ++i) {
            sums[i] = running[i].add(squared_difference(here + i * kFloats, there + i * kFloats));
        }
        for (int i = 0; i < kMore; ++i) sums[Strip + i] = load<Floats>(columns + i * kFloats);
        for (int i = 0; i < kMore; ++i) store(sums[i], columns + i * kFloats);
        const NeighbourSums<Patch, Strip + kMore> totals(sums);
        for (int i = 0; i < Strip; ++i) store(totals.sums[i], out + i * kFloats);
        here += pitch;
        there += pitch;
        columns += kMore * kFloats;
        out += stride;
    }
}

// Vectors of a strip: as many as the CPU has registers for their running sums.
template <int Patch>
constexpr int kStrip = (kRegisters - 4) / (Patch == 5 ? 4 : 6);

// The distances of `vectors` vectors of patches side by side, for `rows` rows downwards.
//
// `here` and `there` are the corners of the first two patches. `columns` has room for kBeyond
// vectors a row.
template <int Patch>
static void measure(const float *here, const float *there, int64_t pitch, int64_t rows,
                    int64_t vectors, float *columns, float *out, int64_t stride) {
    int64_t at = vectors * kFloats;
    measure_columns<Patch>(here + at, there + at, pitch, rows, columns);
    for (; vectors >= kStrip<Patch>; vectors -= kStrip<Patch>) {
        at -= kStrip<Patch> * kFloats;
        measure_strip<Patch, kStrip<Patch>>(here + at, there + at, pitch, rows, columns, out + at,
                                            stride);
    }
    for (; vectors > 0; --vectors) {
        at -= kFloats;
        measure_strip<Patch, 1>(here + at, there + at, pitch, rows, columns, out + at, stride);
    }
}

// sums[i] += values[i] for ascending i; the two may overlap if `values` is further on.
static NLNET_INLINE void add_to(const float *values, float *sums, int64_t length) {
    int64_t i = 0;
    for (; i + kFloats <= length; i += kFloats) {
        store(load<Floats>(sums + i) + load<Floats>(values + i), sums + i);
    }
    for (; i < length; ++i) sums[i] += values[i];
}

// Sums of `count` elements `step` apart, from each of `length` elements on; `sums` starts as a copy
// of `values` and both have (count - 1) * step elements more.
static void add_neighbours(const float *values, float *sums, int64_t length, int64_t step,
                           int count) {
    int bit = 1;
    while (2 * bit <= count) bit *= 2;
    for (int done = 1; bit > 1;) {
        bit /= 2;
        const bool odd = count & bit;
        const int half = done;
        done = 2 * half + odd;
        const int64_t enough = length + (count - done) * step;
        add_to(sums + half * step, sums, enough);
        if (odd) add_to(values + (done - 1) * step, sums, enough);
    }
}

// The same for a patch of any size and `count` patches side by side; `squares` and `sums` have as
// many rows as the patches cover, `pitch` apart.
static void measure_any(int patch, const float *here, const float *there, int64_t pitch,
                        int64_t rows, int64_t count, float *squares, float *sums, float *out,
                        int64_t stride) {
    const int64_t size = (rows + patch - 1) * pitch;
    const int64_t width = count + patch - 1;
    for (int64_t start = 0; start < size; start += pitch) {
        int64_t x = start;
        for (; x + kFloats <= start + width; x += kFloats) {
            const Floats square = squared_difference(here + x, there + x);
            store(square, squares + x);
            store(square, sums + x);
        }
        for (; x < start + width; ++x) {
            const float difference = here[x] - there[x];
            squares[x] = sums[x] = difference * difference;
        }
        for (; x < start + pitch; ++x) squares[x] = sums[x] = 0;
    }
    add_neighbours(squares, sums, (rows - 1) * pitch + width, pitch, patch);
    for (int64_t row = 0; row < rows; ++row) {
        float *line = sums + row * pitch;
        __builtin_memcpy(squares, line, size_t(width) * sizeof(float));
        add_neighbours(squares, line, count, 1, patch);
        __builtin_memcpy(out + row * stride, line, size_t(count) * sizeof(float));
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
