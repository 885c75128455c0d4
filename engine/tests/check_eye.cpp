// Whole eyes through the C interface, against plain loops, for any number of threads.
#include "../src/network.h"

#include "eye_case.h"
#include "job_case.h"

namespace check {
namespace {

void looks(nlnet_set set, Random *random, Report &report) {
    const plain::Eye values = eyes::random_eye(random);
    const eyes::Made made(values, set);
    const int64_t unit = values.layers.sizes.unit();
    const int64_t height = unit * random->between(1, 40 / unit + 1);
    const int64_t width = unit * random->between(1, 60 / unit + 1);
    const int channels = random->below(2) ? 3 : 1;
    const eyes::Batch batch(values, random->between(1, 4), channels, height, width, random);
    const nlnet_status status = batch.look(made.eye);
    double apart = 0;
    for (int64_t number = 0; number < batch.task.count; number++) {
        const plain::Features wanted = plain::look(
            values, channels, height, width, batch.tiles.data + number * channels * height * width);
        const int64_t size = wanted.channels * wanted.height * wanted.width;
        for (int64_t i = 0; i < size; i++) {
            const double off = fabs(double(batch.maps[number * size + i]) - wanted.values[i]);
            if (!(off <= apart)) apart = off;
        }
    }
    report.expect(status == NLNET_OK && apart < 1e-3,
                  "look: status %d, off by %g, %d tiles %dx%dx%d, %d levels", status, apart,
                  int(batch.task.count), channels, int(width), int(height),
                  values.layers.sizes.levels);
    values.layers.release();
}

}  // namespace

void check_eye(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) looks(jobs::set_of(kernels), &random, report);
}

void time_eye(const nlnet::Kernels &kernels) {
    constexpr int side = 192;
    Random random = {1};
    const plain::LevelSizes sizes = {4, {24, 40, 48, 64}, {1, 1, 1, 1}, {}};
    const plain::Eye values = plain::random_eye(sizes, 24, &random);
    const eyes::Made made(values, jobs::set_of(kernels));
    eyes::Batch batch(values, 1, 3, side, side, &random);
    batch.task.threads = 1;
    const double took = seconds([&] { batch.look(made.eye); }, 10);
    printf("%-8s %-20s 192x192     %8.3f ms per megapixel\n", kernels.name, "look, RGB",
           took * 1e3 / (side * side * 1e-6));
    values.layers.release();
}

}  // namespace check
