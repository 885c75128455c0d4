// The kernels of a stage beside plain loops, for random sizes, edges, tiles and ring buffers.
#include "stage_case.h"

namespace check {
namespace {

template <typename T>
double difference(const Array<T> &got, const Array<double> &wanted) {
    double largest = 0, range = 1e-300;
    for (size_t i = 0; i < wanted.count; i++) {
        const double apart = fabs(double(got.data[i]) - wanted.data[i]);
        if (!(apart <= largest)) largest = apart;  // NaN, too
        if (fabs(wanted.data[i]) > range) range = fabs(wanted.data[i]);
    }
    return largest / range;
}

double product(const Array<double> &left, const Array<double> &right) {
    double total = 0;
    for (size_t i = 0; i < left.count; i++) total += left.data[i] * right.data[i];
    return total;
}

// Sizes that the kernels are specialised for every other time.
nlnet::Shape random_shape(Random &random) {
    nlnet::Shape shape = {};
    const bool special = random.between(0, 1);
    shape.channels = random.between(0, 3) ? 1 : 3;
    shape.stages = 1;
    shape.patch = int(special ? random.between(2, 3) : random.between(1, 6)) * 2 + 1;
    shape.window = int(random.between(1, random.between(0, 1) ? 4 : 15)) * 2 + 1;
    const int most = shape.window * shape.window;
    shape.group = special ? 8 : int(random.between(1, most < 12 ? most : 12));
    shape.rbf_count = 63;
    shape.intervals = int(random.between(1, 300));
    return shape;
}

template <typename T>
void check_case(const nlnet::StageKernels<T> &kernels, Random &random, Report &report) {
    const nlnet::Shape shape = random_shape(random);
    const int most = shape.patch > 7 ? 8 : random.between(0, 3) ? 20 : 140;
    const int64_t height = shape.patch + random.between(0, most > 100 ? 20 : most);
    const int64_t width = shape.patch + random.between(0, most);
    StageCase<T> c(shape, height, width, int(8 + random.between(0, 30)));
    fill(c, random, false);
    for (int pass = 0; pass < 2; pass++) {
        const bool backward = pass == 1;
        // Gradients are sums over all pixels, of terms of both signs.
        const double tolerance = sizeof(T) == 8 ? 1e-11 : backward ? 1e-4 : 1e-5;
        Sums<T> got(shape, c.size());
        Sums<double> wanted(shape, c.size());
        run(kernels, c, backward, got);
        plain(c, backward, wanted);
        got.cubics_to_nodes(shape.intervals);
        wanted.cubics_to_nodes(shape.intervals);
        const struct {
            const char *name;
            double apart;
        } results[] = {{"image", difference(got.image, wanted.image)},
                       {"filters", difference(got.filters, wanted.filters)},
                       {"weights", difference(got.weights, wanted.weights)},
                       {"cubics", difference(got.cubics, wanted.cubics)}};
        for (int i = 0; i < (backward ? 4 : 1); i++)
            report.expect(results[i].apart <= tolerance,
                          "%s of %s, patch %d, group %d, window %d, channels %d, %d x %d, tiles of "
                          "%d rows, %d bytes: %.3g apart",
                          results[i].name, backward ? "differentiate" : "spread", shape.patch,
                          shape.group, shape.window, shape.channels, int(height), int(width),
                          c.tile_rows, int(sizeof(T)), results[i].apart);
    }
}

// With psi(s) = s a stage's sum is L^T L x: the scalar product with e is that of L e and L x, so
// <L^T L x, e> = <x, L^T L e>.
void check_adjoint(const nlnet::StageKernels<double> &kernels, Random &random, Report &report) {
    const nlnet::Shape shape = random_shape(random);
    StageCase<double> c(shape, shape.patch + random.between(0, 30),
                        shape.patch + random.between(0, 90), 16);
    fill(c, random, true);
    Sums<double> forward(shape, c.size()), swapped(shape, c.size());
    run(kernels, c, false, forward);
    const double left = product(forward.image, c.cotangent);
    for (size_t i = 0; i < c.estimate.count; i++) {
        const double keep = c.estimate.data[i];
        c.estimate.data[i] = c.cotangent.data[i];
        c.cotangent.data[i] = keep;
    }
    run(kernels, c, false, swapped);
    const double right = product(swapped.image, c.cotangent);
    const double scale =
        sqrt(product(forward.image, forward.image) * product(c.estimate, c.estimate));
    report.expect(fabs(left - right) <= 1e-10 * scale, "adjoint, patch %d, group %d: %.17g, %.17g",
                  shape.patch, shape.group, left, right);
}

// Move an array along a random direction, there and back, and compare the change of <e, sum> with
// the gradient.
void check_gradient(const nlnet::StageKernels<double> &kernels, StageCase<double> &c,
                    const char *name, Array<double> &moved, const Array<double> &gradient,
                    Random &random, Report &report) {
    const double size = 1e-7;
    Array<double> direction(gradient.count), kept(gradient.count);
    double expected = 0, range = 0, losses[2];
    for (size_t i = 0; i < gradient.count; i++) {
        direction.data[i] = random.uniform() - 0.5;
        kept.data[i] = moved.data[i];
        expected += direction.data[i] * gradient.data[i];
        range += fabs(direction.data[i] * gradient.data[i]);
    }
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < gradient.count; i++)
            moved.data[i] = kept.data[i] + (side ? size : -size) * direction.data[i];
        c.transpose();
        Sums<double> sums(c.shape, c.size());
        run(kernels, c, false, sums);
        losses[side] = product(c.cotangent, sums.image);
    }
    memcpy(moved.data, kept.data, kept.count * sizeof(double));
    c.transpose();
    const double measured = (losses[1] - losses[0]) / (2 * size);
    report.expect(fabs(measured - expected) <= 1e-5 * range,
                  "gradient of %s, patch %d, group %d: %.9g, by differences %.9g", name,
                  c.shape.patch, c.shape.group, expected, measured);
}

