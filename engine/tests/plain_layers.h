// The layers of small convolutional networks in plain loops and double precision: whole levels, one
// layer after the other.
#pragma once

#include "check.h"

namespace plain {

inline double *numbers(int64_t count) {
    return static_cast<double *>(calloc(count < 0 ? 0 : size_t(count), sizeof(double)));
}

// The pixel that symmetric padding shows at `index`; the first one, if it ends before that.
inline int64_t mirrored(int64_t index, int64_t length) {
    if (index < 0) index = -1 - index;
    if (index >= length) index = 2 * length - 1 - index;
    return index < 0 ? 0 : index;
}

constexpr int kMostLevels = 4;

// Sizes of a network level by level; without levels there is none.
struct LevelSizes {
    int levels;
    int widths[kMostLevels], down[kMostLevels], up[kMostLevels];

    int64_t unit() const { return int64_t(1) << levels; }
    int64_t padded(int64_t pixels) const { return (pixels + unit() - 1) / unit() * unit(); }
};

inline LevelSizes random_sizes(check::Random *random) {
    LevelSizes sizes = {};
    sizes.levels = 1 + int(random->below(kMostLevels));
    for (int level = 0; level < sizes.levels; level++) {
        sizes.widths[level] = 8 + 8 * int(random->below(3));
        sizes.down[level] = int(random->below(3));
        if (level + 1 < sizes.levels) sizes.up[level] = int(random->below(3));
    }
    return sizes;
}

// A convolution. Its kernel says what it does with the size: with a side of 3 it stays, 2 halves
// it, and 1 doubles it: each pixel becomes 2x2.
struct Convolution {
    int side, in_channels, out_channels;
    double *weights;  // (side, side, in, out); (2, in, 2, out) if it doubles
    double *biases;   // (out); (2, 2, out) if it doubles

    int phases() const { return side == 1 ? 4 : 1; }
    int64_t weight_count() const {
        return int64_t(side) * side * in_channels * out_channels * phases();
    }
    int64_t bias_count() const { return out_channels * phases(); }
};

// Layers in the order in which they run.
struct Layers {
    LevelSizes sizes;
    int count;
    Convolution layers[40];

    // Add one with random values, whose result is about `gain` times as large as its input.
    void add(int side, int in_channels, int out_channels, double gain, check::Random *random) {
        Convolution layer = {side, in_channels, out_channels, nullptr, nullptr};
        layer.weights = numbers(layer.weight_count());
        layer.biases = numbers(layer.bias_count());
        const double most = gain * sqrt(3.0 / (side * side * in_channels));
        for (int64_t i = 0; i < layer.weight_count(); i++) {
            layer.weights[i] = float(most * (2 * random->uniform() - 1));
        }
        for (int64_t i = 0; i < layer.bias_count(); i++) {
            layer.biases[i] = float(10 * gain * (2 * random->uniform() - 1));
        }
        layers[count++] = layer;
    }
    void add_blocks(int blocks, int width, check::Random *random) {
        for (int i = 0; i < 2 * blocks; i++) add(3, width, width, 0.7, random);
    }
    void add_way_down(int in_channels, check::Random *random) {
        add(3, in_channels, sizes.widths[0], 0.5, random);
        for (int level = 0; level < sizes.levels; level++) {
            const int width = sizes.widths[level];
            if (level > 0) add(2, sizes.widths[level - 1], width, 0.7, random);
            add_blocks(sizes.down[level], width, random);
        }
    }
    void release() const {
        for (int number = 0; number < count; number++) {
            free(layers[number].weights);
            free(layers[number].biases);
        }
    }
};

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
    const int side = layer.side, inputs = layer.in_channels, outputs = layer.out_channels;
    if (side == 1) {
        Features out(outputs, 2 * in.height, 2 * in.width);
        out.each([&](int c, int64_t y, int64_t x) {
            double sum = layer.biases[(y % 2 * 2 + x % 2) * outputs + c];
            for (int k = 0; k < inputs; k++) {
                sum += layer.weights[((y % 2 * inputs + k) * 2 + x % 2) * outputs + c] *
                       in.at(k, y / 2, x / 2);
            }
            return sum;
        });
        return out;
    }
    const int step = side == 2 ? 2 : 1, before = side == 3 ? 1 : 0;
    Features out(outputs, in.height / step, in.width / step);
    out.each([&](int c, int64_t y, int64_t x) {
        double sum = layer.biases[c];
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < side; j++) {
                for (int k = 0; k < inputs; k++) {
                    sum += layer.weights[((i * side + j) * inputs + k) * outputs + c] *
                           in.read(k, y * step + i - before, x * step + j - before);
                }
            }
        }
        return sum;
    });
    return out;
}

inline Features run_blocks(const Convolution **next, int count, Features features) {
    for (int block = 0; block < count; block++) {
        const Features inner = convolve(*(*next)++, features);
        inner.rectify();
        features.add(convolve(*(*next)++, inner));
    }
    return features;
}

// The first layer and the way down; returns what the lowest level ends with, and leaves in `ends`
// what the others do.
inline Features run_way_down(const LevelSizes &sizes, const Convolution **next, const Features &in,
                             Features *ends) {
    Features features = convolve(*(*next)++, in);
    for (int level = 0; level < sizes.levels; level++) {
        if (level > 0) {
            ends[level - 1] = static_cast<Features &&>(features);
            features = convolve(*(*next)++, ends[level - 1]);
        }
        features = run_blocks(next, sizes.down[level], static_cast<Features &&>(features));
    }
    return features;
}

// Writes a parameter block; without memory it only counts its bytes.
template <typename T>
struct Writer {
    unsigned char *block;
    size_t at;

    void put(const void *bytes, size_t count) {
        if (block != nullptr) memcpy(block + at, bytes, count);
        at += count;
    }
    void put_array(const double *values, int64_t count) {
        for (int64_t i = 0; i < count; i++) {
            const T value = T(values[i]);
            put(&value, sizeof(T));
        }
        at = (at + 7) / 8 * 8;
    }
    void put_layers(const Layers &layers) {
        for (int number = 0; number < layers.count; number++) {
            const Convolution &layer = layers.layers[number];
            put_array(layer.weights, layer.weight_count());
            put_array(layer.biases, layer.bias_count());
        }
    }
};

// The block that `put(writer, bytes)` writes.
template <typename T, typename Put>
unsigned char *write_block(size_t *bytes, const Put &put) {
    Writer<T> counted = {nullptr, 0};
    put(counted, uint64_t(0));
    *bytes = counted.at;
    Writer<T> writer = {static_cast<unsigned char *>(calloc(*bytes, 1)), 0};
    put(writer, uint64_t(*bytes));
    return writer.block;
}

}  // namespace plain
