// Series: motion that is known.
#include "../src/memory.h"
#include "check.h"

namespace check {
namespace {

// Waves that have moved: their motion is found, and pages of any size are taken.
void align_once(const nlnet::SeriesKernels &kernels, Random &random, Report &report) {
    const bool large = random.between(0, 1);
    const int64_t height = large ? 96 : random.between(1, 60),
                  width = large ? 120 : random.between(1, 60);
    const int64_t blocks = (height + 7) / 8 * ((width + 7) / 8);
    const double motion[2] = {16 * random.uniform() - 8, 16 * random.uniform() - 8};
    Array<float> pages(size_t(2 * height * width)), field(size_t(2 * blocks)),
        fits(size_t(8 * blocks));
    memset(pages.data, 0, pages.count * sizeof(float));
    for (int wave = 0; wave < 40; ++wave) {
        const double down = 1.2 * random.uniform() - 0.6, right = 1.2 * random.uniform() - 0.6;
        const double phase = 7 * random.uniform();
        for (int64_t at = 0; at < 2 * height * width; ++at) {
            const double share = at < height * width ? 0 : 1;
            const double y = double(at / width % height) - share * motion[0];
            const double x = double(at % width) - share * motion[1];
            pages[at] += float(4 * sin(down * y + right * x + phase));
        }
    }
    const float *other = pages.data + height * width;
    const nlnet_align_task task = {height, width,   pages.data, other,    pages.data,
                                   other,  nullptr, field.data, fits.data};
    Array<char> scratch(kernels.align_scratch(task));
    nlnet::Memory memory(scratch.data);
    kernels.align(task, memory);
    double worst = 0;
    bool finite = true;
    for (int64_t block = 0; block < blocks; ++block) {
        const int64_t row = block / ((width + 7) / 8), column = block % ((width + 7) / 8);
        finite &= fabs(double(field[2 * block])) < 1e3 && fabs(double(field[2 * block + 1])) < 1e3;
        if (row < 3 || column < 3 || row >= 9 || column >= 12) continue;
        for (int axis = 0; axis < 2; ++axis) {
            const double gap = fabs(double(field[2 * block + axis]) - motion[axis]);
            if (!(gap <= worst)) worst = gap;
        }
    }
    report.expect(finite, "align, %d x %d: not finite", int(height), int(width));
    if (large)
        report.expect(worst < 0.2, "align by %.2f, %.2f: %.3g apart", motion[0], motion[1], worst);
}

}  // namespace

void check_motion(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; ++round) align_once(*kernels.series, random, report);
}

}  // namespace check
