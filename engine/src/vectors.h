// Portable vectors: what GCC 12 and Clang share, for the set that is compiled for.
//
// Vector<T, N> is a compiler's vector of N elements; arithmetic and comparisons are operators. All
// functions are inlined: a vector never crosses a call, whose convention may depend on the set.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shape.h"

#define NLNET_INLINE NLNET_ALWAYS_INLINE

namespace nlnet {
namespace NLNET_SET {

constexpr int kBytes = NLNET_BYTES;
constexpr int kRegisters = NLNET_REGISTERS;

template <typename T, int N>
struct VectorOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};

template <typename T, int N>
using Vector = typename VectorOf<T, N>::type;

// Elements of a vector as wide as the CPU's.
template <typename T>
constexpr int kLanes = kBytes / int(sizeof(T));

// Read from, or write to, an address that need not be aligned.
template <typename V, typename T>
static NLNET_INLINE V load(const T *from) {
    V vector;
    __builtin_memcpy(&vector, from, sizeof(V));
    return vector;
}

template <typename V, typename T>
static NLNET_INLINE void store(const V &vector, T *to) {
    __builtin_memcpy(to, &vector, sizeof(V));
}

template <typename V, typename T>
static NLNET_INLINE V splat(T value) {
    return value - V{};  // -0.0 stays what it is
}

// NaN is neither smaller nor larger: then the right one.
template <typename V>
static NLNET_INLINE V smaller(V left, V right) {
    return left < right ? left : right;
}

template <typename V>
static NLNET_INLINE V larger(V left, V right) {
    return right < left ? left : right;
}

// Call body(0) to body(Count - 1). Unlike a loop's, its copies are there before the compiler
// decides which arrays it can keep in registers.
#define NLNET_BODY __attribute__((always_inline))
template <int Count, typename Body>
static NLNET_INLINE void repeat(const Body &body) {
    if constexpr (Count > 0) {
        repeat<Count - 1>(body);
        body(Count - 1);
    }
}

}  // namespace NLNET_SET
}  // namespace nlnet
