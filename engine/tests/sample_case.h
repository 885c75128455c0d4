// Random samples of images, of any type and in any order of the axes.
#pragma once

#include "check.h"

namespace samples {

using check::Array;
using check::Random;

inline int compare(const void *left, const void *right) {
    const double a = *static_cast<const double *>(left), b = *static_cast<const double *>(right);
    return a < b ? -1 : a > b;
}

constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 8};  // of each nlnet_type

inline void write(char *to, int type, double value) {
    const auto put = [&](auto number) { memcpy(to, &number, sizeof(number)); };
    switch (type) {
        case NLNET_UINT8: return put(uint8_t(value));
        case NLNET_INT8: return put(int8_t(value - 100));
        case NLNET_UINT16: return put(uint16_t(value * 16));
        case NLNET_INT16: return put(int16_t(value * 16 - 2000));
        case NLNET_UINT32: return put(uint32_t(value * 1e6));
        case NLNET_INT32: return put(int32_t(value * 1e6 - 1e8));
        case NLNET_FLOAT32: return put(float(value));
        default: return put(value * 1e30);
    }
}

inline double read(const char *from, int type) {
    const auto get = [&](auto number) {
        memcpy(&number, from, sizeof(number));
        return double(number);
    };
    switch (type) {
        case NLNET_UINT8: return get(uint8_t());
        case NLNET_INT8: return get(int8_t());
        case NLNET_UINT16: return get(uint16_t());
        case NLNET_INT16: return get(int16_t());
        case NLNET_UINT32: return get(uint32_t());
        case NLNET_INT32: return get(int32_t());
        case NLNET_FLOAT32: return get(float());
        default: return get(double());
    }
}

constexpr int kMostTiles = 12;

// How a picture is made: values from 0 to about 200.
struct Picture {
    double sigma, gain;  // variance: sigma^2 + gain * value
    bool ramp, drawn;

    double at(int64_t y, int64_t x, Random *random) const {
        double value = ramp ? 20 + 150.0 * double(x % 128) / 128 : 90 + 40 * sin(double(x + y) / 9);
        if (drawn) value = x / 9 % 3 * 60.0;
        double noise = -6;
        for (int i = 0; i < 12; i++) noise += random->uniform();
        value += noise * sqrt(sigma * sigma + gain * value);
        return value < 0 ? 0 : value > 220 ? 220 : value;
    }
};

struct Sample {
    nlnet_sample given;
    nlnet_planes tiles[kMostTiles];
    size_t bytes;
    Array<char> memory;

    // Up to 2 pages of 2x3 tiles; less than 3000 values, so that all are sorted.
    explicit Sample(Random *random)
        : Sample(random, int(random->below(8)), random->below(2) ? 3 : 1, random->between(1, 2),
                 random->below(2) ? 1 : 2, random->below(2) ? 1 : 3, random->between(1, 9),
                 random->between(1, 9), {10, 0, false, random->below(3) == 0}) {}

    Sample(Random *random, int type, int channels, int64_t pages, int64_t rows, int64_t columns,
           int64_t height, int64_t width, const Picture &picture)
        : given(),
          bytes(size_t(kBytes[type])),
          memory(bytes * size_t(pages * rows * columns) * size_t(channels * height * width)) {
        given.type = type;
        given.channels = channels;
        given.pages = pages;
        given.grid = {rows, columns, height, width};
        given.tiles = tiles;
        const ptrdiff_t size = ptrdiff_t(bytes), pixels = ptrdiff_t(height * width);
        for (int64_t i = 0; i < count(); i++) {
            char *first = memory.data + i * channels * pixels * size;
            const bool interleaved = random->below(2), mirrored = random->below(2);
            nlnet_planes &tile = tiles[i];
            tile = {first, channels, height, width, pixels * size, ptrdiff_t(width) * size, size};
            if (interleaved) {
                tile.channel_stride = size;
                tile.row_stride = ptrdiff_t(width) * channels * size;
                tile.column_stride = channels * size;
            }
            if (mirrored) {
                tile.data = first + (width - 1) * tile.column_stride;
                tile.column_stride = -tile.column_stride;
            }
            each(i, [&](char *at, int64_t y, int64_t x) {
                write(at, type, picture.at(y, i % columns * width + x, random));
            });
        }
        given.extremes.count = 0;
        for (int64_t i = 0; i < count(); i++) {
            nlnet_find_extremes(tiles + i, nlnet_type(type), &given.extremes);
        }
    }
    Sample(const Sample &) = delete;
    Sample &operator=(const Sample &) = delete;

    int64_t count() const { return given.pages * given.grid.rows * given.grid.columns; }

    template <typename Visit>
    void each(int64_t number, const Visit &visit) const {
        const nlnet_planes &tile = tiles[number];
        char *first = static_cast<char *>(const_cast<void *>(tile.data));
        for (int64_t c = 0; c < tile.channels; c++) {
            for (int64_t y = 0; y < tile.height; y++) {
                for (int64_t x = 0; x < tile.width; x++) {
                    visit(first + c * tile.channel_stride + y * tile.row_stride +
                              x * tile.column_stride,
                          y, x);
                }
            }
        }
    }

    nlnet_measures measures() const {
        size_t size = 0;
        nlnet_measures measures = {};
        nlnet_measure_sample(&given, nullptr, &size, nullptr);
        const Array<char> scratch(size);
        nlnet_measure_sample(&given, scratch.data, &size, &measures);
        return measures;
    }
};

// All values of a sample.
struct Values {
    Array<double> values;

    explicit Values(const Sample &sample) : values(sample.memory.count / sample.bytes) {
        double *next = values.data;
        for (int64_t i = 0; i < sample.count(); i++) {
            sample.each(i, [&](const char *at, int64_t, int64_t) {
                *next++ = read(at, sample.given.type);
            });
        }
    }
};

}  // namespace samples
