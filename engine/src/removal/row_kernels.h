// What each instruction set provides for removal: loops over rows of pixels, the same to the bit
// for all sets.
#pragma once

#include "../../include/nlnet_engine.h"
#include "../shape.h"

namespace nlnet {

// The generalised Anscombe transform for a variance of gain * x + offset.
struct Anscombe {
    double gain, offset;
    double floor;  // the term under the root for the value 0, times the square of the gain
    double root;   // of the floor; 0 if that is below 0
};

// The integral of 1 / sigma over the brightness, for any other dependence.
struct Curve {
    static constexpr int kSteps = 1024, kGuesses = 4096;

    double first, last, step;       // values: first + i * step
    double slopes[2];               // of the integral, outside
    double integral[kSteps + 1];    // at each value
    int16_t guesses[kGuesses + 1];  // for equal parts of the integral, the last value below
};

// A coarse map of one plane over an image, along its rows.
struct Widening {
    int64_t columns;        // of the map
    const int32_t *begins;  // (columns + 2): where in the row each pair of columns begins
    const float *shares;    // (width): of the right one of the pair
    int64_t width;
};

struct RemovalKernels {
    // A row of pixels, `step` elements apart, as floats, and back.
    void (*load)(nlnet_type, const void *pixels, ptrdiff_t step, int64_t width, float *row);
    void (*store)(nlnet_type, const float *row, int64_t width, void *pixels, ptrdiff_t step);
    void (*anscombe_float)(const Anscombe &, bool inverse, int64_t count, const float *, float *);
    void (*anscombe_double)(const Anscombe &, bool inverse, int64_t count, const double *,
                            double *);
    void (*curve_float)(const Curve &, bool inverse, int64_t count, const float *, float *);
    void (*curve_double)(const Curve &, bool inverse, int64_t count, const double *, double *);
    // row = row * factor - black; false if a value is not finite then
    bool (*scale)(float *row, int64_t width, float factor, float black);
    // row = (row + black) / factor
    void (*unscale)(float *row, int64_t width, float factor, float black);
    void (*clip)(float *row, int64_t width, float low, float high);
    // Make noise even: opponent colors around a center times the gains of luma and chroma.
    void (*even)(int channels, float *const *rows, const float *const *gains, float center,
                 int64_t width);
    // Give denoised rows their scale back. With shares, those of luma and chroma are taken, and the
    // rest is that of the rows before they were even.
    void (*restore)(int channels, float *const *rows, const float *const *gains,
                    const float *const *shares, const float *const *before, float center,
                    int64_t width);
    // denoised = noisy + shares of luma and chroma of the change
    void (*blend)(int channels, const float *const *noisy, float *const *denoised, float luma,
                  float chroma, int64_t width);
    void (*halve)(const float *upper, const float *lower, int64_t half_width, float *row);
    // Add a row between two of half the size to a row: `share` is that of the far one.
    void (*enlarge)(const float *near, const float *far, float share, int64_t half_width,
                    float *line, int64_t width, float *row);
    void (*subtract)(const float *less, int64_t width, float *row);
    // A row between two rows of a map: `share` is that of the far one.
    void (*widen)(const Widening &, const float *near, const float *far, float share, float *row);
};

}  // namespace nlnet
