// Which instruction sets this build has, and which of them this CPU has.
#include "network.h"
#include "set_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nlnet {
namespace {

#define NLNET_KERNELS(set, title)                             \
    constexpr Kernels set##_kernels = {title,                 \
                                       &set::matching_float,  \
                                       &set::matching_double, \
                                       &set::stage_float,     \
                                       &set::stage_double,    \
                                       &set::pixel_float,     \
                                       &set::pixel_double,    \
                                       &set::eye,             \
                                       &set::series,          \
                                       &set::noise,           \
                                       &set::removal};

#if defined(__x86_64__)

NLNET_KERNELS(sse2, "SSE2")
NLNET_KERNELS(avx2, "AVX2")
NLNET_KERNELS(avx512, "AVX-512")

// The vector registers that the operating system saves: XCR0.
uint64_t saved_registers() {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

constexpr bool has(uint64_t word, uint64_t bits) {
    return (word & bits) == bits;
}

nlnet_set best_set() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return NLNET_SSE2;
    if (!has(c, bit_OSXSAVE | bit_AVX | bit_FMA)) return NLNET_SSE2;
    const uint64_t saved = saved_registers();
    if (!has(saved, 0x6)) return NLNET_SSE2;  // XMM and YMM
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return NLNET_SSE2;
    if (!has(b, bit_AVX2 | bit_BMI | bit_BMI2)) return NLNET_SSE2;
    const bool wide = has(b, uint64_t(bit_AVX512F) | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    return wide && has(saved, 0xe6) ? NLNET_AVX512 : NLNET_AVX2;  // ... and ZMM, masks
}

const Kernels *kernels_in_build(nlnet_set set) {
    switch (set) {
        case NLNET_SSE2: return &sse2_kernels;
        case NLNET_AVX2: return &avx2_kernels;
        case NLNET_AVX512: return &avx512_kernels;
        default: return nullptr;
    }
}

#elif defined(__aarch64__)

NLNET_KERNELS(neon, "NEON")
nlnet_set best_set() {
    return NLNET_NEON;
}
const Kernels *kernels_in_build(nlnet_set set) {
    return set == NLNET_NEON ? &neon_kernels : nullptr;
}

#elif defined(__wasm_simd128__)

NLNET_KERNELS(simd128, "SIMD128")
nlnet_set best_set() {
    return NLNET_SIMD128;
}
const Kernels *kernels_in_build(nlnet_set set) {
    return set == NLNET_SIMD128 ? &simd128_kernels : nullptr;
}

#else
#error "The engine has kernels for x86-64, 64-bit ARM and WebAssembly with SIMD."
#endif

}  // namespace

// x86's sets contain each other, in the order of their numbers.
const Kernels *kernels_of(nlnet_set set) {
    return set <= best_set() ? kernels_in_build(set) : nullptr;
}

}  // namespace nlnet

uint32_t nlnet_engine_version(void) {
    return NLNET_ENGINE_VERSION;
}

nlnet_set nlnet_best_set(void) {
    return nlnet::best_set();
}

const char *nlnet_set_name(nlnet_set set) {
    const nlnet::Kernels *kernels = nlnet::kernels_of(set);
    return kernels == nullptr ? nullptr : kernels->name;
}
