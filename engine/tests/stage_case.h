// A random stage on a random image, the kernels run on it tile by tile, and what they must give.
#pragma once

#include "check.h"

namespace check {

// Sums that a stage's kernels add up.
template <typename T>
struct Sums {
    Array<T> image, filters, weights, cubics;

    Sums(const nlnet::Shape &shape, int64_t size)
        : image(size_t(size * shape.channels)),
          filters(size_t(shape.filters()) * size_t(shape.pixels())),
          weights(size_t(shape.group)),
          cubics(size_t(shape.channels) * size_t(shape.filters()) * size_t(shape.intervals) * 4) {
        clear();
    }
    // From the gradient of the cubics to that of the values and slopes at the nodes: a feature at a
    // node may be counted to the interval on either side, which makes no difference to the nodes.
    void cubics_to_nodes(int intervals) {
        double carried[2] = {0, 0};
        for (size_t at = 0; at < cubics.count; at += 4) {
            T *c = &cubics.data[at];
            const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
            if (at / 4 % size_t(intervals) == 0) carried[0] = carried[1] = 0;
            c[0] = T(carried[0] + c0 - 3 * c2 + 2 * c3);
            c[1] = T(carried[1] + c1 - 2 * c2 + c3);
            carried[0] = 3 * c2 - 2 * c3;
            carried[1] = c3 - c2;
            c[2] = T(carried[0]);  // the last node's, in the last interval
            c[3] = T(carried[1]);
            if (at / 4 % size_t(intervals) + 1 < size_t(intervals)) c[2] = c[3] = 0;
        }
    }
    void clear() {
        const Array<T> *arrays[] = {&image, &filters, &weights, &cubics};
        for (const Array<T> *array : arrays) memset(array->data, 0, array->count * sizeof(T));
    }
};

// Values of a random stage, an image x and a cotangent e, with the room that kernels ask for.
template <typename T>
struct StageCase {
    nlnet::Shape shape;
    int64_t height, width;
    int tile_rows;
    Array<T> filters, transposed, weights, cubics, estimate, cotangent;
    Array<int8_t> groups;
    T origin, scale;

    StageCase(const nlnet::Shape &sizes, int64_t h, int64_t w, int rows)
        : shape(sizes),
          height(h),
          width(w),
          tile_rows(rows),
          filters(with_room(int64_t(sizes.filters()) * sizes.pixels())),
          transposed(with_room(int64_t(sizes.filters()) * sizes.pixels())),
          weights(with_room(sizes.group)),
          cubics(with_room(int64_t(sizes.channels) * sizes.filters() * sizes.intervals * 4)),
          estimate(size_t(sizes.channels * h * w)),
          cotangent(size_t(sizes.channels * h * w)),
          groups(size_t(h * w * sizes.group * 2)) {}

