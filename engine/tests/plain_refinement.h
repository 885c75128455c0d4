// The refinement in plain loops and double precision: whole levels, one layer after the other.
#pragma once

#include "check.h"

namespace plain {

inline double *numbers(int64_t count) {
    return static_cast<double *>(calloc(size_t(count), sizeof(double)));
}

// The pixel that symmetric padding shows at `index`; the first one, if it ends before that.
inline int64_t mirrored(int64_t index, int64_t length) {
    if (index < 0) index = -1 - index;
    if (index >= length) index = 2 * length - 1 - index;
    return index < 0 ? 0 : index;
}

constexpr int kMostLevels = 4;

// Sizes of a refinement; without levels there is none.
struct RefinementConfig {
    int levels;
    int widths[kMostLevels], down[kMostLevels], up[kMostLevels];

    int64_t unit() const { return int64_t(1) << levels; }
    int64_t padded(int64_t pixels) const { return (pixels + unit() - 1) / unit() * unit(); }
};

// A convolution. Its kernel says what it does with the size: with a side of 3 it stays, 2 halves
// it, and 1 doubles it: each pixel becomes 2x2.
struct Convolution {
    int side, taken, given;
    double *weights;  // (side, side, taken, given); (2, taken, 2, given) if it doubles
    double *biases;   // (given); (2, 2, given) if it doubles

    int phases() const { return side == 1 ? 4 : 1; }
    int64_t weight_count() const { return int64_t(side) * side * taken * given * phases(); }
    int64_t bias_count() const { return given * phases(); }
};

struct Refinement {
    RefinementConfig config;
    double step_size, center;
    int count;
    Convolution layers[40];
};

inline RefinementConfig random_sizes(check::Random *random) {
    RefinementConfig config = {};
    config.levels = 1 + int(random->below(kMostLevels));
    for (int level = 0; level < config.levels; level++) {
        config.widths[level] = 8 + 8 * int(random->below(3));
        config.down[level] = int(random->below(3));
        if (level + 1 < config.levels) config.up[level] = int(random->below(3));
    }
    return config;
}

// A layer whose result is about `gain` times as large as what it takes in.
inline void add_layer(Refinement *refinement, int side, int taken, int given, double gain,
                      check::Random *random) {
    Convolution layer = {side, taken, given, nullptr, nullptr};
    layer.weights = numbers(layer.weight_count());
    layer.biases = numbers(layer.bias_count());
    const double most = gain * sqrt(3.0 / (side * side * taken));
    for (int64_t i = 0; i < layer.weight_count(); i++) {
        layer.weights[i] = float(most * (2 * random->uniform() - 1));
    }
    for (int64_t i = 0; i < layer.bias_count(); i++) {
        layer.biases[i] = float(10 * gain * (2 * random->uniform() - 1));
    }
    refinement->layers[refinement->count++] = layer;
}

inline Refinement random_refinement(const RefinementConfig &config, int channels,
                                    check::Random *random) {
    Refinement refinement = {};
    refinement.config = config;
    if (config.levels == 0) return refinement;
    refinement.step_size = 0.2 * random->uniform();
    refinement.center = 100 + 50 * random->uniform();
    const int *widths = config.widths;
    const auto add_blocks = [&](int blocks, int width) {
        for (int i = 0; i < 2 * blocks; i++) {
            add_layer(&refinement, 3, width, width, 0.7, random);
        }
    };
    add_layer(&refinement, 3, 8 * channels, widths[0], 0.5, random);
    for (int level = 0; level < config.levels; level++) {
        if (level > 0) add_layer(&refinement, 2, widths[level - 1], widths[level], 0.7, random);
        add_blocks(config.down[level], widths[level]);
    }
    for (int level = config.levels - 2; level >= 0; level--) {
        add_layer(&refinement, 1, widths[level + 1], widths[level], 0.7, random);
        add_blocks(config.up[level], widths[level]);
    }
    // Four pixels of each channel, and as many more as make a multiple of 8.
    add_layer(&refinement, 3, widths[0], channels == 1 ? 8 : 16, 0.15, random);
    return refinement;
}

inline void release(Refinement *refinement) {
    for (int number = 0; number < refinement->count; number++) {
        free(refinement->layers[number].weights);
        free(refinement->layers[number].biases);
    }
}

// All channels of a level, with zeros around them.
struct Features {
    int channels = 0;
    int64_t height = 0, width = 0;
    double *values = nullptr;  // (C, H, W)

