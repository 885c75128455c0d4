// The transform that evens out the noise of one channel over its brightness.
#pragma once

#include "../block.h"
#include "../memory.h"
#include "row_kernels.h"

namespace nlnet {

inline bool is_sound(const nlnet_level &level) {
    if (level.points == nullptr) {
        // The square of the gain is needed, and one over it.
        return level.gain > 1e-150 && level.gain < 1e150 && is_finite(level.offset);
    }
    if (level.count < 2 || level.count > (int64_t(1) << 20)) return false;
    double most = 0;
    for (int64_t i = 0; i < level.count; i++) {
        const double *point = level.points + 2 * i;
        if (!is_finite(point[0]) || !is_finite(point[1]) || point[1] < 0) return false;
        if (i > 0 && !(point[0] > point[-2])) return false;
        most = point[1] > most ? point[1] : most;
    }
    const double span = level.points[2 * (level.count - 1)] - level.points[0];
    return most > 0 && is_finite(span) && is_finite(100 * span / most) && span / Curve::kSteps > 0;
}

// Made once, then used for any number of rows, in any thread.
struct Stabiliser {
    Anscombe anscombe;
    const Curve *curve;  // NULL: photon noise

    void make(const nlnet_level &level, Memory &memory) {
        const double floor = 0.375 * level.gain * level.gain + level.offset;
        anscombe = {level.gain, level.offset, floor, __builtin_sqrt(floor > 0 ? floor : 0)};
        curve = nullptr;
        if (level.points == nullptr) return;
        Curve *made = reinterpret_cast<Curve *>(memory.take<char>(sizeof(Curve)));
        if (made != nullptr) integrate(level, made);
        curve = made;
    }

    void turn(const RemovalKernels &kernels, bool inverse, int64_t count, const float *values,
              float *turned) const {
        curve != nullptr ? kernels.curve_float(*curve, inverse, count, values, turned)
                         : kernels.anscombe_float(anscombe, inverse, count, values, turned);
    }
    void turn(const RemovalKernels &kernels, bool inverse, int64_t count, const double *values,
              double *turned) const {
        curve != nullptr ? kernels.curve_double(*curve, inverse, count, values, turned)
                         : kernels.anscombe_double(anscombe, inverse, count, values, turned);
    }

  private:
    // Least sigma of a curve, as a share of its largest: what is weaker is not blown up further.
    static constexpr double kFloor = 0.1;

    static void integrate(const nlnet_level &level, Curve *curve) {
        const double *points = level.points, *end = points + 2 * (level.count - 1);
        double least = 0;
        for (const double *point = points; point <= end; point += 2) {
            least = point[1] * kFloor > least ? point[1] * kFloor : least;
        }
        curve->first = points[0];
        curve->last = end[0];
        curve->step = (end[0] - points[0]) / Curve::kSteps;
        double sum = 0, before = 0;
        for (int i = 0; i <= Curve::kSteps; i++) {
            const double value = i < Curve::kSteps ? curve->first + i * curve->step : curve->last;
            while (points + 2 < end && points[2] <= value) points += 2;
            const double low = points[1] < least ? least : points[1];
            const double high = points[3] < least ? least : points[3];
            const double share = (value - points[0]) / (points[2] - points[0]);
            const double inverse = 1 / (low + share * (high - low));
            if (i > 0) sum += curve->step * (inverse + before) / 2;
            if (i == 0) curve->slopes[0] = inverse;
            curve->integral[i] = sum;
            before = inverse;
        }
        curve->slopes[1] = before;
        for (int guess = 0, at = 0; guess <= Curve::kGuesses; guess++) {
            const double here = sum * guess / Curve::kGuesses;
            while (at + 1 < Curve::kSteps && curve->integral[at + 1] <= here) at++;
            curve->guesses[guess] = int16_t(at);
        }
    }
};

}  // namespace nlnet
