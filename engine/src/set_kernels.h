// The tables of kernels, one of each kind for every instruction set.
#pragma once

#include "kernels.h"

#define NLNET_DECLARE_SET(set)                             \
    namespace set {                                        \
    extern const MatchingKernels<float> matching_float;    \
    extern const MatchingKernels<double> matching_double;  \
    extern const StageKernels<float> stage_float;          \
    extern const StageKernels<double> stage_double;        \
    }

namespace nlnet {

#if defined(__x86_64__) || defined(_M_X64)
NLNET_DECLARE_SET(sse2)
NLNET_DECLARE_SET(avx2)
NLNET_DECLARE_SET(avx512)
#elif defined(__aarch64__)
NLNET_DECLARE_SET(neon)
#elif defined(__wasm__)
NLNET_DECLARE_SET(simd128)
#endif

}  // namespace nlnet
