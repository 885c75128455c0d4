// Coarse maps over an image, or a part of it, row by row; bilinear.
#pragma once

#include "../memory.h"
#include "row_kernels.h"

namespace nlnet {

// The part of an image that rows and columns are of.
struct Region {
    int64_t height, width;  // of the whole image
    int64_t top, left;      // of the part
    int64_t columns;        // of the part
};

// Between which cells of a map a place of the image is.
struct Cells {
    int64_t first;  // the second one follows; either may be outside
    float share;    // of the second
};

inline Cells cells_at(int64_t place, int64_t length, int64_t count) {
    const double at = (double(place) + 0.5) * (double(count) / double(length)) - 0.5;
    const int64_t first = at < 0 ? -1 : int64_t(at);
    return {first, float(at - double(first))};
}

class CoarseMap {
  public:
    // Take memory for what is known of the columns. The map has (rows, columns) cells.
    void make(int64_t rows, int64_t columns, const Region &region, Memory &memory) {
        int32_t *begins = memory.take<int32_t>(columns + 2);
        float *shares = memory.take<float>(region.columns);
        rows_ = rows;
        region_ = region;
        widening_ = {columns, begins, shares, region.columns};
        if (shares == nullptr) return;
        int64_t pair = -1;  // pair n is of columns n - 1 and n
        for (int64_t x = 0; x < region.columns; x++) {
            const Cells cells = cells_at(region.left + x, region.width, columns);
            while (pair < cells.first + 1) begins[++pair] = int32_t(x);
            shares[x] = cells.share;
        }
        while (pair < columns + 1) begins[++pair] = int32_t(region.columns);
    }

    // Row y of the part, of one plane of the map.
    void row(const RemovalKernels &kernels, const float *map, int64_t y, float *row) const {
        const Cells cells = cells_at(region_.top + y, region_.height, rows_);
        kernels.widen(widening_, line(map, cells.first), line(map, cells.first + 1), cells.share,
                      row);
    }

  private:
    const float *line(const float *map, int64_t row) const {
        return map + smaller_of(larger_of(row, 0), rows_ - 1) * widening_.columns;
    }

    int64_t rows_;
    Region region_;
    Widening widening_;
};

}  // namespace nlnet
