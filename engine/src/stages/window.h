// The image around a tile, continued by symmetric boundaries.
#pragma once

#include "sizes.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Copy the tile and margin() pixels around it. Nothing beyond the image's padding is written, for
// no patch reaches there, nor is a row read that the patches do not need: the ring buffer may not
// hold it.
template <typename T>
static void copy_window(const Shape &shape, const Rows<const T> &image, const StageTile<T> &tile,
                        T *window) {
    const int radius = shape.radius(), margin = shape.margin();
    const int64_t stride = window_stride(shape);
    const int64_t top = tile.top - margin, left = tile.left - margin;
    const int64_t columns = tile.columns + 2 * margin;
    const int64_t first = left < -radius ? -radius - left : 0;
    const int64_t inner_first = left < 0 ? -left : 0;
    const int64_t inner_last = columns < tile.width - left ? columns : tile.width - left;
    const int64_t padded_last = tile.width + radius - left;
    const int64_t last = columns < padded_last ? columns : padded_last;
    for (int64_t row = 0; row < tile.rows + 2 * margin; row++) {
        const int64_t y = top + row;
        if (y < -radius || y >= tile.height + radius) continue;
        const T *from = image.row(mirrored(y, tile.height));
        T *to = window + row * stride;
        for (int64_t x = first; x < inner_first; x++) to[x] = from[mirrored(left + x, tile.width)];
        __builtin_memcpy(to + inner_first, from + left + inner_first,
                         size_t(inner_last - inner_first) * sizeof(T));
        for (int64_t x = inner_last; x < last; x++) to[x] = from[mirrored(left + x, tile.width)];
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
