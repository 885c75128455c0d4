// Loops over rows of pixels whose results are the same to the bit for all sets: a table of
// functions.
#include "convolutions/features.h"
#include "convolutions/shuffle.h"
#include "set_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// The opponent colors, luminance first; products are added from left to right.
template <typename T>
static void to_working(int channels, const T *const *pixels, ptrdiff_t step, T *const *planes,
                       int64_t width) {
    if (channels == 1) {
        for (int64_t x = 0; x < width; ++x) planes[0][x] = pixels[0][x * step];
        return;
    }
    for (int64_t x = 0; x < width; ++x) {
        const T red = pixels[0][x * step], green = pixels[1][x * step], blue = pixels[2][x * step];
        planes[0][x] = red * T(1.0 / 3) + green * T(1.0 / 3) + blue * T(1.0 / 3);
        planes[1][x] = red * T(0.5) - blue * T(0.5);
        planes[2][x] = red * T(0.25) - green * T(0.5) + blue * T(0.25);
    }
}

template <typename T>
constexpr PixelKernels<T> pixel_kernels() {
    return {to_working<T>, unshuffle<T>, refine<T>};
}

}  // namespace

extern const PixelKernels<float> pixel_float = pixel_kernels<float>();
extern const PixelKernels<double> pixel_double = pixel_kernels<double>();
extern const EyeKernels eye = {features};

}  // namespace NLNET_SET
}  // namespace nlnet
