// The best candidates of each pixel.
//
// A key is a float distance widened to double, with the candidate's rank in the bits that widening
// leaves empty: one comparison orders by distance, then by rank. Whatever the order in which
// candidates come, the keys that are kept are the same.
#pragma once

#include <float.h>

#include "distances.h"
#include "plan.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kDoubles = kLanes<double>;
constexpr int64_t kRankBits = 0xFFFFF;

using Doubles = Vector<double, kDoubles>;
using Longs = Vector<int64_t, kDoubles>;
using HalfFloats = Vector<float, kDoubles>;
using Ints = Vector<int32_t, kFloats>;

// Candidates that find_hits looks at in turn. Without its centre a window has a multiple of 8.
constexpr int kUnrolled = 8;

// Candidates of one batch: the distances of number i are `steps[i]` elements further on.
struct Candidates {
    int count;
    int64_t steps[2 * kBatch];
    int64_t ranks[2 * kBatch];
};

static_assert(2 * kBatch <= 32, "a candidate is a bit of an integer");

// Which candidates are as near as the worst that kFloats pixels have: as bits, for each pixel.
NLNET_INLINE Ints find_hits(Floats worst, const float *distances, const Candidates &candidates) {
    Ints hits = {};
    for (int last = candidates.count; last > 0; last -= kUnrolled) {
        Ints some = {};
        for (int i = 1; i <= kUnrolled; ++i) {
            const Floats near = load<Floats>(distances + candidates.steps[last - i]);
            some = some + some - Ints(near <= worst);
        }
        hits = (hits << kUnrolled) | some;
    }
    return hits;
}

// Insert the candidates of some bits, lowest first, where they are among the best of kDoubles
// pixels. With Levels 0, `levels` says how many keys a pixel has.
//
// With ascending keys b, inserting x means b[i] = min(b[i], max(b[i - 1], x)) for every i at once:
// no branch, and no level waits for another.
template <int Levels>
NLNET_INLINE void insert(int levels, uint32_t chosen, const float *distances,
                         const Candidates &candidates, double *keys, float *worst) {
    Doubles best[Levels > 0 ? Levels : 1];
    for (int i = 0; i < Levels; ++i) best[i] = load<Doubles>(keys + i * kDoubles);
    for (; chosen; chosen &= chosen - 1) {
        const int number = __builtin_ctz(chosen);
        HalfFloats distance = load<HalfFloats>(distances + candidates.steps[number]);
        // Normal numbers only: zero would make a denormal key, infinity a NaN.
        distance = smaller(distance, splat<HalfFloats>(FLT_MAX));
        distance = larger(distance, splat<HalfFloats>(FLT_MIN));
        const Longs bits = Longs(__builtin_convertvector(distance, Doubles));
        const Doubles key = Doubles(bits | candidates.ranks[number]);
        if constexpr (Levels > 0) {
            for (int i = Levels - 1; i > 0; --i) best[i] = smaller(best[i], larger(best[i - 1], key));
            best[0] = smaller(best[0], key);
        } else {
            Doubles below = load<Doubles>(keys + (levels - 1) * kDoubles);
            for (int i = levels - 1; i > 0; --i) {
                const Doubles here = below;
                below = load<Doubles>(keys + (i - 1) * kDoubles);
                store(smaller(here, larger(below, key)), keys + i * kDoubles);
            }
            store(smaller(below, key), keys);
        }
    }
    for (int i = 0; i < Levels; ++i) store(best[i], keys + i * kDoubles);
    const Doubles last = load<Doubles>(keys + (levels - 1) * kDoubles);
    store(__builtin_convertvector(last, HalfFloats), worst);
}

// Offer a row of pixels, in blocks of kFloats, the candidates of one batch.
template <int Levels>
static void offer_row(int levels, int64_t blocks, const float *distances,
                      const Candidates &candidates, double *keys, float *worst) {
    constexpr int kParts = kFloats / kDoubles;
    for (int64_t block = 0; block < blocks; ++block) {
        const Ints hits = find_hits(load<Floats>(worst), distances, candidates);
        uint32_t lanes[kFloats];
        store(hits, lanes);
        for (int part = 0; part < kParts; ++part) {
            uint32_t chosen = 0;
            for (int i = 0; i < kDoubles; ++i) chosen |= lanes[part * kDoubles + i];
            if (chosen) {
                insert<Levels>(levels, chosen, distances + part * kDoubles, candidates,
                               keys + part * levels * kDoubles, worst + part * kDoubles);
            }
        }
        distances += kFloats;
        worst += kFloats;
        keys += kParts * levels * kDoubles;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
