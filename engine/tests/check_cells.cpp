// Cells, the curve over the brightness, maps and pieces, beside plain loops.
#include "../src/estimates/pieces.h"

#include "check.h"
#include "plain_cells.h"

namespace check {
namespace {

// Cells with random answers, in memory of their own.
struct RandomCells {
    nlnet_sample sample = {};
    size_t size;
    Array<char> memory;
    nlnet::Cells cells;
    nlnet::StrengthMaps maps;
    nlnet::Sorter sorter;
    double *fitted;

    explicit RandomCells(Random *random) : size(needed(random)), memory(size) {
        nlnet::Memory pieces(memory.data);
        take(pieces);
        for (int64_t i = 0; i < cells.count() * nlnet::kEyeMaps; i++) {
            cells.answers[i] = float(4 * random->uniform() - 1);
        }
        for (int64_t i = 0; i < cells.count(); i++) {
            cells.brightness[i] = float(255 * random->uniform());
            cells.alive[i] = random->below(9) ? 1 : nlnet::kNearlyNone;
        }
        cells.weigh();
    }

    size_t needed(Random *random) {
        sample.channels = random->below(2) ? 3 : 1;
        sample.pages = random->between(1, 2);
        sample.grid = {1, 1, random->between(17, 300), random->between(8, 300)};
        if (random->below(2)) {
            sample.grid.rows = random->between(1, 3);
            sample.grid.columns = random->between(2, 3);
        }
        nlnet::Memory counted(nullptr);
        take(counted);
        return counted.size();
    }
    void take(nlnet::Memory &pieces) {
        cells.take_memory(sample.grid, nlnet::tile_count(sample), 16, nlnet::kEyeMaps, pieces);
        maps.take_memory(sample, cells, pieces);
        sorter.take_memory(cells.count(), pieces);
        fitted = pieces.take<double>(cells.count());
    }
};

void maps(Random *random, Report &report) {
    RandomCells made(random);
    const nlnet::Cells &cells = made.cells;
    nlnet::StrengthCurve curve;
    curve.find(cells, made.sorter, made.fitted);
    const plain::BrightnessCurve wanted(cells);
    const double slope_off = fabs(curve.line.slope / wanted.slope - 1);
    report.expect(slope_off < 1e-6, "slope %g, not %g, of %d cells", curve.line.slope, wanted.slope,
                  int(cells.count()));
    made.maps.make(cells, curve);
    const int64_t rows = made.maps.rows, columns = made.maps.columns;
    const bool whole = made.sample.grid.rows * made.sample.grid.columns == 1;
    const Array<double> squares = Array<double>(size_t(rows * columns));
    double apart = 0;
    for (int map = 0; map < nlnet::kStrengthMaps; map++) {
        plain::sum_squares(cells, wanted, map, whole, rows, columns, squares.data);
        for (int64_t i = 0; i < rows * columns; i++) {
            const double value = double(made.maps.strengths[map * rows * columns + i]);
            const double off = fabs(
                value - plain::smoothed(squares.data, rows, columns, i / columns, i % columns));
            if (!(off <= apart)) apart = off;
        }
    }
    report.expect(apart < 1e-5, "maps of %dx%d: %.3g apart", int(columns), int(rows), apart);
    const double luma = double(made.maps.strengths[0]);
    const double half = double(made.maps.strengths[4 * rows * columns]);
    made.maps.to_image(made.sample.channels, 10);
    const bool gray = made.sample.channels == 1;
    const double full = fmax(10 * (exp2(luma) - 1) * (gray ? 1 : sqrt(3.0)), 0);
    report.expect(plain::is_rounded(double(made.maps.strengths[0]), full), "luma");
    const double chroma = gray ? double(made.maps.strengths[rows * columns])
                               : fmax(5 * (exp2(half) - 1) * sqrt(3.0), 0);
    report.expect(plain::is_rounded(double(made.maps.strengths[4 * rows * columns]), chroma),
                  "chroma");
}

void odds(Random *random, Report &report) {
    const RandomCells made(random);
    const nlnet::Cells &cells = made.cells;
    double found[nlnet::kKinds], means[nlnet::kKinds] = {}, total = 0, sum = 0, apart = 0;
    cells.find_odds(found);
    for (int64_t i = 0; i < cells.count(); i++) total += double(cells.alive[i]);
    for (int kind = 0; kind < nlnet::kKinds; kind++) {
        for (int64_t i = 0; i < cells.count(); i++) {
            const float *logits = cells.answer(i / cells.of_tile(), nlnet::kLogits + kind);
            means[kind] += double(cells.alive[i]) * double(logits[i % cells.of_tile()]) / total;
        }
        sum += exp(means[kind]);
    }
    for (int kind = 0; kind < nlnet::kKinds; kind++) {
        apart = fmax(apart, fabs(found[kind] - exp(means[kind]) / sum));
    }
    report.expect(apart < 1e-12, "odds: %.3g apart", apart);
}

// Every pixel is in a piece, mirrored beyond the border, and every cell gets its own answer back.
void cutting(Random *random, Report &report) {
    const RandomCells made(random);
    const nlnet::Cells &cells = made.cells;
    const nlnet_grid &grid = made.sample.grid;
    const nlnet::Pieces pieces(cells, 1);
    const Array<float> tile(size_t(grid.height * grid.width));
    for (size_t i = 0; i < tile.count; i++) tile.data[i] = float(i % 255);
    const Array<float> piece = Array<float>(size_t(pieces.pixels()));
    const Array<float> means = Array<float>(size_t(pieces.rows * pieces.columns));
    for (int64_t number = 0; number < pieces.of_tile(); number++) {
        pieces.cut(number, tile.data, grid, piece.data);
        for (int64_t i = 0; i < pieces.rows * pieces.columns; i++) {
            means[i] = piece[i / pieces.columns * 16 * pieces.width() + i % pieces.columns * 16 +
                             15 * pieces.width() + 15];
        }
        pieces.place(number, means.data, 1, cells.answers);
    }
    bool same = pieces.rows <= 16 && pieces.columns <= 16;
    for (int64_t i = 0; i < cells.of_tile(); i++) {
        const int64_t y = nlnet::mirrored(i / cells.columns * 16 + 15, grid.height);
        const int64_t x = nlnet::mirrored(i % cells.columns * 16 + 15, grid.width);
        same = same && cells.answers[i] == tile[y * grid.width + x];
    }
    report.expect(same, "%dx%d pieces of %dx%d pixels", int(pieces.across), int(pieces.down),
                  int(grid.width), int(grid.height));
}

// Brightness and clipped pixels of the cells of a tile.
void measuring(Random *random, Report &report) {
    const RandomCells made(random);
    const nlnet::Cells &cells = made.cells;
    const nlnet_grid &grid = made.sample.grid;
    const int64_t channels = made.sample.channels;
    const Array<float> tile = Array<float>(size_t(channels * grid.height * grid.width));
    for (size_t i = 0; i < tile.count; i++) {
        tile.data[i] = float(random->uniform() * (i / 900 % 2 ? 500 : 800) - 270);
    }
    nlnet::ClipLimits limits;
    limits.low = -INFINITY;
    limits.high = 505;
    cells.measure(0, tile.data, channels, grid, limits);
    const Array<double> means = Array<double>(size_t(cells.of_tile()));
    bool alive = true;
    for (int64_t i = 0; i < cells.of_tile(); i++) {
        double sum = 0, inside = 0, total = 0;
        for (int64_t j = 0; j < channels * 256; j++) {
            const int64_t y = i / cells.columns * 16 + j / 16 % 16;
            const int64_t x = i % cells.columns * 16 + j % 16;
            if (y >= grid.height || x >= grid.width) continue;
            const double value = double(tile[(j / 256 * grid.height + y) * grid.width + x]);
            sum += fmin(fmax(value, -255), 510);
            inside += value < 505;
            total++;
        }
        means[i] = sum / total;
        alive = alive && (cells.alive[i] == 1) == (inside / total > 0.9);
    }
    double apart = 0;
    for (int64_t i = 0; i < cells.of_tile(); i++) {
        const double wanted = plain::smoothed(means.data, cells.rows, cells.columns,
                                              i / cells.columns, i % cells.columns);
        apart = fmax(apart, fabs(double(cells.brightness[i]) - wanted));
    }
    report.expect(alive && apart < 1e-3, "cells of %dx%d: %.3g apart", int(grid.width),
                  int(grid.height), apart);
}

}  // namespace

void check_cells(const nlnet::Kernels &, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        maps(&random, report);
        odds(&random, report);
        cutting(&random, report);
        measuring(&random, report);
    }
}

}  // namespace check