void check_gradients(const nlnet::StageKernels<double> &kernels, Random &random, Report &report) {
    nlnet::Shape shape = random_shape(random);
    if (shape.patch > 7) shape.patch = 7;
    StageCase<double> c(shape, shape.patch + random.between(0, 12),
                        shape.patch + random.between(0, 12), 8);
    fill(c, random, false);
    Sums<double> sums(shape, c.size());
    run(kernels, c, true, sums);
    check_gradient(kernels, c, "image", c.estimate, sums.image, random, report);
    check_gradient(kernels, c, "filters", c.filters, sums.filters, random, report);
    check_gradient(kernels, c, "weights", c.weights, sums.weights, random, report);
    check_gradient(kernels, c, "cubics", c.cubics, sums.cubics, random, report);
}

template <typename T>
void time_case(const char *set, const nlnet::StageKernels<T> &kernels, int patch) {
    const nlnet::Shape shape = {1, 1, patch, 8, 31, 63, 310};
    StageCase<T> c(shape, 128, 256, 64);
    Random random = {1};
    fill(c, random, false);
    Sums<T> sums(shape, c.size());
    for (int pass = 0; pass < 2; pass++) {
        const bool backward = pass == 1;
        const double took = seconds([&] { run(kernels, c, backward, sums); }, 10);
        printf("%-8s %-20s %dx%d %-7s %8.1f ns per pixel\n", set,
               backward ? "differentiate, fold" : "spread, fold", patch, patch,
               sizeof(T) == 4 ? "float" : "double", took / double(c.size()) * 1e9);
    }
}

}  // namespace

void check_stages(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        check_case(*kernels.stage_float, random, report);
        check_case(*kernels.stage_double, random, report);
        check_adjoint(*kernels.stage_double, random, report);
        check_gradients(*kernels.stage_double, random, report);
    }
}

void time_stages(const nlnet::Kernels &kernels) {
    const int patches[] = {5, 7, 9};
    for (const int patch : patches) {
        time_case(kernels.name, *kernels.stage_float, patch);
        time_case(kernels.name, *kernels.stage_double, patch);
    }
}

}  // namespace check
