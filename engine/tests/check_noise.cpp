// The kernels of noise estimates beside plain loops, eigenvalues, and whole estimates.
#include "../src/estimates/eigenvalues.h"
#include "../src/estimates/white.h"

#include "check.h"

namespace check {
namespace {

double normal(Random *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += random->uniform();
    return sum;
}

// A plane with noise, and a part of it constant.
struct NoisyPlane {
    int64_t height, width;
    Array<float> values;

    NoisyPlane(int64_t rows, int64_t columns, double sigma, int64_t constant, Random *random)
        : height(rows), width(columns), values(size_t(rows * columns)) {
        for (int64_t i = 0; i < rows * columns; i++) {
            const double shade = 100 + 40 * sin(double(i % columns) / 9);
            values[i] = i % columns < constant ? 5.0f : float(shade + sigma * normal(random));
        }
    }
};

void survey(const nlnet::NoiseKernels &kernels, Random *random, Report &report) {
    const int patch = 3 + 2 * int(random->below(3));
    const int64_t width = patch + random->between(0, 70), count = width - patch + 1;
    const NoisyPlane plane(patch, width, 5, random->between(0, width), random);
    const Array<float> lines(size_t(nlnet::kPatchLines * width));
    const Array<float> results(size_t(4 * count));
    float *means = results.data;
    const nlnet::PatchRow row = {plane.values.data, width, patch,         count,
                                 lines.data,        means, means + count, means + 2 * count,
                                 means + 3 * count};
    kernels.survey(row);
    double apart = 0;
    bool counted = true;
    for (int64_t x = 0; x < count; x++) {
        const auto at = [&](int i, int j) { return double(plane.values[i * width + x + j]); };
        double mean = 0, texture = 0;
        int beside = 0, below = 0;
        for (int i = 0; i < patch; i++) {
            for (int j = 0; j < patch; j++) {
                mean += at(i, j) / (patch * patch);
                if (j + 2 < patch) texture += pow(at(i, j + 2) - at(i, j), 2) / 4;
                if (i + 2 < patch) texture += pow(at(i + 2, j) - at(i, j), 2) / 4;
                beside += j + 1 < patch && at(i, j) != at(i, j + 1);
                below += i + 1 < patch && at(i, j) != at(i + 1, j);
            }
        }
        counted = counted && row.beside[x] == float(beside) && row.below[x] == float(below);
        const double off = fabs(double(row.means[x]) - mean) / 200 +
                           fabs(double(row.textures[x]) - texture) / (1 + texture);
        if (!(off <= apart)) apart = off;
    }
    report.expect(apart < 1e-5, "survey, patch %d, %d patches: %.3g apart", patch, int(count),
                  apart);
    report.expect(counted, "survey, patch %d, %d patches: neighbors", patch, int(count));
}

void add_patches(const nlnet::NoiseKernels &kernels, Random *random, Report &report) {
    const int patch = 3 + 2 * int(random->below(3)), pixels = patch * patch;
    const int side = nlnet::covariance_side(patch);
    const NoisyPlane plane(patch, patch + random->between(0, 70), 5, 0, random);
    const Array<float> scratch(size_t(nlnet::kPatchBatch * side + nlnet::kRoom));
    const Array<float> sums(size_t(side * side));
    for (size_t i = 0; i < sums.count; i++) sums.data[i] = 1;
    nlnet::PatchBatch batch = {};
    batch.patch = patch;
    batch.stride = plane.width;
    batch.count = int(random->between(1, nlnet::kPatchBatch));
    for (int n = 0; n < batch.count; n++) {
        batch.places[n] = plane.values.data + random->between(0, plane.width - patch);
        batch.means[n] = float(100 + random->uniform());
    }
    kernels.add_patches(batch, scratch.data, sums.data);
    double apart = 0;
    for (int i = 0; i < pixels; i++) {
        for (int j = i; j < pixels; j++) {
            double sum = 1;
            for (int n = 0; n < batch.count; n++) {
                const auto at = [&](int pixel) {
                    const int64_t place = pixel / patch * plane.width + pixel % patch;
                    return double(batch.places[n][place]) - double(batch.means[n]);
                };
                sum += at(i) * at(j);
            }
            const double off = fabs(double(sums[i * side + j]) - sum);
            if (!(off <= apart)) apart = off;
        }
    }
    report.expect(apart < 0.05, "add_patches, patch %d, %d patches: %.3g apart", patch, batch.count,
                  apart);
}

// A matrix of known eigenvalues 0, 1, 4, 9 ...: rotated in random planes.
void eigenvalues(Random *random, Report &report) {
    const int size = 2 + int(random->below(48));
    const Array<double> matrix(size_t(size * size));
    for (int i = 0; i < size * size; i++)
        matrix[i] = i / size == i % size ? i % size * (i % size) : 0;
    for (int turn = 0; turn < 3 * size; turn++) {
        const int first = int(random->below(uint32_t(size)));
        const int second = (first + 1 + int(random->below(uint32_t(size - 1)))) % size;
        const double angle = 6 * random->uniform(), c = cos(angle), s = sin(angle);
        for (int across = 0; across < 2; across++) {
            for (int i = 0; i < size; i++) {
                double &a = across ? matrix[i * size + first] : matrix[first * size + i];
                double &b = across ? matrix[i * size + second] : matrix[second * size + i];
                const double turned = c * a + s * b;
                b = c * b - s * a;
                a = turned;
            }
        }
    }
    const nlnet::Tridiagonal reduced = nlnet::tridiagonal(matrix.data, size);
    double apart = 0;
    for (int i = 0; i < size; i++) {
        const double off = fabs(reduced.eigenvalue(i, size * size) - i * i);
        if (!(off <= apart)) apart = off;
    }
    report.expect(apart < 1e-8, "eigenvalues of %d: %.3g apart", size, apart);
}

double estimate(const nlnet::WhiteTask &task, const nlnet::Kernels &kernels) {
    nlnet::Memory counted(nullptr);
    nlnet::make_white(kernels, &task, counted);
    const Array<char> memory(counted.size());
    nlnet::Memory pieces(memory.data);
    return nlnet::white_sigma(nlnet::make_white(kernels, &task, pieces));
}

// Noise is found in any number of planes, wherever constant parts are.
void estimates(const nlnet::Kernels &kernels, Random *random, Report &report) {
    const double sigma = 1 + 30 * random->uniform();
    const int64_t height = random->between(60, 120), width = random->between(120, 200);
    const int64_t count = random->between(1, 3);
    const NoisyPlane planes(count * height, width, sigma, random->between(0, 20), random);
    const nlnet::WhiteTask task = {planes.values.data, count, height, width, -INFINITY, INFINITY};
    const double found = estimate(task, kernels);
    report.expect(fabs(found / sigma - 1) < 0.1, "estimate %g of %g, %d of %dx%d", found, sigma,
                  int(count), int(width), int(height));
}

}  // namespace

void check_noise(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        survey(*kernels.noise, &random, report);
        add_patches(*kernels.noise, &random, report);
        eigenvalues(&random, report);
        if (round % 4 == 0) estimates(kernels, &random, report);
    }
}

void time_noise(const nlnet::Kernels &kernels) {
    Random random = {1};
    const NoisyPlane values(321, 481, 20, 0, &random);
    const nlnet::WhiteTask task = {values.values.data, 1, 321, 481, -INFINITY, INFINITY};
    const double took = seconds([&] { estimate(task, kernels); }, 10);
    printf("%-8s %-20s 481x321     %8.3f ms\n", kernels.name, "white noise", took * 1e3);
}

}  // namespace check
