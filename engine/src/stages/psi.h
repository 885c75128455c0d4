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

    V origin, scale, lowest, below;
    Integers starts;  // where the tables of neighbouring filters start, in bytes

    Lookup(const Stage<T> &stage, int intervals)
        : origin(splat<V>(stage.origin)),
          scale(splat<V>(stage.scale)),
          lowest(splat<V>(-stage.origin / stage.scale)),
          below(splat<V>(next_below(T(intervals)))) {
        for (int lane = 0; lane < lanes; lane++)
            starts[lane] = lane * intervals * 4 * int(sizeof(T));
    }

    // The table's end belongs to its last interval: stay just below.
    static T next_below(T positive) {
        return positive * (1 - (sizeof(T) == 4 ? T(1.0 / (1 << 24)) : T(1.0 / (1ll << 53))));
    }

    // Where the arguments are in the table: the position in the interval, and the place of its
    // cubic, in bytes. NaN is found at the start.
    NLNET_INLINE V locate(V s, uint32_t (&places)[lanes]) const {
        const V position = smaller(larger(s, lowest) * scale + origin, below);
        const Integers interval = __builtin_convertvector(position, Integers);
        store(interval * (4 * int(sizeof(T))) + starts, places);
        // The numbers leave the vector through memory, which takes less than shuffles: without
        // this, the compiler would look through the memory and shuffle.
        __asm__("" : "+m"(places));
        return position - __builtin_convertvector(interval, V);
    }

    static NLNET_INLINE const T *at(const T *cubics, uint32_t place) {
        return reinterpret_cast<const T *>(reinterpret_cast<const char *>(cubics) + place);
    }
    static NLNET_INLINE T *at(T *cubics, uint32_t place) {
        return reinterpret_cast<T *>(reinterpret_cast<char *>(cubics) + place);
    }

    // c[j] holds the coefficients j of all lanes.
    static NLNET_INLINE void read(const T *cubics, const uint32_t *places, V (&c)[4]) {
        if constexpr (lanes == 2) {
            for (int half = 0; half < 2; half++) {
                const V left = load<V>(at(cubics, places[0]) + 2 * half);
                const V right = load<V>(at(cubics, places[1]) + 2 * half);
                c[2 * half] = __builtin_shufflevector(left, right, 0, 2);
                c[2 * half + 1] = __builtin_shufflevector(left, right, 1, 3);
            }
        } else {
            repeat<4>([&](int i) NLNET_BODY { c[i] = read_pair(cubics, places, i); });
            transpose(c);
        }
    }

    // Add to the cubics' own places what the lanes hold: the opposite of read().
    static NLNET_INLINE void add(T *cubics, const uint32_t *places, V (&c)[4]) {
        if constexpr (lanes == 2) {
            for (int half = 0; half < 2; half++) {
                const V low = c[2 * half], high = c[2 * half + 1];
                T *left = at(cubics, places[0]) + 2 * half;
                T *right = at(cubics, places[1]) + 2 * half;
                store(load<V>(left) + __builtin_shufflevector(low, high, 0, 2), left);
                store(load<V>(right) + __builtin_shufflevector(low, high, 1, 3), right);
            }
        } else {
            typedef Vector<T, 4> Four;
            transpose(c);
            repeat<4>([&](int i) NLNET_BODY {
                T *place = at(cubics, places[i]);
                store(load<Four>(place) + __builtin_shufflevector(c[i], c[i], 0, 1, 2, 3), place);
                if constexpr (lanes == 8) {
                    place = at(cubics, places[i + 4]);
                    store(load<Four>(place) + __builtin_shufflevector(c[i], c[i], 4, 5, 6, 7),
                          place);
                }
            });
        }
    }

  private:
    // Four coefficients of lane i and, of 8 lanes, four of lane i + 4.
    static NLNET_INLINE V read_pair(const T *cubics, const uint32_t *places, int i) {
        typedef Vector<T, 4> Four;
        const Four left = load<Four>(at(cubics, places[i]));
        if constexpr (lanes == 4)
            return left;
        else {
            const Four right = load<Four>(at(cubics, places[i + 4]));
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
#define NLNET_SHUFFLE(name, p, q, r, s)                                                      \
    static NLNET_INLINE V name(V left, V right) {                                            \
        if constexpr (lanes == 8)                                                            \
            return __builtin_shufflevector(                                                  \
                left, right, p + p / 4 * 4, q + q / 4 * 4, r + r / 4 * 4, s + s / 4 * 4,     \
                p + p / 4 * 4 + 4, q + q / 4 * 4 + 4, r + r / 4 * 4 + 4, s + s / 4 * 4 + 4); \
        else                                                                                 \
            return __builtin_shufflevector(left, right, p, q, r, s);                         \
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
    typedef typename L::V V;
    const L lookup(stage, intervals);
    const int filters = sizes.filters();
    for (int row = 0; row < count; row++, features += filters) {
        for (int i = 0; i < filters; i += L::lanes) {
            uint32_t places[L::lanes];
            V c[4];
            const V t = lookup.locate(load<V>(features + i), places);
            L::read(cubics + int64_t(i) * intervals * 4, places, c);
            store(((c[3] * t + c[2]) * t + c[1]) * t + c[0], features + i);
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
    const T top = T(intervals);
    const int filters = sizes.filters();
    for (int row = 0; row < count; row++, features += filters, cotangents += filters) {
        for (int i = 0; i < filters; i += L::lanes) {
            uint32_t places[L::lanes];
            V c[4];
            const int64_t tables = int64_t(i) * intervals * 4;
            const V s = load<V>(features + i), d = load<V>(cotangents + i);
            const V t = lookup.locate(s, places);
            L::read(cubics + tables, places, c);
            const V position = s * lookup.scale + lookup.origin;
            const V slope = ((3 * c[3] * t + 2 * c[2]) * t + c[1]) * lookup.scale;
            store(((c[3] * t + c[2]) * t + c[1]) * t + c[0], features + i);
            store(((position >= 0) & (position <= top)) ? slope * d : V{}, cotangents + i);
            V powers[4] = {d, d * t, d * t * t, d * t * t * t};
            L::add(gradient + tables, places, powers);
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
