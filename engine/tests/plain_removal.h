// Removal in plain loops and double precision, written from its description. In place of networks
// stands a function that any code can compute.
#pragma once

#include "plain.h"

namespace plain {

// Noise over the brightness evened out, and the way back.
struct Level {
    nlnet_level given;

    double start() const {
        const double floor = 0.375 * given.gain * given.gain + given.offset;
        return 2 / given.gain * sqrt(floor > 0 ? floor : 0);
    }
    double forward(double x) const {
        if (given.points != nullptr) return integral(x);
        const double square = given.gain * x + 0.375 * given.gain * given.gain + given.offset;
        return 2 / given.gain * sqrt(square > 0 ? square : 0) - start();
    }
    // The closed form of the exact unbiased inverse; or by bisection.
    double back(double v) const {
        if (given.points != nullptr) {
            double low = -1e4, high = 1e4;
            for (int i = 0; i < 80; i++) {
                const double middle = (low + high) / 2;
                (integral(middle) < v ? low : high) = middle;
            }
            return low;
        }
        const double least = 2 * sqrt(0.375), seen = v + start(), d = seen < least ? least : seen;
        const double counts = d * d / 4 + sqrt(1.5) / 4 / d - 11.0 / 8 / (d * d) +
                              5.0 / 8 * sqrt(1.5) / (d * d * d) - 1.0 / 8;
        const double dark = -given.offset / given.gain, light = given.gain * counts + dark;
        return (light < dark ? dark : light) + (seen - d) * given.gain * least / 2;
    }

  private:
    // Of 1 / sigma, which is linear between the points.
    double integral(double x) const {
        const double *p = given.points;
        if (x < p[0]) return (x - p[0]) / p[1];
        double sum = 0;
        for (int64_t i = 0; i + 1 < given.count; i++, p += 2) {
            const double end = x < p[2] ? x : p[2], slope = (p[3] - p[1]) / (p[2] - p[0]);
            const double there = p[1] + slope * (end - p[0]);
            sum += fabs(slope) < 1e-9 ? (end - p[0]) / p[1] : log(there / p[1]) / slope;
            if (end < p[2]) return sum;
        }
        return sum + (x - p[0]) / p[1];
    }
};

// Planes of doubles, (C, H, W), or a coarse map.
struct Planes {
    int channels;
    int64_t height, width;
    check::Array<double> values;

    Planes(int count, int64_t rows, int64_t columns)
        : channels(count), height(rows), width(columns), values(size_t(count * rows * columns)) {}
    double &at(int c, int64_t y, int64_t x) const { return values[(c * height + y) * width + x]; }
    // Between four pixels; the border is repeated.
    double between(int c, double y, double x) const {
        const int64_t row = int64_t(floor(y)), column = int64_t(floor(x));
        double sum = 0;
        for (int i = 0; i < 4; i++) {
            const double down = i / 2 ? y - double(row) : 1 - (y - double(row));
            const double right = i % 2 ? x - double(column) : 1 - (x - double(column));
            sum += down * right * at(c, inside(row + i / 2, height), inside(column + i % 2, width));
        }
        return sum;
    }
    static int64_t inside(int64_t place, int64_t size) {
        return place < 0 ? 0 : place < size ? place : size - 1;
    }
};

struct Removal {
    const nlnet_removal_task &task;
    int scales;
    double network_sigma;

    // What stands for a network, in its units.
    template <typename T>
    static T stand_in(T here, T right) {
        return T(0.6) * here + T(0.4) * right;
    }

    double strength(int plane, int scale, int64_t cell) const {
        const double more = plane == 0 ? task.luma : task.chroma, factor = more > 1 ? more : 1;
        const nlnet_noise &noise = task.noise;
        if (noise.kind == NLNET_WHITE) return noise.sigma * factor;
        if (noise.kind == NLNET_DEPENDENT) return factor;
        return factor *
               double(noise.strengths[(plane * NLNET_SCALES + scale) * noise.rows * noise.columns +
                                      cell]);
    }

