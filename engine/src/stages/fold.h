// Putting tiles together: the adjoint of cutting a padded image into overlapping windows.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Add what row `inner` of a row of tiles holds to a line of the padded image.
template <typename T>
static void add_window_rows(const Shape &shape, const T *windows, int64_t window, int64_t tiles,
                            int64_t inner, int64_t length, T *line) {
    const int64_t side = kTileColumns + 2 * shape.margin();
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t start = tile * kTileColumns - shape.reach();
        const int64_t first = start < 0 ? 0 : start;
        const int64_t last = start + side < length ? start + side : length;
        const T *from = windows + tile * window + inner * window_stride(shape) - start;
        for (int64_t x = first; x < last; x++) line[x] += from[x];
    }
}

// Row y of the image: what was added to the symmetric border goes back to where that came from.
template <typename T>
static void fold(const Shape &shape, const Parts<T> &parts, int64_t height, int64_t width,
                 int64_t y, T *line, T *row) {
    const int radius = shape.radius();
    const int64_t length = width + 2 * radius;
    const int64_t tiles = (width + kTileColumns - 1) / kTileColumns;
    const int64_t window = window_size(shape, parts.tile_rows);
    __builtin_memset(line, 0, size_t(length) * sizeof(T));
    const int64_t sources[3] = {y, -1 - y, 2 * height - 1 - y};
    for (int64_t source : sources) {
        if (source < -radius || source >= height + radius) continue;
        for (int64_t tile = parts.first_tile; tile < parts.last_tile; tile++) {
            const int64_t inner = source + shape.margin() - tile * parts.tile_rows;
            if (inner < 0 || inner >= parts.tile_rows + 2 * shape.margin()) continue;
            add_window_rows(shape, parts.windows + tile % parts.capacity * tiles * window, window,
                            tiles, inner, length, line);
        }
    }
    for (int64_t x = 0; x < width; x++) row[x] = line[radius + x];
    for (int64_t x = 0; x < radius; x++) {
        row[x] += line[radius - 1 - x];
        row[width - 1 - x] += line[radius + width + x];
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
