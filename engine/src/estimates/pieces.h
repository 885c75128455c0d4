// Tiles of any size in pieces of whole cells, which threads share: all of one size, so that they
// overlap where they do not fit. Cells beyond the border of a tile are mirrored.
#pragma once

#include "cells.h"

namespace nlnet {
namespace {

struct Pieces {
    int64_t rows, columns;             // cells of a piece
    int64_t down, across;              // pieces of a tile
    int64_t channels, cell;            // pixels of a cell, along a side
    int64_t cells_down, cells_across;  // of a tile

    Pieces() = default;
    Pieces(const Cells &cells, int channel_count)
        : rows(side_of(cells.rows)),
          columns(side_of(cells.columns)),
          down((cells.rows + rows - 1) / rows),
          across((cells.columns + columns - 1) / columns),
          channels(channel_count),
          cell(cells.side),
          cells_down(cells.rows),
          cells_across(cells.columns) {}

    int64_t of_tile() const { return down * across; }
    int64_t height() const { return rows * cell; }
    int64_t width() const { return columns * cell; }
    int64_t pixels() const { return channels * height() * width(); }

    // Copy a piece of a tile, (channels, height, width).
    void cut(int64_t number, const float *tile, const nlnet_grid &grid, float *piece) const {
        const int64_t top = top_of(number) * cell, left = left_of(number) * cell;
        for (int64_t row = 0; row < channels * height(); row++) {
            const int64_t y = mirrored(top + row % height(), grid.height);
            const float *from = tile + (row / height() * grid.height + y) * grid.width;
            for (int64_t x = 0; x < width(); x++) {
                const float value = from[mirrored(left + x, grid.width)];
                const float least = value > kSeenLow ? value : kSeenLow;
                *piece++ = least < kSeenHigh ? least : kSeenHigh;
            }
        }
    }

    // Put the maps of a piece, (maps, rows, columns), in their place; of cells that two pieces
    // have, those of the later one stay.
    void place(int64_t number, const float *found, int maps, float *answers) const {
        for (int64_t row = 0; row < maps * rows; row++) {
            const int64_t y = row / rows * cells_down + top_of(number) + row % rows;
            __builtin_memcpy(answers + y * cells_across + left_of(number), found + row * columns,
                             size_t(columns) * sizeof(float));
        }
    }

  private:
    // So that as few pieces as are needed are equally large.
    static int64_t side_of(int64_t count) {
        const int64_t pieces = (count + kPieceCells - 1) / kPieceCells;
        return (count + pieces - 1) / pieces;
    }
    int64_t top_of(int64_t number) const {
        return smaller_of(number / across * rows, cells_down - rows);
    }
    int64_t left_of(int64_t number) const {
        return smaller_of(number % across * columns, cells_across - columns);
    }
};

}  // namespace
}  // namespace nlnet
