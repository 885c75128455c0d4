// How strong noise is over the brightness, from all cells of an image.
#pragma once

#include "cells.h"
#include "lines.h"
#include "sorting.h"

namespace nlnet {
namespace {

// What the eye says is log2(1 + strength).
inline double strength_of(double answer) {
    return exp2_of(answer) - 1;
}

class StrengthCurve {
  public:
    // `fitted` has an element for every cell.
    void find(const Cells &cells, Sorter &sorter, double *fitted) {
        place_bins(cells, sorter);
        fill_bins(cells);
        line = fit_line(cells, fitted);
    }

    Line line;  // of the variance of luma at the full size

    // How many times stronger luma's noise is at most than at least.
    double variation() const {
        double least = __builtin_inf(), most = 0;
        for (const double value : values_[0]) {
            const double strength = larger_number(strength_of(value), 1e-3);
            least = smaller_number(least, strength);
            most = larger_number(most, strength);
        }
        return most / least;
    }

    // The answer of a map at some brightness: between the bins by lines.
    double at(int map, double brightness) const {
        const double *values = values_[map];
        if (!(brightness > places_[0])) return values[0];
        for (int bin = 1; bin < kCurveBins; bin++) {
            if (brightness >= places_[bin]) continue;
            const double share =
                (brightness - places_[bin - 1]) / (places_[bin] - places_[bin - 1]);
            return values[bin - 1] + share * (values[bin] - values[bin - 1]);
        }
        return values[kCurveBins - 1];
    }

  private:
    void place_bins(const Cells &cells, Sorter &sorter) {
        for (int64_t i = 0; i < cells.count(); i++) {
            sorter.keys[i] = key_of(double(cells.brightness[i]));
        }
        sorter.sort(cells.count());
        const auto at = [&](int64_t place) { return number_of(sorter.keys[place]); };
        const double low = quantile(cells.count(), 0.02, at);
        const double high = quantile(cells.count(), 0.98, at);
        for (int bin = 0; bin < kCurveBins; bin++) {
            places_[bin] = low + bin * (high - low) / (kCurveBins - 1);
        }
        width_ = larger_number((high - low) / kCurveBins, 1e-3);
    }

    void fill_bins(const Cells &cells) {
        double totals[kStrengthMaps] = {}, sums[kStrengthMaps] = {};
        double weights[kStrengthMaps][kCurveBins] = {};
        __builtin_memset(values_, 0, sizeof(values_));
        for (int64_t i = 0; i < cells.count(); i++) {
            const int64_t tile = i / cells.of_tile(), cell = i % cells.of_tile();
            double near[kCurveBins];
            for (int bin = 0; bin < kCurveBins; bin++) {
                const double away = (double(cells.brightness[i]) - places_[bin]) / width_;
                near[bin] = exp_of(-0.5 * away * away);
            }
            for (int map = 0; map < kStrengthMaps; map++) {
                const double weight = double(cells.weights_of(tile, map)[cell]);
                const double value = double(cells.strengths(tile, map)[cell]);
                totals[map] += weight;
                sums[map] += weight * value;
                for (int bin = 0; bin < kCurveBins; bin++) {
                    weights[map][bin] += weight * near[bin];
                    values_[map][bin] += weight * value * near[bin];
                }
            }
        }
        // A bin without cells has what all cells tell.
        for (int map = 0; map < kStrengthMaps; map++) {
            const double mean = sums[map] / totals[map];
            const double few = kBinPrior * totals[map] / kCurveBins;
            for (int bin = 0; bin < kCurveBins; bin++) {
                values_[map][bin] = (values_[map][bin] + few * mean) / (weights[map][bin] + few);
            }
        }
    }

    // Fit a line to the variance of luma at the full size; what is far off counts for less.
    static Line fit_line(const Cells &cells, double *fitted) {
        const auto variance_at = [&](int64_t i) {
            const int64_t tile = i / cells.of_tile();
            const double strength =
                strength_of(double(cells.strengths(tile, 0)[i % cells.of_tile()]));
            return strength * strength;
        };
        const auto weight_at = [&](int64_t i) {
            return double(cells.weights_of(i / cells.of_tile(), 0)[i % cells.of_tile()]);
        };
        double total = 0, sum = 0;
        for (int64_t i = 0; i < cells.count(); i++) {
            total += weight_at(i);
            sum += weight_at(i) * variance_at(i);
        }
        const double least = 1e-2 * sum / total + 1e-9;
        for (int64_t i = 0; i < cells.count(); i++)
            fitted[i] = larger_number(variance_at(i), least);
        Line line = {0, 0};
        for (int round = 0; round < kEyeRounds; round++) {
            LineSums sums(double(cells.brightness[0]));
            for (int64_t i = 0; i < cells.count(); i++) {
                const double variance = variance_at(i);
                const double away = __builtin_fabs(variance - fitted[i]) / fitted[i];
                const double weight = weight_at(i) / larger_number(1, away / kClose);
                sums.add(double(cells.brightness[i]), variance, weight / (fitted[i] * fitted[i]));
            }
            line = sums.fit();
            for (int64_t i = 0; i < cells.count(); i++) {
                fitted[i] = larger_number(line.at(double(cells.brightness[i])), least);
            }
        }
        return line;
    }

    double places_[kCurveBins], width_;
    double values_[kStrengthMaps][kCurveBins];
};

}  // namespace
}  // namespace nlnet
