// psi, by tables of cubics: some arguments at a time, each in the table of its own filter.
//
// Each lane's four coefficients are loaded as one vector and transposed in registers. Gather
// instructions are slow on many CPUs, and SSE2, NEON and WebAssembly have none.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Arguments that are looked up together; filters are a multiple of 8.
template <typename T>
constexpr int kLookups = kLanes<T> < 8 ? kLanes<T> : 8;

template <typename T>
struct Lookup {
    static constexpr int lanes = kLookups<T>;
    typedef Vector<T, lanes> V;
    typedef Vector<int32_t, lanes> Integers;
    typedef decltype(V{} < V{}) Mask;

    T origin, scale, top, below;
    Integers starts;  // where the tables of neighbouring filters start, in cubics

    Lookup(const Stage<T> &stage, int intervals)
        : origin(stage.origin), scale(stage.scale), top(T(intervals)), below(next_below(top)) {
        for (int lane = 0; lane < lanes; lane++) starts[lane] = lane * intervals;
    }

    // The table's end belongs to its last interval: stay just below.
    static NLNET_INLINE T next_below(T positive) {
        return positive * (1 - (sizeof(T) == 4 ? T(1.0 / (1 << 24)) : T(1.0 / (1ll << 53))));
    }

    struct Place {
        V t;          // position in the interval
        Mask inside;  // the table's range
        int32_t cubics[lanes];
    };

    NLNET_INLINE void locate(V s, Place &place) const {
        const V position = s * scale + origin;
        place.inside = (position >= 0) & (position <= top);
        const V clipped = smaller(larger(position, V{}), splat<V>(below));
        const Integers interval = __builtin_convertvector(clipped, Integers);
        place.t = clipped - __builtin_convertvector(interval, V);
        store(interval + starts, place.cubics);
        // The numbers leave the vector through memory, which takes less than shuffles: without
        // this, the compiler would look through the memory and shuffle.
        __asm__("" : "+m"(place.cubics));
    }

    // c[j] holds the coefficients j of all lanes.
    static NLNET_INLINE void read(const T *cubics, const int32_t *places, V (&c)[4]) {
        if constexpr (lanes == 2) {
            for (int half = 0; half < 2; half++) {
                const V left = load<V>(cubics + 4 * int64_t(places[0]) + 2 * half);
                const V right = load<V>(cubics + 4 * int64_t(places[1]) + 2 * half);
                c[2 * half] = __builtin_shufflevector(left, right, 0, 2);
                c[2 * half + 1] = __builtin_shufflevector(left, right, 1, 3);
            }
        } else {
            repeat<4>([&](int i) NLNET_BODY { c[i] = read_pair(cubics, places, i); });
            transpose(c);
        }
    }

    // Add to the cubics' own places what the lanes hold: the opposite of read().
    static NLNET_INLINE void add(T *cubics, const int32_t *places, V (&c)[4]) {
        if constexpr (lanes == 2) {
            for (int half = 0; half < 2; half++) {
                const V low = c[2 * half], high = c[2 * half + 1];
                T *left = cubics + 4 * int64_t(places[0]) + 2 * half;
                T *right = cubics + 4 * int64_t(places[1]) + 2 * half;
                store(load<V>(left) + __builtin_shufflevector(low, high, 0, 2), left);
                store(load<V>(right) + __builtin_shufflevector(low, high, 1, 3), right);
            }
        } else {
            typedef Vector<T, 4> Four;
            transpose(c);
            repeat<4>([&](int i) NLNET_BODY {
                T *place = cubics + 4 * int64_t(places[i]);
                store(load<Four>(place) + __builtin_shufflevector(c[i], c[i], 0, 1, 2, 3), place);
                if constexpr (lanes == 8) {
                    place = cubics + 4 * int64_t(places[i + 4]);
                    store(load<Four>(place) + __builtin_shufflevector(c[i], c[i], 4, 5, 6, 7),
                          place);
                }
            });
        }
    }

