// The kernels that work on single rows of pixels, beside their definitions.
#include "check.h"

namespace check {
namespace {

// The opponent transform and its inverse.
const double kOpponent[3][3] = {{1.0 / 3, 1.0 / 3, 1.0 / 3}, {0.5, 0, -0.5}, {0.25, -0.5, 0.25}};
const double kRgb[3][3] = {{1, 1, 2.0 / 3}, {1, 0, -4.0 / 3}, {1, -1, 2.0 / 3}};

void multiply(const double (&matrix)[3][3], bool transposed, const double (&in)[3],
              double (&out)[3]) {
    for (int i = 0; i < 3; i++) {
        out[i] = 0;
        for (int j = 0; j < 3; j++) out[i] += (transposed ? matrix[j][i] : matrix[i][j]) * in[j];
    }
}

// Values around the box, all planes of one row.
template <typename T>
struct Planes {
    int channels;
    int64_t width;
    Array<T> values;
    T *rows[3];

    Planes(int count, int64_t size)
        : channels(count), width(size), values(size_t(count * size)), rows() {
        for (int i = 0; i < count; i++) rows[i] = values.data + i * size;
    }
    void fill(Random &random) {
        for (size_t i = 0; i < values.count; i++) values.data[i] = T(400 * random.uniform() - 70);
    }
    void get(int64_t x, double (&pixel)[3]) const {
        for (int i = 0; i < 3; i++) pixel[i] = i < channels ? double(rows[i][x]) : 0;
    }
};

double clip(double value, const nlnet::Box<double> &box) {
    if (!box.limited) return value;
    return value < box.low ? box.low : value > box.high ? box.high : value;
}

template <typename T>
void check_pixels(const nlnet::StageKernels<T> &kernels, Random &random, Report &report) {
    const double tolerance = sizeof(T) == 4 ? 3e-4 : 1e-11;  // of values up to 700
    const int channels = random.between(0, 1) ? 3 : 1;
    const int64_t width = random.between(1, 100), step = random.between(1, 4);
    const nlnet::Box<T> box = {random.between(0, 3) != 0, T(random.between(-20, 20)),
                               T(random.between(200, 300))};
    const nlnet::Box<double> limits = {box.limited, double(box.low), double(box.high)};
    Planes<T> planes(channels, width), projected(channels, width), cotangents(channels, width);
    Planes<T> before(channels, width), pixels(channels, width * step);
    planes.fill(random);
    cotangents.fill(random);
    memcpy(projected.values.data, planes.values.data, planes.values.count * sizeof(T));
    memcpy(before.values.data, cotangents.values.data, before.values.count * sizeof(T));
    memset(pixels.values.data, 0, pixels.values.count * sizeof(T));
    kernels.project(channels, projected.rows, box, width);
    kernels.project_backward(channels, planes.rows, cotangents.rows, box, width);
    kernels.from_working(channels, planes.rows, pixels.rows, step, box, width);
    double apart[3] = {0, 0, 0};
    bool kept_between = true;
    const auto compare = [&](int kernel, double got, double wanted) {
        if (!(fabs(got - wanted) <= apart[kernel])) apart[kernel] = fabs(got - wanted);
    };
    for (int64_t x = 0; x < width; x++) {
        double working[3], rgb[3], cotangent[3], inner[3], back[3], again[3];
        planes.get(x, working);
        before.get(x, cotangent);
        memcpy(rgb, working, sizeof(rgb));
        memcpy(inner, cotangent, sizeof(inner));
        if (channels == 3) {
            multiply(kRgb, false, working, rgb);
            multiply(kOpponent, true, cotangent, inner);
        }
        bool near_edge = false;
        for (int i = 0; i < channels; i++) {
            const double inside = clip(rgb[i], limits);
            if (inside != rgb[i]) inner[i] = 0;
            near_edge |= fabs(rgb[i] - limits.low) < 1e-3 || fabs(rgb[i] - limits.high) < 1e-3;
            compare(0, double(pixels.rows[i][x * step]), inside);
            for (int64_t gap = 1; gap < step; gap++)
                kept_between &= pixels.rows[i][x * step + gap] == 0;
            rgb[i] = inside;
        }
        memcpy(again, rgb, sizeof(again));
        memcpy(back, inner, sizeof(back));
        if (channels == 3) {
            multiply(kOpponent, false, rgb, again);
            multiply(kRgb, true, inner, back);
        }
        for (int i = 0; i < channels; i++) {
            compare(1, double(projected.rows[i][x]), again[i]);
            if (!near_edge) compare(2, double(cotangents.rows[i][x]), back[i]);
        }
    }
    const char *names[3] = {"from_working", "project", "project_backward"};
    for (int i = 0; i < 3; i++)
        report.expect(apart[i] <= tolerance,
                      "%s, channels %d, width %d, step %d, box %d: %.3g apart", names[i], channels,
                      int(width), int(step), int(box.limited), apart[i]);
    report.expect(kept_between, "from_working writes between pixels, step %d", int(step));
}

template <typename T>
void check_steps(const nlnet::StageKernels<T> &kernels, Random &random, Report &report) {
    const int64_t width = random.between(1, 100);
    Planes<T> planes(3, width), sum(1, width);
    planes.fill(random);
    sum.fill(random);
    const T *estimate = planes.rows[0], *noisy = planes.rows[1], *cotangent = planes.rows[2];
    const double step = double(T(random.uniform()));
    Array<double> wanted{size_t(width)};
    double gradient = 0, range = 0, apart = 0;
    for (int64_t x = 0; x < width; x++) {
        wanted[x] =
            (1 - step) * double(estimate[x]) + step * double(noisy[x]) - double(sum.rows[0][x]);
        const double term = double(cotangent[x]) * (double(noisy[x]) - double(estimate[x]));
        gradient += term;
        range += fabs(term);
    }
    kernels.descend(estimate, noisy, T(step), sum.rows[0], width);
    for (int64_t x = 0; x < width; x++)
        if (!(fabs(double(sum.rows[0][x]) - wanted[x]) <= apart))
            apart = fabs(double(sum.rows[0][x]) - wanted[x]);
    report.expect(apart <= (sizeof(T) == 4 ? 3e-4 : 1e-11), "descend, width %d: %.3g apart",
                  int(width), apart);
    const double got = kernels.step_gradient(cotangent, noisy, estimate, width);
    report.expect(fabs(got - gradient) <= 1e-12 * range, "step_gradient, width %d: %.17g, %.17g",
                  int(width), got, gradient);
}

}  // namespace

void check_rows(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        check_pixels(*kernels.stage_float, random, report);
        check_pixels(*kernels.stage_double, random, report);
        check_steps(*kernels.stage_float, random, report);
        check_steps(*kernels.stage_double, random, report);
    }
}

}  // namespace check
