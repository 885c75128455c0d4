#include "network_block.h"

namespace nlnet {
namespace {

constexpr int kMostStages = 1000, kMostPatch = 63, kMostWindow = 255, kMostGaussians = 4096;
constexpr int kMostIntervals = 1 << 16;
constexpr int kNodesPerStd = 5;  // keeps the error below 1e-4 of psi's range

}  // namespace

nlnet_status read_head(const void *block, size_t bytes, Head *head, Shape *shape) {
    if (block == nullptr || bytes < sizeof(Head)) return NLNET_BAD_BLOCK;
    __builtin_memcpy(head, block, sizeof(Head));
    if (head->magic != kMagic) return NLNET_BAD_BLOCK;
    if (head->version != kVersion) return NLNET_BAD_VERSION;
    const bool fits = head->element <= 1 && (head->channels == 1 || head->channels == 3) &&
                      head->stages >= 1 && head->stages <= kMostStages && head->patch >= 3 &&
                      head->patch <= kMostPatch && head->patch % 2 == 1 && head->window >= 3 &&
                      head->window <= kMostWindow && head->window % 2 == 1 && head->group >= 1 &&
                      head->group <= head->window * head->window && head->rbf_count >= 2 &&
                      head->rbf_count <= kMostGaussians &&
                      (head->flags & ~(kProjectEveryStage | kRefined)) == 0 &&
                      head->bytes == bytes && head->rbf_range > 0 && is_finite(head->rbf_range) &&
                      head->rbf_std > 0 && is_finite(head->rbf_std);
    if (!fits) return NLNET_BAD_BLOCK;
    const double intervals = 2 * head->rbf_range / head->rbf_std * kNodesPerStd;
    if (!(intervals <= kMostIntervals)) return NLNET_BAD_BLOCK;
    shape->channels = int(head->channels);
    shape->stages = int(head->stages);
    shape->patch = int(head->patch);
    shape->group = int(head->group);
    shape->window = int(head->window);
    shape->rbf_count = int(head->rbf_count);
    shape->intervals = int(intervals) + (double(int(intervals)) < intervals);
    return NLNET_OK;
}

bool stages_finite(const char *block, const Shape &shape, bool single) {
    size_t start = 0;
    for (int stage = 0; stage < shape.stages; stage++) {
        const StagePlace place = place_of(shape, start, single);
        const int64_t coefficients = int64_t(shape.channels) * shape.filters() * shape.rbf_count;
        if (!all_finite(block + start, false, 1) ||
            !all_finite(block + place.filters, single, int64_t(shape.filters()) * shape.pixels()) ||
            !all_finite(block + place.weights, single, shape.group) ||
            !all_finite(block + place.coefficients, single, coefficients)) {
            return false;
        }
        start = place.end;
    }
    return true;
}

}  // namespace nlnet
