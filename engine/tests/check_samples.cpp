// Elementary functions, sorting, lines, and what samples tell, beside libm and plain loops.
#include "../src/estimates/lines.h"
#include "../src/estimates/sample.h"
#include "../src/estimates/sorting.h"

#include "check.h"
#include "sample_case.h"

namespace check {
namespace {

void functions(Random *random, Report &report) {
    const double power = 100 * (random->uniform() - 0.5);
    const double number = exp(power);
    report.expect(fabs(nlnet::exp_of(power) / number - 1) < 1e-14, "exp of %g", power);
    report.expect(fabs(nlnet::exp2_of(power) / exp2(power) - 1) < 1e-15, "exp2 of %g", power);
    report.expect(fabs(nlnet::log_of(number) - log(number)) < 1e-15 * (1 + fabs(power)),
                  "log of %g", number);
}

void sorts(Random *random, Report &report) {
    const int64_t count = random->between(1, 300);
    nlnet::Memory counted(nullptr);
    nlnet::Sorter sorter;
    sorter.take_memory(count, counted);
    const Array<char> memory(counted.size());
    nlnet::Memory pieces(memory.data);
    sorter.take_memory(count, pieces);
    const Array<double> numbers = Array<double>(size_t(count));
    for (int64_t i = 0; i < count; i++) {
        const double sign = random->below(2) ? -1 : 1;
        numbers[i] = random->below(9) ? sign * exp(200 * (random->uniform() - 0.5)) : sign * 0.0;
        sorter.keys[i] = nlnet::key_of(numbers[i]);
    }
    sorter.sort(count);
    qsort(numbers.data, size_t(count), sizeof(double), samples::compare);
    bool same = true;
    for (int64_t i = 0; i < count; i++) same &= nlnet::number_of(sorter.keys[i]) == numbers[i];
    report.expect(same, "%d sorted numbers", int(count));
    const double middle = nlnet::quantile(count, 0.5, [&](int64_t i) { return numbers[i]; });
    const double wanted = (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
    report.expect(fabs(middle - wanted) <= 1e-12 * fabs(wanted), "median of %d", int(count));
}

// The squared error of a line is smaller than that of any other near it.
void lines(Random *random, Report &report) {
    const int count = 2 + int(random->below(30));
    double x[32], y[32], weights[32];
    nlnet::LineSums sums(100 * random->uniform());
    for (int i = 0; i < count; i++) {
        x[i] = 1000 * random->uniform();
        y[i] = 5 * x[i] + 300 * random->uniform();
        weights[i] = random->uniform();
        sums.add(x[i], y[i], weights[i]);
    }
    const nlnet::Line line = sums.fit();
    const auto error = [&](double slope, double foot) {
        double sum = 0;
        for (int i = 0; i < count; i++) sum += weights[i] * pow(slope * x[i] + foot - y[i], 2);
        return sum;
    };
    const double least = error(line.slope, line.foot) - 1e-6;
    report.expect(
        least < error(line.slope * 1.01, line.foot) && least < error(line.slope, line.foot + 1) &&
            least < error(line.slope * 0.99, line.foot) && least < error(line.slope, line.foot - 1),
        "a line through %d points", count);
    nlnet::LineSums one(3);
    for (int i = 0; i < 3; i++) one.add(7, 100, 1 + i);
    report.expect(fabs(one.fit().slope - 14) < 1e-9 && fabs(one.fit().foot - 2) < 1e-9,
                  "points of one x: the smallest coefficients");
}

// Extremes, and what the values fill, of any type and in any order of the axes.
void values(Random *random, Report &report) {
    const samples::Sample sample(random);
    const nlnet_sample &given = sample.given;
    samples::Values all(sample);
    qsort(all.values.data, all.values.count, sizeof(double), samples::compare);
    int64_t low_count = 0, high_count = 0;
    const double low = all.values[0], high = all.values[int64_t(all.values.count) - 1];
    for (size_t i = 0; i < all.values.count; i++) {
        low_count += all.values.data[i] == low;
        high_count += all.values.data[i] == high;
    }
    const nlnet_extremes &found = given.extremes;
    report.expect(found.low == low && found.high == high && found.low_count == low_count &&
                      found.high_count == high_count && found.count == int64_t(all.values.count),
                  "extremes of type %d: %g to %g, not %g to %g", given.type, found.low, found.high,
                  low, high);
    const nlnet_measures measures = sample.measures();
    const double rounding = 1e-12 * (fabs(low) + fabs(high));
    double step = 0, sum = 0;
    for (size_t i = 0; i < all.values.count; i++) {
        sum += all.values.data[i];
        if (i == 0) continue;
        const double apart = all.values.data[i] - all.values.data[i - 1];
        if (apart > 0 && (step == 0 || apart < step)) step = apart;
    }
    const int64_t count = int64_t(all.values.count), outside = int64_t(0.01 * double(count));
    double bottom = all.values[outside], top = all.values[count - 1 - outside];
    const double beyond = 0.1 * (top - bottom);
    const bool flat = bottom == top;
    bottom = flat || bottom - beyond < low ? low : bottom - beyond;
    top = flat || top + beyond > high ? high : top + beyond;
    report.expect(measures.step == step && fabs(measures.mean - sum / double(count)) <= rounding &&
                      measures.low == bottom && measures.high == top,
                  "measures of type %d: %g to %g by %g, not %g to %g by %g", given.type,
                  measures.low, measures.high, measures.step, bottom, top, step);
}

// Tiles are inside of the page, in order, and not more than there is room for.
void places(Random *random, Report &report) {
    const int64_t height = random->between(8, 5000), width = random->between(8, 5000);
    const int64_t pages = random->between(1, NLNET_SAMPLE_PAGES);
    nlnet_grid grid;
    const nlnet_status status = nlnet_sample_grid(height, width, pages, &grid);
    bool inside = status == NLNET_OK && grid.rows > 0 && grid.columns > 0;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t count = axis ? grid.rows : grid.columns, side = axis ? height : width;
        const int64_t tile = axis ? grid.height : grid.width;
        int64_t before = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t start = nlnet_tile_start(i, count, side, tile);
            inside =
                inside && start + tile <= side && (i == 0 ? start == 0 : start >= before + tile);
            before = start;
        }
        inside = inside && (count == 1 || before + tile == side);
    }
    const int64_t pixels = grid.rows * grid.columns * grid.height * grid.width;
    report.expect(inside && pixels * pages <= 400000 + 192 * 192 * pages,
                  "tiles of %dx%d, %d pages", int(width), int(height), int(pages));
    int64_t numbers[NLNET_SAMPLE_PAGES];
    const int64_t count = random->between(1, 500), chosen = nlnet_sample_pages(count, numbers);
    bool ascending = chosen == (count < NLNET_SAMPLE_PAGES ? count : NLNET_SAMPLE_PAGES);
    for (int64_t i = 1; i < chosen; i++) ascending = ascending && numbers[i] > numbers[i - 1];
    report.expect(ascending && numbers[0] == 0 && numbers[chosen - 1] == count - 1, "pages of %d",
                  int(count));
}

}  // namespace

void check_samples(const nlnet::Kernels &, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        functions(&random, report);
        sorts(&random, report);
        lines(&random, report);
        values(&random, report);
        places(&random, report);
    }
}

}  // namespace check