    Features() = default;
    Features(int count, int64_t rows, int64_t columns)
        : channels(count), height(rows), width(columns), values(numbers(count * rows * columns)) {}
    ~Features() { free(values); }
    Features(Features &&other) : Features() { *this = static_cast<Features &&>(other); }
    Features &operator=(Features &&other) {
        free(values);
        channels = other.channels;
        height = other.height;
        width = other.width;
        values = other.values;
        other.values = nullptr;
        return *this;
    }
    double &at(int channel, int64_t y, int64_t x) const {
        return values[(channel * height + y) * width + x];
    }
    double read(int channel, int64_t y, int64_t x) const {
        return y < 0 || y >= height || x < 0 || x >= width ? 0 : at(channel, y, x);
    }
    template <typename Change>
    void each(const Change &change) const {
        for (int c = 0; c < channels; c++) {
            for (int64_t y = 0; y < height; y++) {
                for (int64_t x = 0; x < width; x++) at(c, y, x) = change(c, y, x);
            }
        }
    }
    void add(const Features &other) const {
        each([&](int c, int64_t y, int64_t x) { return at(c, y, x) + other.at(c, y, x); });
    }
    void rectify() const {
        each([&](int c, int64_t y, int64_t x) { return at(c, y, x) > 0 ? at(c, y, x) : 0; });
    }
};

inline Features convolve(const Convolution &layer, const Features &in) {
    const int side = layer.side, taken = layer.taken, given = layer.given;
    if (side == 1) {
        Features out(given, 2 * in.height, 2 * in.width);
        out.each([&](int c, int64_t y, int64_t x) {
            double sum = layer.biases[(y % 2 * 2 + x % 2) * given + c];
            for (int k = 0; k < taken; k++) {
                sum += layer.weights[((y % 2 * taken + k) * 2 + x % 2) * given + c] *
                       in.at(k, y / 2, x / 2);
            }
            return sum;
        });
        return out;
    }
    const int step = side == 2 ? 2 : 1, before = side == 3 ? 1 : 0;
    Features out(given, in.height / step, in.width / step);
    out.each([&](int c, int64_t y, int64_t x) {
        double sum = layer.biases[c];
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < side; j++) {
                for (int k = 0; k < taken; k++) {
                    sum += layer.weights[((i * side + j) * taken + k) * given + c] *
                           in.read(k, y * step + i - before, x * step + j - before);
                }
            }
        }
        return sum;
    });
    return out;
}

// R(x, y), of which each pixel is four of the image.
inline Features change_of(const Refinement &refinement, const Features &in) {
    const RefinementConfig &config = refinement.config;
    const Convolution *next = refinement.layers;
    Features ends[kMostLevels];
    Features features = convolve(*next++, in);
    const auto run_blocks = [&](int count) {
        for (int block = 0; block < count; block++) {
            Features inner = convolve(*next++, features);
            inner.rectify();
            features.add(convolve(*next++, inner));
        }
    };
    for (int level = 0; level < config.levels; level++) {
        if (level > 0) features = convolve(*next++, ends[level - 1]);
        run_blocks(config.down[level]);
        ends[level] = static_cast<Features &&>(features);
    }
    features = static_cast<Features &&>(ends[config.levels - 1]);
    for (int level = config.levels - 2; level >= 0; level--) {
        features = convolve(*next++, features);
        features.add(ends[level]);
        run_blocks(config.up[level]);
    }
    features.rectify();
    return convolve(*next++, features);
}

// x <- (1 - gamma) x + gamma y - R(x, y) on working planes, (C, H, W), in place.
inline void refine(const Refinement &refinement, int channels, int64_t height, int64_t width,
                   const double *noisy, double *planes) {
    const RefinementConfig &config = refinement.config;
    const int64_t size = height * width;
    const Features in(8 * channels, config.padded(height) / 2, config.padded(width) / 2);
    in.each([&](int c, int64_t y, int64_t x) {
        const int plane = c / 4;
        const double *from =
            plane < channels ? planes + plane * size : noisy + (plane - channels) * size;
        const double value =
            from[mirrored(2 * y + c % 4 / 2, height) * width + mirrored(2 * x + c % 2, width)];
        return plane % channels == 0 ? value - refinement.center : value;
    });
    const Features change = change_of(refinement, in);
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
