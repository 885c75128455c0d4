// The kernel of the refinement's layers, beside its definition.
#include "check.h"

namespace check {
namespace {

// Memory that ends with its last element, wherever it begins.
template <typename T>
struct Exact {
    T *data;

    explicit Exact(int64_t count) : data(static_cast<T *>(malloc(size_t(count) * sizeof(T)))) {}
    Exact(int64_t count, Random &random) : Exact(count) {
        for (int64_t i = 0; i < count; i++) data[i] = T(2 * random.uniform() - 1);
    }
    ~Exact() { free(data); }
    Exact(const Exact &) = delete;
    Exact &operator=(const Exact &) = delete;
};

// One result, and the sum of the sizes of all that was added up.
template <typename T>
double value_of(const nlnet::ConvolvedRow<T> &row, int64_t pixel, int output, double *size) {
    double sum = double(row.biases[output]);
    *size = fabs(sum);
    for (int line = 0; line < row.lines; line++) {
        if (row.sources[line] == nullptr) continue;
        for (int k = 0; k < row.inner; k++) {
            const double term = double(row.sources[line][pixel * row.step + k]) *
                                double(row.weights[(line * row.inner + k) * row.outputs + output]);
            sum += term;
            *size += fabs(term);
        }
    }
    if (row.addend != nullptr) sum += double(row.addend[pixel * row.outputs + output]);
    return row.rectified && sum < 0 ? 0 : sum;
}

template <typename T>
void check_row(const nlnet::StageKernels<T> &kernels, Random &random, Report &report) {
    nlnet::ConvolvedRow<T> row = {};
    row.lines = 1 + int(random.below(3));
    row.inner = 1 + int(random.below(100));
    row.step = 1 + int64_t(random.below(uint32_t(row.inner)));
    row.pixels = 1 + int64_t(random.below(40));
    row.outputs = 8 + 8 * int(random.below(13));
    row.rectified = random.below(2) != 0;
    const int64_t inputs = (row.pixels - 1) * row.step + row.inner;
    const int64_t outputs = row.pixels * row.outputs;
    const Exact<T> first(inputs, random), second(inputs, random), third(inputs, random);
    const Exact<T> weights(int64_t(row.lines) * row.inner * row.outputs, random);
    const Exact<T> biases(row.outputs, random), addend(outputs, random), target(outputs);
    const T *const sources[3] = {first.data, second.data, third.data};
    for (int line = 0; line < row.lines; line++) {
        if (random.below(4)) row.sources[line] = sources[line];
    }
    if (random.below(2)) row.addend = addend.data;
    row.weights = weights.data;
    row.biases = biases.data;
    row.target = target.data;
    kernels.convolve(row);
    double apart = 0;  // of the sum of all sizes
    for (int64_t pixel = 0; pixel < row.pixels; pixel++) {
        for (int output = 0; output < row.outputs; output++) {
            double size = 0;
            const double wanted = value_of(row, pixel, output, &size);
            const double got = double(target.data[pixel * row.outputs + output]);
            if (!(fabs(got - wanted) <= apart * (size + 1)))
                apart = fabs(got - wanted) / (size + 1);
        }
    }
    report.expect(apart <= (sizeof(T) == 4 ? 3e-6 : 1e-14),
                  "convolve, %d lines of %d, step %d, %d pixels, %d outputs: %.3g apart", row.lines,
                  row.inner, int(row.step), int(row.pixels), row.outputs, apart);
}

template <typename T>
void time_row(const char *set, const nlnet::StageKernels<T> &kernels) {
    constexpr int channels = 48, pixels = 240, calls = 20;
    Random random = {1};
    const Exact<T> source((pixels + 2) * channels, random), target(pixels * channels);
    const Exact<T> weights(9 * channels * channels, random), biases(channels, random);
    nlnet::ConvolvedRow<T> row = {};
    row.lines = 3;
    row.inner = 3 * channels;
    for (const T *&line : row.sources) line = source.data;
    row.step = row.outputs = channels;
    row.weights = weights.data;
    row.biases = biases.data;
    row.pixels = pixels;
    row.target = target.data;
    const auto run = [&] {
        for (int call = 0; call < calls; call++) kernels.convolve(row);
    };
    const double took = seconds(run, 10) / calls;
    const double products = double(pixels) * 9 * channels * channels;
    printf("%-8s %-20s 3x3 %-7s %8.3f ms per row, %.1f GMAC/s\n", set, "convolve 48 to 48",
           sizeof(T) == 4 ? "float" : "double", took * 1e3, products / took * 1e-9);
}

}  // namespace

void check_convolve(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < 4 * rounds; round++) {
        check_row(*kernels.stage_float, random, report);
        check_row(*kernels.stage_double, random, report);
    }
}

void time_convolve(const nlnet::Kernels &kernels) {
    time_row(kernels.name, *kernels.stage_float);
    time_row(kernels.name, *kernels.stage_double);
}

}  // namespace check
