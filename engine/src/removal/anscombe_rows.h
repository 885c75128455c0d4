// Evening noise out: transforms after which it is equally strong at every brightness.
//
// Photon noise is evened out by the generalised Anscombe transform, and brought back by its exact
// unbiased inverse: the value whose noisy versions have the given mean after the transform. The
// plain inverse would make dark areas too dark.
//
// M. Makitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for
// Poisson-Gaussian noise", IEEE Transactions on Image Processing 22 (2013); the closed form is that
// of their article of 2011 on the Anscombe transform.
#pragma once

#include "../vectors.h"
#include "row_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr double kNoPhotons = 1.2247448713915889;  // 2 sqrt(3/8): the transform without photons
constexpr double kLargest = 1e37;                  // near the largest float

static NLNET_INLINE double at_least(double value, double least) {
    return value < least ? least : value;
}

static NLNET_INLINE float root_of(float value) {
    return __builtin_sqrtf(value);
}
static NLNET_INLINE double root_of(double value) {
    return __builtin_sqrt(value);
}

// The result is counted from the transform of the value 0, or of black if black is above 0. Without
// that, 2 / gain * sqrt(gain * x + ...) would be so much larger than its differences, where the
// noise hardly grows with the light, that floats could not hold them.
template <typename T>
static void to_even(const Anscombe &way, int64_t count, const T *values, T *turned) {
    const T gain = T(way.gain), floor = T(way.floor), root = T(way.root);
    if (way.floor <= 0) {
        const T factor = T(2 / way.gain);
        for (int64_t i = 0; i < count; i++) {
            const T square = gain * values[i] + floor;
            turned[i] = factor * root_of(square < 0 ? T(0) : square);
        }
        return;
    }
    const T least = T(at_least(-way.floor / way.gain, -kLargest));
    for (int64_t i = 0; i < count; i++) {
        const T square = gain * values[i] + floor, light = values[i] < least ? least : values[i];
        turned[i] = 2 * light / (root_of(square < 0 ? T(0) : square) + root);
    }
}

template <typename T>
static void from_even(const Anscombe &way, int64_t count, const T *values, T *turned) {
    const double start = at_least(kNoPhotons - 2 * way.root / way.gain, -kLargest);
    const T gain = T(way.gain), root = T(way.root), least = T(start), quarter = T(way.gain / 4);
    const T twice = T(2 * way.root), lifted = T((way.floor < 0 ? way.floor : 0) / way.gain);
    // Below the transform of a pixel without photons the inverse goes on as a straight line, so
    // that negative values of floating data are not cut off.
    const T slope = T(way.gain * kNoPhotons / 2);
    const T dark = T(at_least(-way.offset / way.gain, -kLargest));
    const T a = T(0.30618621784789724), b = T(-1.375), c = T(0.76546554461974314);
    for (int64_t i = 0; i < count; i++) {
        const T value = values[i], mean = value < least ? least : value;
        // One over the transform of the article, which is not counted from 0.
        const T over = gain / (gain * mean + twice);
        const T bias = T(0.25) + over * (a + over * (b + over * c));
        const T light = mean * (quarter * mean + root) + gain * bias - lifted;
        const T below = value - least;
        turned[i] = (light < dark ? dark : light) + (below < 0 ? below : T(0)) * slope;
    }
}

template <typename T>
static void stabilise(const Anscombe &way, bool inverse, int64_t count, const T *values,
                      T *turned) {
    inverse ? from_even<T>(way, count, values, turned) : to_even<T>(way, count, values, turned);
}

// A curve and its inverse; outside, both go on as straight lines.
template <typename T>
static void follow(const Curve &curve, bool inverse, int64_t count, const T *values, T *turned) {
    const double end = curve.integral[Curve::kSteps];
    for (int64_t i = 0; i < count; i++) {
        const double value = double(values[i]);
        double result;
        if (!inverse) {
            const double inside = value < curve.first  ? curve.first
                                  : value > curve.last ? curve.last
                                                       : value;
            const int place = int((inside - curve.first) / curve.step);
            const int at = place < Curve::kSteps ? place : Curve::kSteps - 1;
            const double share = (inside - curve.first) / curve.step - at;
            result = curve.integral[at] + share * (curve.integral[at + 1] - curve.integral[at]) +
                     (value - inside) * curve.slopes[value > inside];
        } else {
            const double inside = value < 0 ? 0 : value > end ? end : value;
            int at = curve.guesses[int(inside / end * Curve::kGuesses)];
            while (at > 0 && curve.integral[at] > inside) at--;
            while (at + 1 < Curve::kSteps && curve.integral[at + 1] <= inside) at++;
            const double share =
                (inside - curve.integral[at]) / (curve.integral[at + 1] - curve.integral[at]);
            result = curve.first + (at + share) * curve.step +
                     (value - inside) / curve.slopes[value > inside];
        }
        turned[i] = T(result);
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
