// Eigenvalues of a symmetric matrix.
#pragma once

#include "../shape.h"

namespace nlnet {
namespace {

// A symmetric matrix with nonzero elements only on its diagonal and beside it.
struct Tridiagonal {
    static constexpr int kMost = 49;
    int size;
    double diagonal[kMost];
    double squares[kMost];  // of the elements left of the diagonal; the first is 0

    // How many eigenvalues are below: as many as the pivots of (matrix - value) that are negative.
    int count_below(double value) const {
        int count = 0;
        double pivot = 1;
        for (int i = 0; i < size; i++) {
            pivot = diagonal[i] - value - squares[i] / pivot;
            if (pivot == 0) pivot = -1e-300;
            count += pivot < 0;
        }
        return count;
    }

    // The eigenvalue of this number, in ascending order, by bisection; none is below 0 or above
    // `most`.
    double eigenvalue(int number, double most) const {
        double low = 0, high = most;
        for (int i = 0; i < 60; i++) {
            const double middle = (low + high) / 2;
            (count_below(middle) > number ? high : low) = middle;
        }
        return (low + high) / 2;
    }
};

// The tridiagonal matrix with the same eigenvalues, by Householder's reflections; `matrix`,
// (size, size), is overwritten.
inline Tridiagonal tridiagonal(double *matrix, int size) {
    Tridiagonal result = {size, {}, {}};
    double reflected[Tridiagonal::kMost];
    for (int last = size - 1; last > 0; last--) {
        // Row `last` left of the diagonal becomes (0, ..., 0, +-length), by I - v v^T / half.
        double *v = matrix + last * size;
        double length = 0;
        for (int i = 0; i < last; i++) length += v[i] * v[i];
        result.diagonal[last] = v[last];
        result.squares[last] = length;
        if (length == 0) continue;
        const double root = v[last - 1] < 0 ? -__builtin_sqrt(length) : __builtin_sqrt(length);
        const double half = length + root * v[last - 1];
        v[last - 1] += root;
        for (int i = 0; i < last; i++) reflected[i] = 0;
        for (int j = 0; j < last; j++) {
            for (int i = 0; i < last; i++) reflected[i] += matrix[j * size + i] * v[j];
        }
        double along = 0;
        for (int i = 0; i < last; i++) along += reflected[i] * v[i];
        for (int i = 0; i < last; i++) {
            reflected[i] = (reflected[i] - along / (2 * half) * v[i]) / half;
        }
        for (int j = 0; j < last; j++) {
            for (int i = 0; i < last; i++) {
                matrix[j * size + i] -= v[j] * reflected[i] + reflected[j] * v[i];
            }
        }
    }
    result.diagonal[0] = matrix[0];
    return result;
}

}  // namespace
}  // namespace nlnet
