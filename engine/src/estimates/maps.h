// Maps of an image from what the eye says of its cells.
#pragma once

#include "curve.h"

namespace nlnet {
namespace {

// Cells are averaged by how sure the eye is of them, over the squares of a map; where it is unsure,
// cells of the same brightness tell. An image that is one tile has a square for every few cells;
// else every tile is one. Pages share their squares.
class StrengthMaps {
  public:
    int64_t rows, columns;
    float *strengths;  // (kStrengthMaps, rows, columns)

    void take_memory(const nlnet_sample &sample, const Cells &cells, Memory &memory) {
        whole_ = sample.grid.rows * sample.grid.columns == 1;
        rows = whole_ ? (cells.rows + kSquareCells - 1) / kSquareCells : sample.grid.rows;
        columns = whole_ ? (cells.columns + kSquareCells - 1) / kSquareCells : sample.grid.columns;
        strengths = memory.take<float>(kStrengthMaps, rows, columns);
        sums_ = memory.take<double>(rows, columns);
        weights_ = memory.take<double>(rows, columns);
        line_ = memory.take<float>(larger_of(rows, columns));
    }

    void make(const Cells &cells, const StrengthCurve &curve) {
        for (int map = 0; map < kStrengthMaps; map++) {
            __builtin_memset(sums_, 0, size_t(rows * columns) * sizeof(double));
            __builtin_memset(weights_, 0, size_t(rows * columns) * sizeof(double));
            for (int64_t tile = 0; tile < cells.tiles; tile++) add(cells, curve, tile, map);
            float *target = strengths + map * rows * columns;
            for (int64_t i = 0; i < rows * columns; i++) target[i] = float(sums_[i] / weights_[i]);
            smooth(target, rows, columns, line_);
        }
    }

    // Turn the eye's answers into standard deviations in the units of the image, after averaging
    // squares of 1, 2 and 4 pixels.
    void to_image(int channels, double unit) {
        for (int map = 0; map < kStrengthMaps; map++) {
            const int scale = map % kScales, source = channels == 1 ? scale : map;
            // The luminance, a mean of three, has less noise than colors.
            const double factor = (channels == 3 ? 1.7320508075688772 : 1) * unit / (1 << scale);
            for (int64_t i = 0; i < rows * columns; i++) {
                float &value = strengths[map * rows * columns + i];
                // As floats: what they cannot tell from no noise is none.
                const float strength = float(exp2_of(double(value))) - 1.0f;
                value = map != source ? strengths[source * rows * columns + i]
                                      : rounded(larger_number(double(strength), 0) * factor);
            }
        }
    }

    // The mean of luma at a scale.
    double mean(int scale) const {
        double sum = 0;
        for (int64_t i = 0; i < rows * columns; i++) {
            sum += double(strengths[scale * rows * columns + i]);
        }
        return sum / double(rows * columns);
    }

  private:
    // To 12 bits, far more than is known: the eye's last bits depend on the instruction set, and
    // the groups are found in what these strengths have evened.
    static float rounded(double value) {
        const double far = value * 2199023255553.0;  // 2^41 + 1, of 53 bits: Veltkamp's split
        return float(far - (far - value));
    }

    void add(const Cells &cells, const StrengthCurve &curve, int64_t tile, int map) const {
        const float *values = cells.strengths(tile, map), *weights = cells.weights_of(tile, map);
        const float *brightness = cells.brightness + tile * cells.of_tile();
        double prior = 0;
        for (int64_t i = 0; i < cells.of_tile(); i++) prior += double(weights[i]);
        prior *= kPrior / double(cells.of_tile());
        for (int64_t i = 0; i < cells.of_tile(); i++) {
            const int64_t y = i / cells.columns / kSquareCells;
            const int64_t x = i % cells.columns / kSquareCells;
            const int64_t square = whole_ ? y * columns + x : tile % (rows * columns);
            const double weight = double(weights[i]);
            sums_[square] +=
                weight * double(values[i]) + prior * curve.at(map, double(brightness[i]));
            weights_[square] += weight + prior;
        }
    }

    bool whole_;
    double *sums_, *weights_;
    float *line_;
};

}  // namespace
}  // namespace nlnet
