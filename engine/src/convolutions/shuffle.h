// Rows of the image to rows of level 0 and back: a pixel of level 0 holds two columns of two rows.
#pragma once

#include "../kernels.h"
#include "../vectors.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Two columns at a time, which are next to each other on both sides.
template <typename T>
using Pair = Vector<T, 2>;

template <typename T>
static void unshuffle(const UnshuffledRow<T> &row) {
    const Pair<T> center = splat<Pair<T>>(row.center);
    for (int64_t i = 0; i < row.pairs; i++) {
        store(load<Pair<T>>(row.source + i * row.source_step) - center,
              row.target + i * row.target_step);
    }
}

template <typename T>
static void refine(const RefinedRow<T> &row) {
    typedef Pair<T> V;
    const V keep = splat<V>(1 - row.step_size), pull = splat<V>(row.step_size);
    const V center = splat<V>(row.center);
    for (int64_t i = 0; i < row.pairs; i++) {
        const V estimate = load<V>(row.estimate + i * row.input_step);
        const V noisy = load<V>(row.noisy + i * row.input_step);
        const V change = load<V>(row.change + i * row.change_step);
        store(keep * estimate + pull * noisy - change + center, row.target + 2 * i);
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
