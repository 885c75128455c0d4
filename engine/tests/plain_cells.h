// From what an eye says of cells to maps of an image, in plain loops over arrays of doubles.
#pragma once

#include "../src/estimates/maps.h"

#include "check.h"

namespace plain {

constexpr int kBins = 8, kMaps = 6;

// Whether `found` is `exact` rounded to the 12 bits that strengths of an image have.
inline bool is_rounded(double found, double exact) {
    int exponent;
    const double bits = ldexp(frexp(found, &exponent), 12);
    return bits == rint(bits) && fabs(found - exact) <= exact * (1.0 / 4096 + 1e-5) + 1e-5;
}

inline int compare_doubles(const void *left, const void *right) {
    const double a = *static_cast<const double *>(left), b = *static_cast<const double *>(right);
    return a < b ? -1 : a > b;
}

struct BrightnessCurve {
    double places[kBins], values[kMaps][kBins], slope, foot;

    explicit BrightnessCurve(const nlnet::Cells &cells) {
        const int64_t count = cells.count();
        const check::Array<double> sorted = check::Array<double>(size_t(count));
        for (int64_t i = 0; i < count; i++) sorted[i] = double(cells.brightness[i]);
        qsort(sorted.data, size_t(count), sizeof(double), compare_doubles);
        const auto percentile = [&](double share) {
            const double place = share * double(count - 1);
            const int64_t low = int64_t(floor(place)), high = int64_t(ceil(place));
            return sorted[low] + (sorted[high] - sorted[low]) * (place - double(low));
        };
        const double low = percentile(0.02), high = percentile(0.98);
        const double width = fmax((high - low) / kBins, 1e-3);
        for (int bin = 0; bin < kBins; bin++) {
            places[bin] = low + (high - low) * bin / (kBins - 1);
            for (int map = 0; map < kMaps; map++) {
                double near = 0, sum = 0, all = 0, all_sum = 0;
                each(cells, map, [&](double brightness, double value, double weight) {
                    const double away = (brightness - places[bin]) / width;
                    near += weight * exp(-away * away / 2);
                    sum += weight * exp(-away * away / 2) * value;
                    all += weight;
                    all_sum += weight * value;
                });
                const double few = 0.05 * all / kBins;
                values[map][bin] = (sum + few * all_sum / all) / (near + few);
            }
        }
        fit_line(cells);
    }

    double at(int map, double brightness) const {
        int bin = 1;
        while (bin < kBins - 1 && brightness > places[bin]) bin++;
        const double width = places[bin] - places[bin - 1];
        const double share = width > 0 ? (brightness - places[bin - 1]) / width : 0;
        const double inside = fmin(fmax(share, 0), 1);
        return values[map][bin - 1] * (1 - inside) + values[map][bin] * inside;
    }

    template <typename Visit>
    static void each(const nlnet::Cells &cells, int map, const Visit &visit) {
        for (int64_t i = 0; i < cells.count(); i++) {
            const int64_t tile = i / cells.of_tile(), cell = i % cells.of_tile();
            visit(double(cells.brightness[i]), double(cells.strengths(tile, map)[cell]),
                  double(cells.weights_of(tile, map)[cell]));
        }
    }

  private:
    // By the normal equations, which is exact enough for numbers that differ.
    void fit_line(const nlnet::Cells &cells) {
        double total = 0, mean = 0;
        each(cells, 0, [&](double, double value, double weight) {
            total += weight;
            mean += weight * pow(exp2(value) - 1, 2);
        });
        const double least = 1e-2 * mean / total + 1e-9;
        for (int round = 0; round < 6; round++) {
            double w = 0, x = 0, xx = 0, y = 0, xy = 0;
            each(cells, 0, [&](double brightness, double value, double weight) {
                const double variance = pow(exp2(value) - 1, 2);
                const double fitted =
                    fmax(round == 0 ? variance : slope * brightness + foot, least);
                const double away = fabs(variance - fitted) / fitted;
                const double counts = weight / fmax(1, away / 0.3) / fitted / fitted;
                w += counts;
                x += counts * brightness;
                xx += counts * brightness * brightness;
                y += counts * variance;
                xy += counts * brightness * variance;
            });
            slope = (w * xy - x * y) / (w * xx - x * x);
            foot = (y - slope * x) / w;
        }
    }
};

// A map of an image, before it is smoothed: (rows, columns) squares.
inline void sum_squares(const nlnet::Cells &cells, const BrightnessCurve &curve, int map,
                        bool whole, int64_t rows, int64_t columns, double *squares) {
    for (int64_t square = 0; square < rows * columns; square++) {
        double sum = 0, total = 0;
        for (int64_t i = 0; i < cells.count(); i++) {
            const int64_t tile = i / cells.of_tile(), cell = i % cells.of_tile();
            const int64_t y = cell / cells.columns / 4, x = cell % cells.columns / 4;
            if ((whole ? y * columns + x : tile % (rows * columns)) != square) continue;
            double prior = 0;
            for (int64_t j = 0; j < cells.of_tile(); j++) {
                prior += 0.5 * double(cells.weights_of(tile, map)[j]) / double(cells.of_tile());
            }
            const double weight = double(cells.weights_of(tile, map)[cell]);
            sum += weight * double(cells.strengths(tile, map)[cell]) +
                   prior * curve.at(map, double(cells.brightness[i]));
            total += weight + prior;
        }
        squares[square] = sum / total;
    }
}

// The average of a square and those around it, by 1/4, 1/2 and 1/4 each way.
inline double smoothed(const double *squares, int64_t rows, int64_t columns, int64_t y, int64_t x) {
    const auto inside = [](int64_t at, int64_t count) {
        return at < 0 ? 0 : at < count ? at : count - 1;
    };
    const double shares[] = {0.25, 0.5, 0.25};
    double sum = 0;
    for (int i = 0; i < 9; i++) {
        const int64_t row = inside(y + i / 3 - 1, rows), column = inside(x + i % 3 - 1, columns);
        sum += shares[i / 3] * shares[i % 3] * squares[row * columns + column];
    }
    return sum;
}

}  // namespace plain
