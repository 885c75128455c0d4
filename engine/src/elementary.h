// Elementary functions of one number, to some units in the last place: the engine has no libm.
#pragma once

#include <stdint.h>

#include "shape.h"

namespace nlnet {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

inline double larger_number(double left, double right) {
    return left < right ? right : left;
}
inline double smaller_number(double left, double right) {
    return left < right ? left : right;
}
// What is not a number is low.
inline double within(double number, double low, double high) {
    return number > low ? smaller_number(number, high) : low;
}
inline double square_root(double number) {
    return __builtin_sqrt(number);
}

// 2 to the power of a number from -1000 to 1000.
inline double exp2_of(double number) {
    const double inside = within(number, -1000, 1000);
    const int64_t whole = int64_t(inside + (inside < 0 ? -0.5 : 0.5));
    const double rest = (inside - double(whole)) * kLn2;  // at most 0.35 from 0
    double sum = 1;
    for (int i = 14; i > 0; i--) sum = 1 + sum * rest / i;
    const uint64_t bits = uint64_t(whole + 1023) << 52;
    double power;
    __builtin_memcpy(&power, &bits, sizeof(power));
    return sum * power;
}

inline double exp_of(double number) {
    return exp2_of(number / kLn2);
}

// The natural logarithm of a normal number above 0.
inline double log_of(double number) {
    int64_t bits;
    __builtin_memcpy(&bits, &number, sizeof(bits));
    // A power of two times a mantissa from sqrt(1/2) to sqrt(2).
    const int64_t exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
    bits -= exponent * (int64_t(1) << 52);
    double mantissa;
    __builtin_memcpy(&mantissa, &bits, sizeof(mantissa));
    // 2 atanh(t)
    const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
    double sum = 0;
    for (int i = 23; i > 0; i -= 2) sum = sum * square + 1.0 / i;
    return 2 * t * sum + double(exponent) * kLn2;
}

}  // namespace
}  // namespace nlnet
