// The eye in plain loops and double precision.
#pragma once

#include "plain.h"

namespace plain {

struct Eye {
    Layers layers;
    int outputs;
};

inline Eye random_eye(LevelSizes sizes, int outputs, check::Random *random) {
    for (int &blocks : sizes.up) blocks = 0;
    Eye eye = {};
    eye.layers.sizes = sizes;
    eye.outputs = outputs;
    eye.layers.add_way_down(16, random);
    eye.layers.add(3, sizes.widths[sizes.levels - 1], outputs, 0.7, random);
    return eye;
}

inline unsigned char *block_of(const Eye &eye, size_t *bytes) {
    return write_block<float>(bytes, [&](Writer<float> &writer, uint64_t total) {
        const LevelSizes &sizes = eye.layers.sizes;
        const uint32_t head[] = {1, uint32_t(sizes.levels), uint32_t(eye.outputs), 0};
        writer.put("nlneteye", 8);
        writer.put(head, sizeof(head));
        writer.put(sizes.widths, sizeof(sizes.widths));
        writer.put(sizes.down, sizeof(sizes.down));
        writer.put(&total, sizeof(total));
        writer.put_layers(eye.layers);
    });
}

// Four features of every pixel of a tile, (C, H, W), gray or RGB.
inline Features features_of(int channels, int64_t height, int64_t width, const float *tile) {
    const Features planes(3, height, width);
    Features features(4, height, width);
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            double c[3] = {0, 0, 0};
            for (int i = 0; i < channels; i++) c[i] = tile[(i * height + y) * width + x];
            if (channels == 3) to_opponent(c);
            for (int i = 0; i < 3; i++) planes.at(i, y, x) = c[i];
        }
    }
    const auto inside = [](int64_t at, int64_t size) {
        return at < 0 ? 0 : at < size ? at : size - 1;
    };
    features.each([&](int feature, int64_t y, int64_t x) {
        if (feature == 0) return (planes.at(0, y, x) - 127.5) / 64;
        double mean = 0;
        for (int64_t i = -2; i <= 2; i++) {
            for (int64_t j = -2; j <= 2; j++) {
                mean += planes.at(feature - 1, inside(y + i, height), inside(x + j, width)) / 25;
            }
        }
        return asinh((planes.at(feature - 1, y, x) - mean) / 2);
    });
    return features;
}

// The maps of a tile.
inline Features look(const Eye &eye, int channels, int64_t height, int64_t width,
                     const float *tile) {
    const Features features = features_of(channels, height, width, tile);
    const Features in(16, height / 2, width / 2);
    in.each([&](int c, int64_t y, int64_t x) {
        return features.at(c / 4, 2 * y + c % 4 / 2, 2 * x + c % 2);
    });
    const Convolution *next = eye.layers.layers;
    Features ends[kMostLevels];
    const Features lowest = run_way_down(eye.layers.sizes, &next, in, ends);
    lowest.rectify();
    return convolve(*next, lowest);
}

}  // namespace plain
