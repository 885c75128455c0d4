// The projection onto the intensity box, and colors.
//
// The planes of a color image are luminance (r + g + b) / 3, (r - b) / 2 and (r - 2 g + b) / 4; the
// box is one of RGB values.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

template <typename T>
struct Triple {
    T a, b, c;
};

template <typename T>
static NLNET_INLINE Triple<T> to_rgb(T y, T u, T v) {
    const T mean = y + v * T(2.0 / 3);
    return {mean + u, y - v * T(4.0 / 3), mean - u};
}

template <typename T>
static NLNET_INLINE Triple<T> to_opponent(T r, T g, T b) {
    return {(r + g + b) * T(1.0 / 3), (r - b) * T(0.5), (r + b) * T(0.25) - g * T(0.5)};
}

// NaN stays.
template <typename T>
static NLNET_INLINE T clipped(T value, const Box<T> &box) {
    const T above = value < box.low ? box.low : value;
    return box.high < above ? box.high : above;
}

// Eq. (25)
template <typename T>
static void project(int channels, T *const *planes, const Box<T> &box, int64_t width) {
    if (!box.limited) return;
    const Box<T> limits = box;
    if (channels == 1) {
        T *plane = planes[0];
        for (int64_t x = 0; x < width; x++) plane[x] = clipped(plane[x], limits);
        return;
    }
    T *a = planes[0], *b = planes[1], *c = planes[2];
    for (int64_t x = 0; x < width; x++) {
        const Triple<T> rgb = to_rgb(a[x], b[x], c[x]);
        const Triple<T> result =
            to_opponent(clipped(rgb.a, limits), clipped(rgb.b, limits), clipped(rgb.c, limits));
        a[x] = result.a;
        b[x] = result.b;
        c[x] = result.c;
    }
}

template <typename T>
static NLNET_INLINE T where_inside(T value, const Box<T> &box, T result) {
    return ((value >= box.low) & (value <= box.high)) ? result : T(0);
}

// The Jacobian of the clip is 1 inside the box and 0 outside, Eq. (26) and (27).
template <typename T>
static void project_backward(int channels, const T *const *updates, T *const *cotangents,
                             const Box<T> &box, int64_t width) {
    if (!box.limited) return;
    const Box<T> limits = box;
    if (channels == 1) {
        const T *update = updates[0];
        T *cotangent = cotangents[0];
        for (int64_t x = 0; x < width; x++)
            cotangent[x] = where_inside(update[x], limits, cotangent[x]);
        return;
    }
    T *a = cotangents[0], *b = cotangents[1], *c = cotangents[2];
    for (int64_t x = 0; x < width; x++) {
        const Triple<T> rgb = to_rgb(updates[0][x], updates[1][x], updates[2][x]);
        // The adjoint of to_opponent, then that of to_rgb.
        const T third = a[x] * T(1.0 / 3), half = b[x] * T(0.5), quarter = c[x] * T(0.25);
        const T red = where_inside(rgb.a, limits, third + half + quarter);
        const T green = where_inside(rgb.b, limits, third - 2 * quarter);
        const T blue = where_inside(rgb.c, limits, third - half + quarter);
        a[x] = red + green + blue;
        b[x] = red - blue;
        c[x] = (red + blue) * T(2.0 / 3) - green * T(4.0 / 3);
    }
}

template <typename T>
static void from_working(int channels, const T *const *planes, T *const *pixels, ptrdiff_t step,
                         const Box<T> &box, int64_t width) {
    const bool limited = box.limited;
    const Box<T> limits = box;
    if (channels == 1) {
        for (int64_t x = 0; x < width; x++)
            pixels[0][x * step] = limited ? clipped(planes[0][x], limits) : planes[0][x];
        return;
    }
    const T *a = planes[0], *b = planes[1], *c = planes[2];
    T *red = pixels[0], *green = pixels[1], *blue = pixels[2];
    for (int64_t x = 0; x < width; x++) {
        const Triple<T> rgb = to_rgb(a[x], b[x], c[x]);
        red[x * step] = limited ? clipped(rgb.a, limits) : rgb.a;
        green[x * step] = limited ? clipped(rgb.b, limits) : rgb.b;
        blue[x * step] = limited ? clipped(rgb.c, limits) : rgb.c;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
