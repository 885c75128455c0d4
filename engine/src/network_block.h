// The layout of parameter blocks, which docs/engine.md describes: of a network, or of a family of
// networks, whose values are given at several sigmas.
#pragma once

#include "../include/nlnet_engine.h"
#include "block.h"

namespace nlnet {

// The parameter block's head, little endian; docs/engine.md describes it.
struct Head {
    uint64_t magic;
    uint32_t version, element, channels, stages, patch, group, window, rbf_count, flags, sets;
    double rbf_range, rbf_std, sigma;
    uint64_t bytes;
};
static_assert(sizeof(Head) == 80, "the layout of files");

constexpr uint64_t kMagic = 0x72617074656e6c6e;  // "nlnetpar"
constexpr uint32_t kVersion = 1;
constexpr uint32_t kProjectEveryStage = 1, kRefined = 2;

// Take the head of a block, of one network or of a family, and the sizes that it names.
nlnet_status read_head(const void *block, size_t bytes, Head *head, Shape *shape);

// The arrays of one stage within the block.
struct StagePlace {
    size_t filters, weights, coefficients, end;
};

inline StagePlace place_of(const Shape &shape, size_t start, bool single) {
    StagePlace place;
    place.filters = start + sizeof(double);  // the step size comes first
    place.weights = after(place.filters, int64_t(shape.filters()) * shape.pixels(), single);
    place.coefficients = after(place.weights, shape.group, single);
    place.end = after(place.coefficients,
                      int64_t(shape.channels) * shape.filters() * shape.rbf_count, single);
    return place;
}

// In 64 bits everywhere: sizes of a damaged head may be more than a machine can address.
inline uint64_t bytes_of_stages(const Shape &shape, bool single) {
    return uint64_t(shape.stages) * place_of(shape, 0, single).end;
}

// Whether all values of all stages are finite, which begin there.
bool stages_finite(const char *stages, const Shape &shape, bool single);

}  // namespace nlnet