    static size_t with_room(int64_t elements) { return size_t(elements + nlnet::kRoom); }
    int64_t size() const { return height * width; }
    int64_t table(int channel) const {
        return int64_t(channel) * shape.filters() * shape.intervals * 4;
    }
    nlnet::Stage<T> stage() const {
        return {filters.data, transposed.data, weights.data, cubics.data, origin, scale, T(0.1)};
    }
    void transpose() {
        for (int i = 0; i < shape.filters(); i++)
            for (int j = 0; j < shape.pixels(); j++)
                transposed[int64_t(j) * shape.filters() + i] =
                    filters[int64_t(i) * shape.pixels() + j];
    }
};

// Cubics through the values and slopes of sines, continuous up to the slope as psi's tables are; or
// those of psi(s) = s. Of the sines' arguments some lie beyond the table's range.
template <typename T>
void fill(StageCase<T> &c, Random &random, bool identity) {
    const nlnet::Shape &shape = c.shape;
    const int intervals = shape.intervals;
    const double range = identity ? 2000 : 60, step = 2 * range / intervals;
    c.origin = T(range / step);
    c.scale = T(1 / step);
    for (int64_t i = 0; i < int64_t(shape.filters()) * shape.pixels(); i++)
        c.filters[i] = T((random.uniform() - 0.5) * 2 / shape.patch);
    c.transpose();
    for (int k = 0; k < shape.group; k++) c.weights[k] = T((random.uniform() - 0.3) / shape.group);
    for (int row = 0; row < shape.channels * shape.filters(); row++) {
        T *cubic = &c.cubics[int64_t(row) * intervals * 4];
        const double rate = 0.1 * random.uniform(), phase = 6 * random.uniform();
        const auto value = [&](double at) { return identity ? at : sin(rate * at + phase); };
        const auto slope = [&](double at) {
            return step * (identity ? 1 : rate * cos(rate * at + phase));
        };
        for (int i = 0; i < intervals; i++, cubic += 4) {
            const double left = step * i - range, right = left + step;
            const double rise = value(right) - value(left);
            cubic[0] = T(value(left));
            cubic[1] = T(slope(left));
            cubic[2] = T(3 * rise - 2 * slope(left) - slope(right));
            cubic[3] = T(slope(left) + slope(right) - 2 * rise);
        }
    }
    for (int64_t i = 0; i < c.size() * shape.channels; i++) {
        c.estimate[i] = T(255 * random.uniform());
        c.cotangent[i] = T(random.uniform() - 0.5);
    }
    for (int64_t y = 0; y < c.height; y++) {
        for (int64_t x = 0; x < c.width; x++) {
            for (int k = 0; k < shape.group; k++) {
                int8_t *member = &c.groups[((y * c.width + x) * shape.group + k) * 2];
                const int reach = shape.reach();
                const auto low = [&](int64_t at) { return at < reach ? -at : int64_t(-reach); };
                const auto high = [&](int64_t at, int64_t n) {
                    return n - 1 - at < reach ? n - 1 - at : int64_t(reach);
                };
                member[0] = int8_t(k ? random.between(low(y), high(y, c.height)) : 0);
                member[1] = int8_t(k ? random.between(low(x), high(x, c.width)) : 0);
            }
        }
    }
}

inline int64_t mirrored(int64_t at, int64_t size) {
    return at < 0 ? -1 - at : at < size ? at : 2 * size - 1 - at;
}

// What the kernels must give, by plain loops in double precision: with `backward`, the gradients of
// the scalar product of e and sum_r L_r^T psi(L_r x); without, that sum.
template <typename T>
void plain(const StageCase<T> &c, bool backward, Sums<double> &sums) {
    const nlnet::Shape &shape = c.shape;
    const int pixels = shape.pixels(), filters = shape.filters(), radius = shape.radius();
    Array<double> terms(size_t(pixels * 4 + filters * 2));
    double *patch = &terms[0], *error_patch = patch + pixels, *back = error_patch + pixels;
    double *error_back = back + pixels, *values = error_back + pixels, *slopes = values + filters;
    for (int channel = 0; channel < shape.channels; channel++) {
        const T *image = &c.estimate[channel * c.size()], *error = &c.cotangent[channel * c.size()];
        double *result = &sums.image[channel * c.size()];
        for (int64_t r = 0; r < c.size(); r++) {
            // Where pixel j of member k is in the image.
            const auto place = [&](int k, int j) {
                const int8_t *member = &c.groups[(r * shape.group + k) * 2];
                const int64_t y = r / c.width + member[0] + j / shape.patch - radius;
                const int64_t x = r % c.width + member[1] + j % shape.patch - radius;
                return mirrored(y, c.height) * c.width + mirrored(x, c.width);
            };
            for (int j = 0; j < pixels; j++) {
                patch[j] = error_patch[j] = back[j] = error_back[j] = 0;
                for (int k = 0; k < shape.group; k++) {
                    patch[j] += double(c.weights[k]) * double(image[place(k, j)]);
                    error_patch[j] += double(c.weights[k]) * double(error[place(k, j)]);
                }
            }
            for (int i = 0; i < filters; i++) {
                const T *filter = &c.filters[int64_t(i) * pixels];
                double s = 0, d = 0;
                for (int j = 0; j < pixels; j++) {
                    s += double(filter[j]) * patch[j];
                    d += double(filter[j]) * error_patch[j];
                }
                const double position = s * double(c.scale) + double(c.origin);
                const double inside = position < 0                 ? 0
                                      : position > shape.intervals ? shape.intervals
                                                                   : position;
                const int interval =
                    int(inside) < shape.intervals ? int(inside) : shape.intervals - 1;
                const double t = inside - interval;
                const int64_t at = c.table(channel) + (int64_t(i) * shape.intervals + interval) * 4;
                const T *cubic = &c.cubics[at];
                values[i] = cubic[0] + t * (cubic[1] + t * (cubic[2] + t * double(cubic[3])));
                slopes[i] =
                    inside == position
                        ? d * double(c.scale) *
                              (cubic[1] + t * (2 * double(cubic[2]) + t * 3 * double(cubic[3])))
                        : 0;
                double power = d;
                for (int n = 0; n < 4; n++, power *= t) sums.cubics[at + n] += power;
                for (int j = 0; j < pixels; j++) {
                    back[j] += double(filter[j]) * values[i];
                    error_back[j] += double(filter[j]) * slopes[i];
                    sums.filters[int64_t(i) * pixels + j] +=
                        values[i] * error_patch[j] + slopes[i] * patch[j];
                }
            }
            for (int k = 0; k < shape.group; k++) {
                for (int j = 0; j < pixels; j++) {
                    const int64_t at = place(k, j);
                    result[at] += double(c.weights[k]) * (backward ? error_back[j] : back[j]);
                    sums.weights[k] +=
                        back[j] * double(error[at]) + error_back[j] * double(image[at]);
                }
            }
        }
    }
}

// The same by the kernels, from the top down: image and parts are ring buffers that hold no more
// than needed, with NaN wherever there is nothing.
template <typename T>
void run(const nlnet::StageKernels<T> &kernels, const StageCase<T> &c, bool backward,
         Sums<T> &sums) {
    const nlnet::Shape &shape = c.shape;
    const int margin = shape.margin();
    const int64_t window = nlnet::window_size(shape, c.tile_rows);
    const int64_t tiles = (c.width + nlnet::kTileColumns - 1) / nlnet::kTileColumns;
    const int64_t tile_rows = (c.height + c.tile_rows - 1) / c.tile_rows;
    const int64_t capacity = c.tile_rows + 2 * margin, part_rows = 2 * margin / c.tile_rows + 3;
    Array<T> ring(size_t(capacity * c.width)), errors(size_t(capacity * c.width));
    Array<T> parts(size_t(part_rows * tiles * window));
    Array<T> line(size_t(c.width + 2 * shape.radius()));
    Array<char> scratch(backward ? kernels.differentiate_scratch(shape, c.tile_rows)
                                 : kernels.spread_scratch(shape, c.tile_rows));
    const nlnet::Stage<T> stage = c.stage();
    for (int channel = 0; channel < shape.channels; channel++) {
        const nlnet::StageSums<T> gradients = {sums.filters.data, sums.weights.data,
                                               &sums.cubics[c.table(channel)]};
        const Array<T> *arrays[] = {&ring, &errors, &parts};
        for (const Array<T> *array : arrays) memset(array->data, 0xFF, array->count * sizeof(T));
        int64_t read = 0, folded = 0;
        for (int64_t row = 0; row < tile_rows; row++) {
            const int64_t top = row * c.tile_rows;
            const int rows = int(c.height - top < c.tile_rows ? c.height - top : c.tile_rows);
            for (; read < top + rows + margin && read < c.height; read++) {
                const int64_t from = channel * c.size() + read * c.width;
                const int64_t to = read % capacity * c.width;
                memcpy(&ring[to], &c.estimate[from], size_t(c.width) * sizeof(T));
                memcpy(&errors[to], &c.cotangent[from], size_t(c.width) * sizeof(T));
            }
            for (int64_t column = 0; column < tiles; column++) {
                const int64_t left = column * nlnet::kTileColumns, rest = c.width - left;
                const nlnet::StageTile<T> tile = {
                    {ring.data, c.width, capacity},
                    c.height,
                    c.width,
                    top,
                    left,
                    rows,
                    int(rest < nlnet::kTileColumns ? rest : nlnet::kTileColumns),
                    &c.groups[top * c.width * shape.group * 2],
                    &parts[(row % part_rows * tiles + column) * window]};
                if (backward)
                    kernels.differentiate(shape, stage, channel, tile,
                                          {errors.data, c.width, capacity}, gradients,
                                          scratch.data);
                else
                    kernels.spread(shape, stage, channel, tile, scratch.data);
            }
            const bool last = row + 1 == tile_rows;
            const nlnet::Parts<T> held = {parts.data, int(part_rows), c.tile_rows,
                                          row < part_rows ? 0 : row + 1 - part_rows, row + 1};
            for (; folded < (last ? c.height : top + c.tile_rows - margin); folded++)
                kernels.fold(shape, held, c.height, c.width, folded, line.data,
                             &sums.image[channel * c.size() + folded * c.width]);
        }
    }
}

}  // namespace check
