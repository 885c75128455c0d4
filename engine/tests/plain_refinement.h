// The refinement in plain loops and double precision.
#pragma once

#include "plain_layers.h"

namespace plain {

struct Refinement {
    Layers layers;
    double step_size, center;
};

inline Refinement random_refinement(const LevelSizes &sizes, int channels, check::Random *random) {
    Refinement refinement = {};
    refinement.layers.sizes = sizes;
    if (sizes.levels == 0) return refinement;
    refinement.step_size = 0.2 * random->uniform();
    refinement.center = 100 + 50 * random->uniform();
    Layers &layers = refinement.layers;
    layers.add_way_down(8 * channels, random);
    for (int level = sizes.levels - 2; level >= 0; level--) {
        layers.add(1, sizes.widths[level + 1], sizes.widths[level], 0.7, random);
        layers.add_blocks(sizes.up[level], sizes.widths[level], random);
    }
    // Four pixels of each channel, and as many more as make a multiple of 8.
    layers.add(3, sizes.widths[0], channels == 1 ? 8 : 16, 0.15, random);
    return refinement;
}

template <typename T>
void put_refinement(const Refinement &refinement, Writer<T> &writer) {
    const LevelSizes &sizes = refinement.layers.sizes;
    const uint32_t levels[2] = {uint32_t(sizes.levels), 0};
    const double reals[2] = {refinement.step_size, refinement.center};
    writer.put(levels, sizeof(levels));
    writer.put(reals, sizeof(reals));
    writer.put(sizes.widths, sizeof(sizes.widths));
    writer.put(sizes.down, sizeof(sizes.down));
    writer.put(sizes.up, sizeof(sizes.up));
    writer.put_layers(refinement.layers);
}

// R(x, y), of which each pixel is four of the image.
inline Features change_of(const Layers &layers, const Features &in) {
    const Convolution *next = layers.layers;
    Features ends[kMostLevels];
    Features features = run_way_down(layers.sizes, &next, in, ends);
    for (int level = layers.sizes.levels - 2; level >= 0; level--) {
        features = convolve(*next++, features);
        features.add(ends[level]);
        features = run_blocks(&next, layers.sizes.up[level], static_cast<Features &&>(features));
    }
    features.rectify();
    return convolve(*next++, features);
}

// x <- (1 - gamma) x + gamma y - R(x, y) on working planes, (C, H, W), in place.
inline void refine(const Refinement &refinement, int channels, int64_t height, int64_t width,
                   const double *noisy, double *planes) {
    const LevelSizes &sizes = refinement.layers.sizes;
    const int64_t size = height * width;
    const Features in(8 * channels, sizes.padded(height) / 2, sizes.padded(width) / 2);
    in.each([&](int c, int64_t y, int64_t x) {
        const int plane = c / 4;
        const double *from =
            plane < channels ? planes + plane * size : noisy + (plane - channels) * size;
        const double value =
            from[mirrored(2 * y + c % 4 / 2, height) * width + mirrored(2 * x + c % 2, width)];
        return plane % channels == 0 ? value - refinement.center : value;
    });
    const Features change = change_of(refinement.layers, in);
    const double gamma = refinement.step_size;
    for (int c = 0; c < channels; c++) {
        for (int64_t y = 0; y < height; y++) {
            for (int64_t x = 0; x < width; x++) {
                const int64_t i = c * size + y * width + x;
                planes[i] = (1 - gamma) * planes[i] + gamma * noisy[i] -
                            change.at(c * 4 + int(y % 2 * 2 + x % 2), y / 2, x / 2);
            }
        }
    }
}

}  // namespace plain