    // (C, H, W) planes without the noise of this scale and of smaller ones.
    void remove(const Planes &image, int scale, const Planes &result) const {
        const int channels = image.channels, maps = channels == 1 ? 1 : 2;
        const int64_t height = image.height, width = image.width;
        const Planes noisy(channels, height, width), seen(channels, height, width);
        memcpy(noisy.values.data, image.values.data, image.values.count * sizeof(double));
        if (scale + 1 < scales) add_change(image, scale, noisy);
        const bool camera = task.noise.kind == NLNET_CAMERA;
        const int64_t rows = camera ? task.noise.rows : 1,
                      columns = camera ? task.noise.columns : 1;
        double typical[2] = {0, 0};
        for (int m = 0; m < maps; m++) {
            for (int64_t i = 0; i < rows * columns; i++)
                typical[m] += pow(strength(m, scale, i), 2) / double(rows * columns);
        }
        const double luma = sqrt(typical[0]), chroma = sqrt(typical[1]) / 2;
        const double reference = luma > chroma ? luma : chroma;
        Planes gains(2, rows, columns), shares(2, rows, columns);
        for (int m = 0; m < maps; m++) {
            for (int64_t i = 0; i < rows * columns; i++) {
                const double least = reference * (m == 0 ? 0.35 : 0.25);
                const double here = strength(m, scale, i), counted = here < least ? least : here;
                gains.values[m * rows * columns + i] = reference / counted;
                shares.values[m * rows * columns + i] = here / counted;
            }
        }
        const auto of_map = [&](const Planes &map, int c, int64_t y, int64_t x) {
            return map.between(c == 0 ? 0 : 1,
                               (double(y) + 0.5) * double(rows) / double(height) - 0.5,
                               (double(x) + 0.5) * double(columns) / double(width) - 0.5);
        };
        const double center = task.black + task.span / 2, factor = network_sigma / reference;
        const auto opponent = [&](const Planes &planes, int64_t y, int64_t x, double *c) {
            for (int i = 0; i < channels; i++) c[i] = planes.at(i, y, x) - center;
            if (channels == 3) to_opponent(c);
        };
        for (int64_t y = 0; y < height; y++) {
            for (int64_t x = 0; x < width; x++) {
                for (int c = 0; c < channels; c++) {
                    if (levels() != nullptr)
                        noisy.at(c, y, x) = level(c).forward(noisy.at(c, y, x));
                }
                double colors[3];
                opponent(noisy, y, x, colors);
                for (int c = 0; c < channels; c++) colors[c] *= of_map(gains, c, y, x);
                if (channels == 3) to_rgb(colors);
                for (int c = 0; c < channels; c++) seen.at(c, y, x) = (colors[c] + center) * factor;
            }
        }
        for (int64_t y = 0; y < height; y++) {
            for (int64_t x = 0; x < width; x++) {
                double colors[3], before[3];
                for (int c = 0; c < channels; c++) {
                    const int64_t right = x + 1 < width ? x + 1 : x;
                    result.at(c, y, x) = stand_in(seen.at(c, y, x), seen.at(c, y, right)) / factor;
                }
                opponent(result, y, x, colors);
                opponent(noisy, y, x, before);
                for (int c = 0; c < channels; c++) {
                    const double back = colors[c] / of_map(gains, c, y, x);
                    colors[c] = before[c] + (back - before[c]) * of_map(shares, c, y, x);
                }
                if (channels == 3) to_rgb(colors);
                for (int c = 0; c < channels; c++) {
                    double &here = result.at(c, y, x);
                    here = colors[c] + center;
                    if (levels() != nullptr) here = level(c).back(here);
                    if (scale == 0 && task.low <= task.high) {
                        here = here < task.low ? task.low : here > task.high ? task.high : here;
                    }
                }
                if (scale == 0) blend(image, y, x, result);
            }
        }
    }

  private:
    const nlnet_level *levels() const {
        return task.noise.kind == NLNET_DEPENDENT ? task.noise.levels : nullptr;
    }
    Level level(int channel) const { return {levels()[task.noise.level_count == 1 ? 0 : channel]}; }

    void add_change(const Planes &image, int scale, const Planes &noisy) const {
        const int channels = image.channels;
        const Planes half(channels, image.height / 2, image.width / 2);
        const Planes changed(channels, half.height, half.width);
        for (int c = 0; c < channels; c++) {
            for (int64_t y = 0; y < half.height; y++) {
                for (int64_t x = 0; x < half.width; x++) {
                    half.at(c, y, x) = 0;
                    for (int i = 0; i < 4; i++)
                        half.at(c, y, x) += image.at(c, 2 * y + i / 2, 2 * x + i % 2) / 4;
                }
            }
        }
        remove(half, scale + 1, changed);
        for (size_t i = 0; i < half.values.count; i++)
            changed.values.data[i] -= half.values.data[i];
        for (int c = 0; c < channels; c++) {
            for (int64_t y = 0; y < image.height; y++) {
                for (int64_t x = 0; x < image.width; x++) {
                    noisy.at(c, y, x) +=
                        changed.between(c, (double(y) - 0.5) / 2, (double(x) - 0.5) / 2);
                }
            }
        }
    }

    void blend(const Planes &image, int64_t y, int64_t x, const Planes &result) const {
        const bool camera = task.noise.kind == NLNET_CAMERA;
        const double sure = camera && task.noise.certainty < 0.9 ? task.noise.certainty / 0.9 : 1;
        double change[3];
        for (int c = 0; c < image.channels; c++) change[c] = result.at(c, y, x) - image.at(c, y, x);
        if (image.channels == 3) to_opponent(change);
        for (int c = 0; c < image.channels; c++)
            change[c] *= sure * fmin(c == 0 ? task.luma : task.chroma, 1.0);
        if (image.channels == 3) to_rgb(change);
        for (int c = 0; c < image.channels; c++) result.at(c, y, x) = image.at(c, y, x) + change[c];
    }
};

}  // namespace plain
