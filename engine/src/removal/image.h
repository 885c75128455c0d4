// The image that noise is removed from, row by row: at the full size, or smaller.
#pragma once

#include "../planes.h"
#include "row_kernels.h"

namespace nlnet {
namespace {

inline size_t bytes_of(int type) {
    const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 8};
    return sizes[type];
}

// Pixels of a type in the caller's memory.
struct TypedPixels {
    nlnet_pixels pixels;

    char *row(int channel, int64_t y) const {
        const nlnet_rows &rows = pixels.rows;
        return static_cast<char *>(rows.data) + channel * rows.channel_stride + y * rows.row_stride;
    }
    ptrdiff_t step() const { return pixels.rows.column_stride / ptrdiff_t(bytes_of(pixels.type)); }
};

// Elements of scratch memory for Pyramid::row.
inline int64_t pyramid_scratch(int64_t width) {
    return 4 * (width + kRoom);
}

// Smaller versions of the image are computed from it whenever they are needed, which takes less
// time than a network takes by far, and no memory.
struct Pyramid {
    const RemovalKernels *kernels;
    TypedPixels image;
    int64_t width;

    // Row y of a channel after halving the image so many times.
    void row(int channel, int halvings, int64_t y, float *row, float *scratch) const {
        if (halvings == 0) {
            kernels->load(nlnet_type(image.pixels.type), image.row(channel, y), image.step(), width,
                          row);
            return;
        }
        const int64_t wide = width >> (halvings - 1);
        float *upper = scratch, *lower = upper + wide + kRoom, *left = lower + wide + kRoom;
        this->row(channel, halvings - 1, 2 * y, upper, left);
        this->row(channel, halvings - 1, 2 * y + 1, lower, left);
        kernels->halve(upper, lower, width >> halvings, row);
    }
};

// What was changed at half the size: planes of (height, width).
struct Change {
    const float *planes;  // NULL: nothing
    int64_t height, width;

    // Add it to row y of the full size; `line` is a row of scratch memory.
    void add(const RemovalKernels &kernels, int channel, int64_t y, int64_t full_width, float *line,
             float *row) const {
        const int64_t upper = (y + 1) / 2 - 1;
        kernels.enlarge(at(channel, upper), at(channel, upper + 1), y % 2 == 0 ? 0.75f : 0.25f,
                        width, line, full_width, row);
    }

  private:
    const float *at(int channel, int64_t y) const {
        return planes + (channel * height + smaller_of(larger_of(y, 0), height - 1)) * width;
    }
};

}  // namespace
}  // namespace nlnet
