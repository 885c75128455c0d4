// A stage's update, u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x), given the sum.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// row = (1 - step) * estimate + step * noisy - row, Eq. (24)
template <typename T>
static void descend(const T *estimate, const T *noisy, T step, T *row, int64_t width) {
    for (int64_t x = 0; x < width; x++)
        row[x] = (1 - step) * estimate[x] + step * noisy[x] - row[x];
}

// Eq. (29). As many sums as one vector of any set, or several, can hold.
template <typename T>
static double step_gradient(const T *cotangent, const T *noisy, const T *estimate, int64_t width) {
    constexpr int count = 8;
    double sums[count] = {};
    int64_t x = 0;
    for (; x + count <= width; x += count)
        for (int i = 0; i < count; i++)
            sums[i] += double(cotangent[x + i]) * (double(noisy[x + i]) - double(estimate[x + i]));
    double total = 0;
    for (; x < width; x++) total += double(cotangent[x]) * (double(noisy[x]) - double(estimate[x]));
    for (double sum : sums) total += sum;
    return total;
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
