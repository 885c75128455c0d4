// How the engine's threads compute, whatever the program around it has set.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace nlnet {
namespace {

// Rounding to nearest, and denormal numbers as they are, whatever other libraries have set.
class DefaultArithmetic {
  public:
#if defined(__x86_64__)
    DefaultArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~DefaultArithmetic() { _mm_setcsr(before_); }

  private:
    unsigned before_;
#elif defined(__aarch64__)
    DefaultArithmetic() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
        __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
    }
    ~DefaultArithmetic() { __asm__ volatile("msr fpcr, %0" : : "r"(before_)); }

  private:
    uint64_t before_;
#else
    DefaultArithmetic() {}
#endif
};

}  // namespace
}  // namespace nlnet