   private:
    // Four coefficients of lane i and, of 8 lanes, four of lane i + 4.
    static NLNET_INLINE V read_pair(const T *cubics, const int32_t *places, int i) {
        typedef Vector<T, 4> Four;
        const Four left = load<Four>(cubics + 4 * int64_t(places[i]));
        if constexpr (lanes == 4) return left;
        else {
            const Four right = load<Four>(cubics + 4 * int64_t(places[i + 4]));
            return __builtin_shufflevector(left, right, 0, 1, 2, 3, 4, 5, 6, 7);
        }
    }

    // A 4 x 4 block in each half of 8 lanes, or one of 4; its own inverse.
    static NLNET_INLINE void transpose(V (&c)[4]) {
        const V a = low(c[0], c[1]), b = high(c[0], c[1]);
        const V d = low(c[2], c[3]), e = high(c[2], c[3]);
        c[0] = first(a, d);
        c[1] = second(a, d);
        c[2] = first(b, e);
        c[3] = second(b, e);
    }
#define NLNET_SHUFFLE(name, p, q, r, s)                                                          \
    static NLNET_INLINE V name(V left, V right) {                                                \
        if constexpr (lanes == 8)                                                                \
            return __builtin_shufflevector(left, right, p + p / 4 * 4, q + q / 4 * 4,            \
                                           r + r / 4 * 4, s + s / 4 * 4, p + p / 4 * 4 + 4,      \
                                           q + q / 4 * 4 + 4, r + r / 4 * 4 + 4,                 \
                                           s + s / 4 * 4 + 4);                                   \
        else                                                                                     \
            return __builtin_shufflevector(left, right, p, q, r, s);                             \
    }
    NLNET_SHUFFLE(low, 0, 4, 1, 5)
    NLNET_SHUFFLE(high, 2, 6, 3, 7)
    NLNET_SHUFFLE(first, 0, 1, 4, 5)
    NLNET_SHUFFLE(second, 2, 3, 6, 7)
#undef NLNET_SHUFFLE
};

// Replace the features s of `count` pixels by psi(s), Eq. (14).
template <typename T, typename S>
static void evaluate_psi(const S &sizes, const Stage<T> &stage, int intervals, const T *cubics,
                         T *features, int count) {
    typedef Lookup<T> L;
    const L lookup(stage, intervals);
    const int filters = sizes.filters();
    for (int row = 0; row < count; row++, features += filters) {
        for (int i = 0; i < filters; i += L::lanes) {
            typename L::Place place;
            typename L::V c[4];
            lookup.locate(load<typename L::V>(features + i), place);
            L::read(cubics + int64_t(i) * intervals * 4, place.cubics, c);
            store(((c[3] * place.t + c[2]) * place.t + c[1]) * place.t + c[0], features + i);
        }
    }
}

// Replace s by psi(s) and the cotangents d by psi'(s) d; add d * (1, t, t^2, t^3), the gradient of
// the cubics, Eq. (35). Beyond the table's range the slope is zero: there s was clipped.
template <typename T, typename S>
static void differentiate_psi(const S &sizes, const Stage<T> &stage, int intervals, const T *cubics,
                              T *features, T *cotangents, int count, T *gradient) {
    typedef Lookup<T> L;
    typedef typename L::V V;
    const L lookup(stage, intervals);
    const int filters = sizes.filters();
    for (int row = 0; row < count; row++, features += filters, cotangents += filters) {
        for (int i = 0; i < filters; i += L::lanes) {
            typename L::Place place;
            V c[4];
            const int64_t tables = int64_t(i) * intervals * 4;
            lookup.locate(load<V>(features + i), place);
            L::read(cubics + tables, place.cubics, c);
            const V t = place.t, d = load<V>(cotangents + i);
            const V slope = ((3 * c[3] * t + 2 * c[2]) * t + c[1]) * lookup.scale;
            store(((c[3] * t + c[2]) * t + c[1]) * t + c[0], features + i);
            store(place.inside ? slope * d : V{}, cotangents + i);
            V powers[4] = {d, d * t, d * t * t, d * t * t * t};
            L::add(gradient + tables, place.cubics, powers);
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
