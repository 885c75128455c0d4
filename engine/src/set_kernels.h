// The kernels that are compiled once for each instruction set.
#pragma once

#include "kernels.h"

#define NLNET_DECLARE(set)                                \
    namespace nlnet {                                     \
    namespace set {                                       \
    extern const MatchingKernels<float> matching_float;   \
    extern const MatchingKernels<double> matching_double; \
    extern const StageKernels<float> stage_float;         \
    extern const StageKernels<double> stage_double;       \
    extern const PixelKernels<float> pixel_float;         \
    extern const PixelKernels<double> pixel_double;       \
    extern const EyeKernels eye;                          \
    extern const SeriesKernels series;                    \
    extern const NoiseKernels noise;                      \
    extern const RemovalKernels removal;                  \
    }                                                     \
    }

NLNET_DECLARE(sse2)
NLNET_DECLARE(avx2)
NLNET_DECLARE(avx512)
NLNET_DECLARE(neon)
NLNET_DECLARE(simd128)

#undef NLNET_DECLARE
