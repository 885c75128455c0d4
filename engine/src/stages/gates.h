// Gates: each feature is divided by what the features of its pixel have in common.
//
//     v_i = s_i n_i,  n_i = (1 + sum_j G_ij s_j^2)^(-1/2)
//
// over the features of all channels. Where much is going on, all of them become smaller before psi
// decides: what is an edge, and what is noise, is not left to one filter alone.
#pragma once

#include "products.h"
#include "psi.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Pixels that go through the gates at a time.
constexpr int kGated = 32;

// Arrays of the gates for some pixels, of `width` features each.
template <typename T>
struct GateMemory {
    T *squares, *factors, *features, *slopes;

    static int64_t elements(int width) { return 4 * (int64_t(kGated) * width + kRoom); }

    GateMemory(T *memory, int width)
        : squares(memory),
          factors(squares + int64_t(kGated) * width + kRoom),
          features(factors + int64_t(kGated) * width + kRoom),
          slopes(features + int64_t(kGated) * width + kRoom) {}
};

NLNET_INLINE float square_root(float value) {
    return __builtin_sqrtf(value);
}
NLNET_INLINE double square_root(double value) {
    return __builtin_sqrt(value);
}

// factors = n, and squares = s^2, of `count` pixels, at most kGated.
template <typename T>
static void find_factors(const T *gates_transposed, int width, const T *features, int count,
                         const GateMemory<T> &memory) {
    for (int at = 0; at < count * width; at++) memory.squares[at] = features[at] * features[at];
    multiply<false>(Left<T>{memory.squares, width, 1}, count, gates_transposed, width, width, width,
                    memory.factors, width);
    for (int at = 0; at < count * width; at++)
        memory.factors[at] = 1 / square_root(1 + memory.factors[at]);
}

// Replace the features s of pixels by v.
template <typename T>
static void gate(const Stage<T> &stage, int width, T *features, int count,
                 const GateMemory<T> &memory) {
    for (int first = 0; first < count; first += kGated, features += int64_t(kGated) * width) {
        const int here = count - first < kGated ? count - first : kGated;
        find_factors(stage.gates_transposed, width, features, here, memory);
        for (int at = 0; at < here * width; at++) features[at] *= memory.factors[at];
    }
}

// Replace s by psi(v) and the cotangents of psi by those of s; add the gradients of the gates and
// of psi's cubics. With e for the cotangent of v and t_i = -e_i s_i n_i^3 / 2, the gradient of G_ij
// is t_i s_j^2, and that of s_j is e_j n_j + 2 s_j sum_i t_i G_ij.
template <typename T>
static void differentiate_gates(const Stage<T> &stage, int width, int intervals, const T *cubics,
                                T *features, T *cotangents, int count, T *cubic_sums, T *gate_sums,
                                const GateMemory<T> &memory) {
    for (int first = 0; first < count; first += kGated) {
        const int here = count - first < kGated ? count - first : kGated, size = here * width;
        find_factors(stage.gates_transposed, width, features, here, memory);
        for (int at = 0; at < size; at++) {
            memory.features[at] = features[at];
            features[at] *= memory.factors[at];
        }
        differentiate_psi(width, stage, intervals, cubics, features, cotangents, here, cubic_sums);
        for (int at = 0; at < size; at++) {
            const T factor = memory.factors[at], scaled = cotangents[at] * factor;
            memory.factors[at] = scaled;
            memory.slopes[at] = scaled * memory.features[at] * factor * factor / -2;
        }
        multiply<true>(Left<T>{memory.slopes, 1, width}, width, memory.squares, width, here, width,
                       gate_sums, width);
        multiply<false>(Left<T>{memory.slopes, width, 1}, here, stage.gates, width, width, width,
                        memory.squares, width);
        for (int at = 0; at < size; at++)
            cotangents[at] = memory.factors[at] + 2 * memory.features[at] * memory.squares[at];
        features += size;
        cotangents += size;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
