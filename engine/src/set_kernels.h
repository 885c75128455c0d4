// The tables of kernels that each instruction set exports, one namespace per set.
#pragma once

#include "kernels.h"

#define NLNET_DECLARE_SET(set)                     \
    namespace nlnet {                              \
    namespace set {                                \
    extern const StageKernels<float> stage_float;  \
    extern const StageKernels<double> stage_double; \
    }                                              \
    }

NLNET_DECLARE_SET(sse2)
NLNET_DECLARE_SET(avx2)
NLNET_DECLARE_SET(avx512)
NLNET_DECLARE_SET(neon)
NLNET_DECLARE_SET(simd128)

#undef NLNET_DECLARE_SET
