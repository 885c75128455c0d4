// Making noise that varies over an image even, and giving the result its scale back; blending.
//
// Color images are scaled in opponent colors, for luma and chroma have noise of different strength.
#pragma once

#include "../stages/color.h"
#include "row_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

static void even_row(int channels, float *const *rows, const float *const *gains, float center,
                     int64_t width) {
    const float *luma = gains[0], *chroma = gains[1];
    float *a = rows[0];
    if (channels == 1) {
        for (int64_t x = 0; x < width; x++) a[x] = (a[x] - center) * luma[x] + center;
        return;
    }
    float *b = rows[1], *c = rows[2];
    for (int64_t x = 0; x < width; x++) {
        const Triple<float> here = to_opponent(a[x] - center, b[x] - center, c[x] - center);
        const Triple<float> rgb = to_rgb(here.a * luma[x], here.b * chroma[x], here.c * chroma[x]);
        a[x] = rgb.a + center;
        b[x] = rgb.b + center;
        c[x] = rgb.c + center;
    }
}

static NLNET_INLINE float between(float from, float to, float share) {
    return from + (to - from) * share;
}

static void restore_row(int channels, float *const *rows, const float *const *gains,
                        const float *const *shares, const float *const *before, float center,
                        int64_t width) {
    const float *luma = gains[0], *chroma = gains[1];
    float *a = rows[0], *b = rows[1], *c = rows[2];
    if (channels == 1) {
        for (int64_t x = 0; x < width; x++) {
            const float back = (a[x] - center) / luma[x];
            a[x] = (shares == nullptr ? back : between(before[0][x] - center, back, shares[0][x])) +
                   center;
        }
        return;
    }
    for (int64_t x = 0; x < width; x++) {
        Triple<float> here = to_opponent(a[x] - center, b[x] - center, c[x] - center);
        here = {here.a / luma[x], here.b / chroma[x], here.c / chroma[x]};
        if (shares != nullptr) {
            const Triple<float> was =
                to_opponent(before[0][x] - center, before[1][x] - center, before[2][x] - center);
            here = {between(was.a, here.a, shares[0][x]), between(was.b, here.b, shares[1][x]),
                    between(was.c, here.c, shares[1][x])};
        }
        const Triple<float> rgb = to_rgb(here.a, here.b, here.c);
        a[x] = rgb.a + center;
        b[x] = rgb.b + center;
        c[x] = rgb.c + center;
    }
}

static void blend_row(int channels, const float *const *noisy, float *const *denoised, float luma,
                      float chroma, int64_t width) {
    if (luma == chroma) {
        for (int channel = 0; channel < channels; channel++) {
            const float *from = noisy[channel];
            float *to = denoised[channel];
            for (int64_t x = 0; x < width; x++) to[x] = between(from[x], to[x], luma);
        }
        return;
    }
    const float *p = noisy[0], *q = noisy[1], *r = noisy[2];
    float *a = denoised[0], *b = denoised[1], *c = denoised[2];
    for (int64_t x = 0; x < width; x++) {
        const Triple<float> change = to_opponent(a[x] - p[x], b[x] - q[x], c[x] - r[x]);
        const Triple<float> rgb = to_rgb(change.a * luma, change.b * chroma, change.c * chroma);
        a[x] = p[x] + rgb.a;
        b[x] = q[x] + rgb.b;
        c[x] = r[x] + rgb.c;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
