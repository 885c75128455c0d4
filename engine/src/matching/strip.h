// The image around a part of a tile, as matching wants it.
#pragma once

#include "../kernels.h"
#include "part.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Copy the rows that the patches of all candidates cover, padded by symmetric boundaries; what is
// left and right of the padding is infinite. `part` is [top, bottom) x [left, right) of the tile.
template <typename T>
static void fill_strip(const PartSizes &sizes, const MatchingTile<T> &part, float *strip) {
    const int64_t radius = sizes.patch / 2;
    const int64_t first = part.top > sizes.reach ? part.top - sizes.reach : 0;
    const int64_t end = part.bottom + sizes.reach;
    const int64_t last = end < part.height ? end : part.height;
    // Column c of the strip is the image's column c + shift.
    const int64_t shift = part.left - sizes.margin - radius;
    for (int64_t y = first - radius; y < last + radius; ++y) {
        const T *row = part.image.row(mirrored(y, part.height));
        for (int64_t column = 0; column < sizes.strip_stride; ++column) {
            const int64_t x = column + shift;
            const bool padded = x >= -radius && x < part.width + radius;
            strip[column] = padded ? float(row[mirrored(x, part.width)]) : __builtin_inff();
        }
        strip += sizes.strip_stride;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
