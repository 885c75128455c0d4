// The image around a part of a tile, as matching wants it.
#pragma once

#include "../kernels.h"
#include "plan.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// The index that symmetric padding shows: ... 1 0 | 0 1 2 | 2 1 ...
NLNET_INLINE int64_t mirror(int64_t index, int64_t length) {
    return index < 0 ? -1 - index : index >= length ? 2 * length - 1 - index : index;
}

// Copy the rows that the patches of all candidates cover, padded by symmetric boundaries; what is
// left and right of the padding is infinite. `part` is [top, bottom) x [left, right) of the tile.
template <typename T>
static void fill_strip(const Plan &plan, const MatchingTile<T> &part, float *strip) {
    const int64_t radius = plan.patch / 2;
    const int64_t first = part.top > plan.reach ? part.top - plan.reach : 0;
    const int64_t end = part.bottom + plan.reach;
    const int64_t last = end < part.height ? end : part.height;
    // Column c of the strip is the image's column c + shift.
    const int64_t shift = part.left - plan.margin - radius;
    for (int64_t y = first - radius; y < last + radius; ++y) {
        const T *row = part.image.row(mirror(y, part.height));
        for (int64_t column = 0; column < plan.strip_stride; ++column) {
            const int64_t x = column + shift;
            const bool padded = x >= -radius && x < part.width + radius;
            strip[column] = padded ? float(row[mirror(x, part.width)]) : __builtin_inff();
        }
        strip += plan.strip_stride;
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
