// The engine's test program: every kernel beside a plain statement of what it computes.
//
// A part of the program is a function that calls kernels with random sizes, edges and values, and
// one that times them; check.cpp calls them for each instruction set that the machine has. The same
// seed gives the same checks.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../src/kernels.h"

namespace check {

// A small random generator (xorshift), the same on every machine.
struct Random {
    uint64_t state;

    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state * 0x2545F4914F6CDD1Dull;
    }
    // A whole number from low to high, both included.
    int64_t between(int64_t low, int64_t high) {
        return low + int64_t((next() >> 11) % uint64_t(high - low + 1));
    }
    uint32_t below(uint32_t count) { return uint32_t(between(0, int64_t(count) - 1)); }
    // From 0 to 1.
    double uniform() { return double(next() >> 11) / 9007199254740992.0; }
};

struct Report {
    const char *set;  // the instruction set
    int checks, failures;

    // Count a check; what follows describes it, for the case that it fails.
    __attribute__((format(printf, 3, 4))) void expect(bool holds, const char *format, ...) {
        ++checks;
        if (holds) return;
        if (++failures > 20) return;
        fprintf(stderr, "FAILED (%s): ", set);
        __builtin_va_list arguments;
        __builtin_va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        __builtin_va_end(arguments);
        fputc('\n', stderr);
    }
};

#if defined(_WIN32)
inline void *take_aligned(size_t bytes) {
    return _aligned_malloc(bytes, 64);
}
inline void give_back(void *memory) {
    _aligned_free(memory);
}
#else
inline void *take_aligned(size_t bytes) {
    return aligned_alloc(64, bytes);
}
inline void give_back(void *memory) {
    free(memory);
}
#endif

// Memory on the heap, exactly as large as said, so that an address sanitizer sees what is beyond;
// filled with a pattern that makes numbers nobody expects.
template <typename T>
struct Array {
    T *data;
    size_t count;

    explicit Array(size_t elements) : count(elements) {
        const size_t bytes = (elements * sizeof(T) + 63) / 64 * 64;
        data = static_cast<T *>(take_aligned(bytes ? bytes : 64));
        if (!data) abort();
        memset(static_cast<void *>(data), 0xEB, bytes);
    }
    ~Array() { give_back(data); }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    T &operator[](int64_t index) const { return data[index]; }
};

// Seconds per call of a function of no arguments: the least of some rounds.
template <typename Function>
double seconds(const Function &function, int rounds) {
    double least = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const clock_t start = clock();
        function();
        const double passed = double(clock() - start) / CLOCKS_PER_SEC;
        if (passed < least) least = passed;
    }
    return least;
}

void check_matching(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_matching(const nlnet::Kernels &kernels);
void check_stages(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_rows(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_stages(const nlnet::Kernels &kernels);
void check_convolve(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_convolve(const nlnet::Kernels &kernels);
void check_layer_schedule(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_schedule(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_gradients(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_pixels(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_eye(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_eye(const nlnet::Kernels &kernels);
void check_series(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_keep(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_motion(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_samples(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_photons(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_cells(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_found(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_found(const nlnet::Kernels &kernels);
void check_noise(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void time_noise(const nlnet::Kernels &kernels);
void check_removal(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);
void check_jobs(const nlnet::Kernels &kernels, int rounds, Random random, Report &report);

}  // namespace check
