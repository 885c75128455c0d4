// Series: what only one page shows.
#include "../src/memory.h"
#include "check.h"

namespace check {
namespace {

// A wave that only the page shows comes back, noise does not; in parts as in one go.
void keep_once(const nlnet::SeriesKernels &kernels, Random &random, Report &report) {
    const int64_t height = random.between(1, 100), width = random.between(1, 100);
    const int64_t plane = height * width;
    Array<float> noisy{size_t(plane)}, merged{size_t(plane)}, removed{size_t(plane)};
    Array<float> whole{size_t(plane)}, parts{size_t(plane)};
    for (int64_t at = 0; at < plane; ++at) {
        const double wave = sin(0.9 * double(at / width) + 0.4 * double(at % width));
        merged[at] = float(random.uniform());
        removed[at] = float(0.5 + random.uniform());
        noisy[at] = merged[at] + removed[at] * float(3 * wave);
    }
    nlnet_keep_task task = {height,      width,        1, 3.5f,   noisy.data,
                            merged.data, removed.data, 0, height, whole.data};
    Array<char> scratch(kernels.keep_scratch(task));
    nlnet::Memory memory(scratch.data);
    kernels.keep(task, memory);
    task.kept = parts.data;
    const int64_t cut = random.between(0, height);
    for (int part = 0; part < 2; ++part) {
        task.first = part ? cut : 0;
        task.last = part ? height : cut;
        nlnet::Memory again(scratch.data);
        kernels.keep(task, again);
    }
    report.expect(memcmp(whole.data, parts.data, size_t(plane) * sizeof(float)) == 0,
                  "keep, %d x %d: not the same in parts", int(height), int(width));
    if (height >= 32 && width >= 32) {
        double lost = 0, all = 0;
        for (int64_t at = 0; at < plane; ++at) {
            lost += pow(double(noisy[at]) - double(whole[at]), 2);
            all += pow(double(noisy[at]) - double(merged[at]), 2);
        }
        report.expect(lost < 0.3 * all, "keep, %d x %d: %.3g of a wave lost", int(height),
                      int(width), lost / all);
    }
    task.least = 1e9f;
    task.first = 0;
    task.last = height;
    nlnet::Memory last(scratch.data);
    kernels.keep(task, last);
    report.expect(memcmp(merged.data, parts.data, size_t(plane) * sizeof(float)) == 0,
                  "keep, %d x %d: something out of nothing", int(height), int(width));
}

}  // namespace

void check_keep(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; ++round) keep_once(*kernels.series, random, report);
}

}  // namespace check
