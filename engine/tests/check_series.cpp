// Series: the average of pages beside plain loops, and motion that is known.
#include "../src/memory.h"
#include "check.h"

namespace check {
namespace {

double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

struct Pages {
    int64_t height, width;
    int channels, count;
    Array<float> noisy, guides, fields;  // the page itself, then its neighbours
    nlnet_neighbour neighbours[4];

    int64_t size() const { return channels * height * width; }
    int64_t columns() const { return (width + 7) / 8; }
    int64_t blocks() const { return (height + 7) / 8 * columns(); }

    Pages(Random &random, int64_t rows, int64_t columns)
        : height(rows),
          width(columns),
          channels(random.between(0, 1) ? 3 : 1),
          count(int(random.between(0, 4))),
          noisy(size_t(5 * size())),
          guides(size_t(5 * size())),
          fields(size_t(5 * 2 * blocks())) {
        for (int64_t i = 0; i < 5 * size(); ++i) {
            noisy[i] = float(20 * random.uniform());
            guides[i] = float(1.5 * random.uniform());
            if (random.below(500) == 0 && i >= size()) guides[i] = __builtin_nanf("");
        }
        for (int64_t i = 0; i < 10 * blocks(); ++i) fields[i] = float(6 * random.uniform() - 3);
        for (int number = 0; number < 4; ++number) {
            neighbours[number] = {noisy.data + (number + 1) * size(),
                                  guides.data + (number + 1) * size(),
                                  fields.data + number * 2 * blocks(),
                                  float(0.5 + random.uniform()), float(random.uniform() - 0.5)};
        }
    }
};

double cubic(double distance) {
    const double t = fabs(distance), a = -0.75;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// Where a pixel of the page is in a neighbour.
void find_place(const Pages &pages, int number, int64_t y, int64_t x, double place[2]) {
    const double row = (double(y) - 3.5) / 8, column = (double(x) - 3.5) / 8;
    const double rows = double((pages.height + 7) / 8), columns = double(pages.columns());
    const float *field = pages.neighbours[number].field;
    const auto vector = [&](double at, double beside) {
        return field +
               2 * int64_t(clamp(at, 0, rows - 1) * columns + clamp(beside, 0, columns - 1));
    };
    const float *nearest = vector(floor(row + 0.5), floor(column + 0.5));
    double sum[2] = {}, weights = 0;
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const double at = floor(row) + i, beside = floor(column) + j;
            const float *other = vector(at, beside);
            const double apart = pow(double(other[0]) - double(nearest[0]), 2) +
                                 pow(double(other[1]) - double(nearest[1]), 2);
            const double share =
                (1 - fabs(row - at)) * (1 - fabs(column - beside)) / (1 + apart * apart);
            for (int axis = 0; axis < 2; ++axis) sum[axis] += share * double(other[axis]);
            weights += share;
        }
    }
    place[0] = double(y) + sum[0] / weights;
    place[1] = double(x) + sum[1] / weights;
}

double sample(const Pages &pages, const float *plane, const double place[2]) {
    double sum = 0;
    for (int i = -1; i < 3; ++i) {
        for (int j = -1; j < 3; ++j) {
            const double y = floor(place[0]) + i, x = floor(place[1]) + j;
            const int64_t at = int64_t(clamp(y, 0, double(pages.height - 1))) * pages.width +
                               int64_t(clamp(x, 0, double(pages.width - 1)));
            sum += cubic(place[0] - y) * cubic(place[1] - x) * double(plane[at]);
        }
    }
    return sum;
}

// The mean of what a neighbour differs by from the page over the 7x7 pixels around one.
double difference(const Pages &pages, const Array<double> &squares, int number, int64_t y,
                  int64_t x) {
    double sum = 0;
    for (int64_t j = y - 3; j <= y + 3; ++j) {
        for (int64_t i = x - 3; i <= x + 3; ++i) {
            const int64_t row = int64_t(clamp(double(j), 0, double(pages.height - 1)));
            const int64_t column = int64_t(clamp(double(i), 0, double(pages.width - 1)));
            sum += squares[(number * pages.height + row) * pages.width + column];
        }
    }
    return sum / 49;
}

void check_merge(const nlnet::SeriesKernels &kernels, Random &random, Report &report) {
    const Pages pages(random, random.between(1, 90), random.between(1, 150));
    const int64_t height = pages.height, width = pages.width, plane = height * width;
    Array<float> merged(size_t(pages.size())), left { size_t(plane) };
    nlnet_merge_task task = {height,
                             width,
                             pages.channels,
                             pages.count,
                             pages.noisy.data,
                             pages.guides.data,
                             pages.neighbours,
                             0,
                             0,
                             merged.data,
                             left.data};
    Array<char> scratch(kernels.merge_scratch(task));
    const int64_t cut = random.between(0, height);
    for (int part = 0; part < 2; ++part) {  // rows in two parts, as two threads would
        task.first = part ? cut : 0;
        task.last = part ? height : cut;
        nlnet::Memory memory(scratch.data);
        kernels.merge(task, memory);
    }
    Array<double> squares(size_t(4 * plane)), shifts(size_t(4 * plane)), apart(size_t(4 * plane)),
        changes(size_t(4 * (height + 6) * (width + 6)));
    // The two least differences, also of three pixels beyond the border on all sides.
    Array<double> least(size_t((height + 6) * (width + 6)));
    for (int number = 0; number < pages.count; ++number) {
        const nlnet_neighbour &other = pages.neighbours[number];
        for (int64_t at = 0; at < plane; ++at) {
            double place[2], sum = 0, shift = 0;
            find_place(pages, number, at / width, at % width, place);
            for (int channel = 0; channel < pages.channels; ++channel) {
                const double there = sample(pages, other.guide + channel * plane, place);
                const double here = double(pages.guides[channel * plane + at]);
                const double gap = double(other.gain) * there + double(other.offset) - here;
                sum += gap * gap / pages.channels;
                shift += gap / pages.channels;
            }
            const bool inside = place[0] > -0.5 && place[1] > -0.5 &&
                                place[0] < double(height) - 0.5 && place[1] < double(width) - 0.5;
            squares[number * plane + at] = inside && sum < 1e6 ? sum : 1e6;
            shifts[number * plane + at] = inside && sum < 1e6 ? shift : 0;
        }
    }
    for (int64_t y = -3; y < height + 3; ++y) {
        for (int64_t x = -3; x < width + 3; ++x) {
            double first = 10, second = 10;
            for (int number = 0; number < pages.count; ++number) {
                const double mean = difference(pages, shifts, number, y, x);
                const double rest = mean * (0.05 / (mean * mean + 0.05));
                const double d =
                    difference(pages, squares, number, y, x) - mean * mean + 5 * rest * rest;
                changes[(number * (height + 6) + y + 3) * (width + 6) + x + 3] = mean - rest;
                if (y >= 0 && y < height && x >= 0 && x < width)
                    apart[number * plane + y * width + x] = d;
                if (d < first) {
                    second = first;
                    first = d;
                } else if (d < second) {
                    second = d;
                }
            }
            least[(y + 3) * (width + 6) + x + 3] = pages.count == 1 ? first : (first + second) / 2;
        }
    }
    double worst = 0;
    for (int64_t at = 0; at < plane; ++at) {
        double typical = 0;
        for (int64_t i = 0; i < 49; ++i)
            typical += least[(at / width + i / 7) * (width + 6) + at % width + i % 7] / 49;
        const double allowed = clamp(2 * typical, 0.1, 0.6);
        double sums[3] = {}, weights = 1, variance = 1;
        for (int channel = 0; channel < pages.channels; ++channel)
            sums[channel] = double(pages.noisy[channel * plane + at]);
        for (int number = 0; number < pages.count; ++number) {
            const nlnet_neighbour &other = pages.neighbours[number];
            const double power = double(other.gain) * double(other.gain);
            const int64_t line = width + 6;
            const double *change =
                &changes[(number * (height + 6) + at / width + 3) * line + at % width + 3];
            const double along = 2 * *change - change[-3] - change[3];
            const double down = 2 * *change - change[-3 * line] - change[3 * line];
            const double bend = along * along + down * down;
            const double d =
                apart[number * plane + at] + 4 * bend * bend * bend / (1 + bend * bend);
            const double ratio = d / allowed;
            const double weight =
                1 / ((1 + ratio * ratio) * (1 + pow(ratio / 4, 4)) * (power > 1 ? power : 1));
            double place[2];
            find_place(pages, number, at / width, at % width, place);
            if (!(place[0] > -0.5 && place[1] > -0.5)) place[0] = place[1] = 0;
            if (!(place[0] < double(height) - 0.5 && place[1] < double(width) - 0.5))
                place[0] = place[1] = 0;
            weights += weight;
            variance += weight * weight * power;
            for (int channel = 0; channel < pages.channels; ++channel)
                sums[channel] += weight * (double(other.gain) *
                                               sample(pages, other.noisy + channel * plane, place) +
                                           double(other.offset) - *change);
        }
        for (int channel = 0; channel < pages.channels; ++channel) {
            const double gap = fabs(double(merged[channel * plane + at]) - sums[channel] / weights);
            if (!(gap <= worst)) worst = gap;
        }
        const double gap = fabs(double(left[at]) - sqrt(variance) / weights);
        if (!(gap <= worst)) worst = gap;
    }
    report.expect(worst < 2e-3, "merge, %d x %d, %d channels, %d neighbours: %.3g apart",
                  int(height), int(width), pages.channels, pages.count, worst);
}

// Waves that have moved: their motion is found, and pages of any size are taken.
void check_align(const nlnet::SeriesKernels &kernels, Random &random, Report &report) {
    const bool large = random.between(0, 1);
    const int64_t height = large ? 96 : random.between(1, 60),
                  width = large ? 120 : random.between(1, 60);
    const int64_t blocks = (height + 7) / 8 * ((width + 7) / 8);
    const double motion[2] = {16 * random.uniform() - 8, 16 * random.uniform() - 8};
    Array<float> pages(size_t(2 * height * width)), field(size_t(2 * blocks)),
        fits(size_t(6 * blocks));
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
    const nlnet_align_task task = {height,     width,    pages.data, pages.data + height * width,
                                   field.data, fits.data};
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

void check_series(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; ++round) {
        check_merge(*kernels.series, random, report);
        check_align(*kernels.series, random, report);
    }
}

}  // namespace check
