// Series: the average of pages beside plain loops.
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

// Means of what a neighbour and the page show, over the 7x7 pixels around one.
struct Means {
    double shift, bright, squares, cross, power;

    double apart(double change, double scale) const {
        return squares + scale * scale * power + 2 * scale * cross +
               pow(change + scale * bright, 2) -
               2 * (change + scale * bright) * (shift + scale * bright);
    }
};

struct Explained {
    double apart, change, scale, bright;

    explicit Explained(const Means &means) : bright(means.bright) {
        const double rest = means.shift * (0.05 / (means.shift * means.shift + 0.05));
        change = means.shift - rest;
        const bool dark = !(bright > 0.5 && bright - change > 0.5);
        const double factor = dark ? 1 : clamp(1 - change / bright, 0.5, 2);
        const double added = pow(fmax(means.apart(change, 0), 0), 2);
        const double multiplied = pow(fmax(means.apart(change, factor - 1), 0), 2);
        scale = (factor - 1) * (added / (added + multiplied + 1e-9));
        apart = fmax(means.apart(change, scale), 0) + 4 * rest * rest;
    }
};

void check_merge(const nlnet::SeriesKernels &kernels, Random &random, Report &report) {
    const Pages pages(random, random.between(1, 90), random.between(1, 150));
    const int64_t height = pages.height, width = pages.width, plane = height * width;
    Array<float> merged(size_t(pages.size())), left{size_t(plane)}, removed { size_t(plane) };
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
                             left.data,
                             removed.data};
    Array<char> scratch(kernels.merge_scratch(task));
    const int64_t cut = random.between(0, height);
    for (int part = 0; part < 2; ++part) {  // rows in two parts, as two threads would
        task.first = part ? cut : 0;
        task.last = part ? height : cut;
        nlnet::Memory memory(scratch.data);
        kernels.merge(task, memory);
    }
    Array<double> shown[5] = {Array<double>(size_t(4 * plane)), Array<double>(size_t(4 * plane)),
                              Array<double>(size_t(4 * plane)), Array<double>(size_t(4 * plane)),
                              Array<double>(size_t(4 * plane))};
    for (int number = 0; number < pages.count; ++number) {
        const nlnet_neighbour &other = pages.neighbours[number];
        for (int64_t at = 0; at < plane; ++at) {
            double place[2], sums[5] = {};
            find_place(pages, number, at / width, at % width, place);
            for (int channel = 0; channel < pages.channels; ++channel) {
                const double there =
                    double(other.gain) * sample(pages, other.guide + channel * plane, place) +
                    double(other.offset);
                const double gap = there - double(pages.guides[channel * plane + at]);
                const double values[] = {gap, there, gap * gap, gap * there, there * there};
                for (int i = 0; i < 5; ++i) sums[i] += values[i] / pages.channels;
            }
            const bool inside = place[0] > -0.5 && place[1] > -0.5 &&
                                place[0] < double(height) - 0.5 && place[1] < double(width) - 0.5 &&
                                sums[2] < 1e6;
            for (int i = 0; i < 5; ++i)
                shown[i][number * plane + at] = inside ? sums[i] : i == 2 ? 1e6 : 0;
        }
    }
    const auto explain = [&](int number, int64_t y, int64_t x) {
        double means[5];
        for (int i = 0; i < 5; ++i) means[i] = difference(pages, shown[i], number, y, x);
        return Explained({means[0], means[1], means[2], means[3], means[4]});
    };
    // Also of three pixels beyond the border on all sides.
    const int64_t line = width + 6, wide = (height + 6) * line;
    Array<double> apart(size_t(4 * wide)), changes(size_t(4 * wide)), least { size_t(wide) };
    for (int64_t at = 0; at < wide; ++at) {
        double first = 10, second = 10;
        for (int number = 0; number < pages.count; ++number) {
            const Explained found = explain(number, at / line - 3, at % line - 3);
            apart[number * wide + at] = found.apart;
            changes[number * wide + at] = found.change;
            second = fmin(second, fmax(first, found.apart));
            first = fmin(first, found.apart);
        }
        least[at] = pages.count == 1 ? first : (first + second) / 2;
    }
    double worst = 0;
    for (int64_t at = 0; at < plane; ++at) {
        const int64_t middle = (at / width + 3) * line + at % width + 3;
        double typical = 0;
        for (int64_t i = 0; i < 49; ++i)
            typical += least[middle + (i / 7 - 3) * line + i % 7 - 3] / 49;
        const double allowed = clamp(2 * typical, 0.1, 1);
        double sums[3] = {}, weights = 1, variance = 1;
        for (int channel = 0; channel < pages.channels; ++channel)
            sums[channel] = double(pages.noisy[channel * plane + at]);
        for (int number = 0; number < pages.count; ++number) {
            const nlnet_neighbour &other = pages.neighbours[number];
            const Explained found = explain(number, at / width, at % width);
            const double *change = &changes[number * wide + middle];
            const double along = 2 * *change - change[-3] - change[3];
            const double down = 2 * *change - change[-3 * line] - change[3 * line];
            const double bend = along * along + down * down;
            const double ratio =
                (found.apart + 4 * bend * bend * bend / (1 + bend * bend)) / allowed;
            const double power = pow(double(other.gain) * (1 + found.scale), 2);
            const double weight =
                1 / ((1 + ratio * ratio) * (1 + pow(ratio / 4, 4)) * fmax(power, 1));
            double place[2];
            find_place(pages, number, at / width, at % width, place);
            if (!(place[0] > -0.5 && place[1] > -0.5)) place[0] = place[1] = 0;
            if (!(place[0] < double(height) - 0.5 && place[1] < double(width) - 0.5))
                place[0] = place[1] = 0;
            weights += weight;
            variance += weight * weight * power;
            for (int channel = 0; channel < pages.channels; ++channel) {
                const double there =
                    double(other.gain) * sample(pages, other.noisy + channel * plane, place) +
                    double(other.offset);
                sums[channel] +=
                    weight * (there - found.change + found.scale * (there - found.bright));
            }
        }
        for (int channel = 0; channel < pages.channels; ++channel) {
            const double gap = fabs(double(merged[channel * plane + at]) - sums[channel] / weights);
            if (!(gap <= worst)) worst = gap;
        }
        const double rest = variance / (weights * weights);
        const double gap = fabs(double(left[at]) - sqrt(rest));
        if (!(gap <= worst)) worst = gap;
        const double lost = fabs(pow(double(removed[at]), 2) - (rest + 1 - 2 / weights));
        if (!(lost <= worst)) worst = lost;
    }
    report.expect(worst < 2e-3, "merge, %d x %d, %d channels, %d neighbours: %.3g apart",
                  int(height), int(width), pages.channels, pages.count, worst);
}

}  // namespace

void check_series(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; ++round) {
        check_merge(*kernels.series, random, report);
    }
}

}  // namespace check
