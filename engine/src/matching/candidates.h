// The best candidates of each pixel.
//
// A key is a candidate's distance, then its rank: the bits of a positive float, which are ordered
// as the numbers are, and those of the rank make the bits of a positive double. One comparison
// orders by both, and minimum and maximum are single instructions. Whatever the order in which
// candidates come, the keys that are kept are the same.
#pragma once

#include "distances.h"
#include "part.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kDoubles = kLanes<double>;

// A key's lowest bits are the rank, less than 2^16, then come the bits of the distance, even of one
// that is infinite or no number; what is added makes every key a normal number.
constexpr int kDistanceShift = 30;
constexpr uint64_t kRankBits = 0xFFFF;
constexpr uint64_t kKeyBase = uint64_t(1) << 60;

// The key of no candidate: its distance is the largest of floats, so that a larger one is none.
constexpr uint32_t kFarBits = 0x7F7FFFFF;
constexpr uint64_t kFar = kKeyBase + (uint64_t(kFarBits) << kDistanceShift);

using Doubles = Vector<double, kDoubles>;
using Longs = Vector<uint64_t, kDoubles>;
using HalfBits = Vector<uint32_t, kDoubles>;  // of as many floats
using Ints = Vector<int32_t, kFloats>;

// Candidates that find_hits looks at in turn. Without its centre a window has a multiple of 8.
constexpr int kUnrolled = 8;

// Candidates of one batch: the distances of number i are `steps[i]` elements further on.
struct Candidates {
    int count;
    int64_t steps[2 * kBatch];
    uint64_t keys[2 * kBatch];  // at distance zero: kKeyBase and the rank
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

NLNET_INLINE Longs widen(HalfBits bits) {
    // GCC's own conversion takes half of them at a time.
#if defined(__AVX512F__) && !defined(__clang__)
    typedef long long Result __attribute__((vector_size(64)));
    typedef int Source __attribute__((vector_size(32)));
    return Longs(__builtin_ia32_pmovzxdq512_mask(Source(bits), Result{}, 0xFF));
#elif defined(__AVX2__) && !defined(__clang__)
    typedef int Source __attribute__((vector_size(16)));
    return Longs(__builtin_ia32_pmovzxdq256(Source(bits)));
#else
    return __builtin_convertvector(bits, Longs);
#endif
}

// The keys of one candidate, for kDoubles pixels.
NLNET_INLINE Doubles make_keys(const float *distances, uint64_t key) {
    return Doubles((widen(load<HalfBits>(distances)) << kDistanceShift) + key);
}

NLNET_INLINE void store_distances(Doubles keys, float *distances) {
    const Longs bits = (Longs(keys) - kKeyBase) >> kDistanceShift;
    store(__builtin_convertvector(bits, HalfBits), distances);
}

// The keys of kDoubles pixels while candidates are inserted: in registers, level after level.
//
// With ascending keys b, inserting x means b[i] = min(b[i], max(b[i - 1], x)) for every i at once:
// no branch, and no level waits for another.
template <int Levels>
struct Best {
    Best<Levels - 1> lower;
    Doubles last;

    NLNET_INLINE void load_from(const double *keys) {
        lower.load_from(keys);
        last = load<Doubles>(keys + (Levels - 1) * kDoubles);
    }
    NLNET_INLINE void store_to(double *keys) const {
        lower.store_to(keys);
        store(last, keys + (Levels - 1) * kDoubles);
    }
    NLNET_INLINE void insert(Doubles key) {
        last = smaller(last, larger(lower.last, key));
        lower.insert(key);
    }
};

template <>
struct Best<1> {
    Doubles last;

    NLNET_INLINE void load_from(const double *keys) { last = load<Doubles>(keys); }
    NLNET_INLINE void store_to(double *keys) const { store(last, keys); }
    NLNET_INLINE void insert(Doubles key) { last = smaller(last, key); }
};

// Insert the candidates of some bits, lowest first, where they are among the best of kDoubles
// pixels.
template <int Levels>
NLNET_INLINE void insert(uint32_t chosen, const float *distances, const Candidates &candidates,
                         double *keys, float *worst) {
    Best<Levels> best;
    best.load_from(keys);
    do {
        const int number = __builtin_ctz(chosen);
        best.insert(make_keys(distances + candidates.steps[number], candidates.keys[number]));
        chosen &= chosen - 1;
    } while (chosen);
    best.store_to(keys);
    store_distances(best.last, worst);
}

// The same for any number of levels, whose keys stay in arrays.
NLNET_INLINE void insert_any(int levels, uint32_t chosen, const float *distances,
                             const Candidates &candidates, double *keys, float *worst) {
    double *const last = keys + int64_t(levels - 1) * kDoubles;
    for (; chosen; chosen &= chosen - 1) {
        const int number = __builtin_ctz(chosen);
        const Doubles key =
            make_keys(distances + candidates.steps[number], candidates.keys[number]);
        Doubles here = load<Doubles>(last);
        for (double *at = last; at > keys; at -= kDoubles) {
            const Doubles lower = load<Doubles>(at - kDoubles);
            store(smaller(here, larger(lower, key)), at);
            here = lower;
        }
        store(smaller(here, key), keys);
    }
    store_distances(load<Doubles>(last), worst);
}

// The bits of kDoubles neighbouring pixels taken together, for each such part of a block.
NLNET_INLINE void join_hits(Ints hits, uint32_t *chosen) {
    uint32_t lanes[kFloats];
    store(hits, lanes);
    for (int part = 0; part < kFloats / kDoubles; ++part) {
        chosen[part] = 0;
        for (int i = 0; i < kDoubles; ++i) chosen[part] |= lanes[part * kDoubles + i];
    }
}

// Offer a row of pixels, in blocks of kFloats, the candidates of one batch. With Levels 0, `levels`
// says how many keys a pixel has.
//
// All blocks are tested first: how many candidates a pixel keeps is what no CPU can predict, and
// the later it learns of a wrong guess, the more work is lost.
template <int Levels>
static void offer_row(int levels, int64_t blocks, const float *distances,
                      const Candidates &candidates, double *keys, float *worst) {
    uint32_t chosen[kPartColumns / kDoubles];
    for (int64_t block = 0; block < blocks; ++block) {
        const int64_t at = block * kFloats;
        join_hits(find_hits(load<Floats>(worst + at), distances + at, candidates),
                  chosen + at / kDoubles);
    }
    for (int64_t part = 0; part < blocks * (kFloats / kDoubles); ++part) {
        if (!chosen[part]) continue;
        const int64_t at = part * kDoubles;
        if constexpr (Levels > 0) {
            insert<Levels>(chosen[part], distances + at, candidates, keys + at * Levels,
                           worst + at);
        } else {
            insert_any(levels, chosen[part], distances + at, candidates, keys + at * levels,
                       worst + at);
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
