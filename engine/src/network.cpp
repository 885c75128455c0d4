// From a parameter block to a network: checks, filters in two orders, tables of psi, offsets.
#include "network.h"

#include "block.h"
#include "memory.h"

namespace nlnet {
namespace {

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
constexpr int kMostStages = 1000, kMostPatch = 63, kMostWindow = 255, kMostGaussians = 4096;
constexpr int kMostIntervals = 1 << 16;
constexpr int kNodesPerStd = 5;      // keeps the error below 1e-4 of psi's range
constexpr double kFarGaussian = 10;  // standard deviations: less than 2e-22 is left

// e^x for x <= 0: a power of two times a polynomial, to about one unit in the last place.
double exponential(double x) {
    if (x < -700) return 0;
    const double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const int64_t power = int64_t(x * 1.44269504088896340736 - 0.5);
    const double r = (x - double(power) * ln2_high) - double(power) * ln2_low;
    double sum = 1, term = 1;
    for (int n = 1; n < 18; n++) sum += term *= r / n;
    const uint64_t bits = uint64_t(power + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &bits, sizeof(scale));
    return sum * scale;
}

// The arrays of one stage within the block.
struct StagePlace {
    size_t filters, weights, coefficients, end;
};

StagePlace place_of(const Shape &shape, size_t start, bool single) {
    StagePlace place;
    place.filters = start + sizeof(double);  // the step size comes first
    place.weights = after(place.filters, int64_t(shape.filters()) * shape.pixels(), single);
    place.coefficients = after(place.weights, shape.group, single);
    place.end = after(place.coefficients,
                      int64_t(shape.channels) * shape.filters() * shape.rbf_count, single);
    return place;
}

// In 64 bits everywhere: sizes of a damaged head may be more than a machine can address.
uint64_t stages_end(const Shape &shape, bool single) {
    return sizeof(Head) + uint64_t(shape.stages) * place_of(shape, 0, single).end;
}

nlnet_status read_head(const void *block, size_t bytes, Head *head, Shape *shape,
                       RefinementBlock *refinement) {
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
                      (head->flags & ~(kProjectEveryStage | kRefined)) == 0 && head->sets == 1 &&
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
    const bool single = head->element == 0;
    uint64_t end = stages_end(*shape, single);
    if ((head->flags & kRefined) != 0) {
        if (bytes < end) return NLNET_BAD_BLOCK;
        const char *start = static_cast<const char *>(block) + size_t(end);
        if (!refinement->read(start, bytes - size_t(end), shape->channels, single)) {
            return NLNET_BAD_BLOCK;
        }
        end += refinement->bytes;
    }
    return end == bytes ? NLNET_OK : NLNET_BAD_BLOCK;
}

bool values_finite(const char *block, const Shape &shape, bool single) {
    size_t start = sizeof(Head);
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

void make_grid(const Head &head, const Grid &grid, int count, double *values, double *slopes) {
    const double spacing = 2 * head.rbf_range / (count - 1);
    for (int j = 0; j < count; j++) {
        for (int n = 0; n < grid.nodes; n++) {
            const double offset = (n * grid.step - j * spacing) / head.rbf_std;
            const double value = exponential(-0.5 * offset * offset);
            values[int64_t(j) * grid.nodes + n] = value;
            slopes[int64_t(j) * grid.nodes + n] = -offset / head.rbf_std * value * grid.step;
        }
    }
}

// psi of one filter: in each interval the cubic that has its values and slopes at both ends.
template <typename T>
void tabulate(const Grid &grid, const Head &head, const char *coefficients, bool single, int64_t at,
              double *values, double *slopes, T *cubics) {
    for (int n = 0; n < grid.nodes; n++) values[n] = slopes[n] = 0;
    const double reach = kFarGaussian * head.rbf_std / grid.step;
    const double spacing = 2 * head.rbf_range / (head.rbf_count - 1) / grid.step;
    for (int j = 0; j < int(head.rbf_count); j++) {
        const double weight = value_at(coefficients, single, at + j);
        const int first = j * spacing - reach > 0 ? int(j * spacing - reach) : 0;
        const double end = j * spacing + reach + 1;
        const int last = end < grid.nodes ? int(end) : grid.nodes;
        const double *value = grid.values + int64_t(j) * grid.nodes;
        const double *slope = grid.slopes + int64_t(j) * grid.nodes;
        for (int n = first; n < last; n++) {
            values[n] += weight * value[n];
            slopes[n] += weight * slope[n];
        }
    }
    for (int n = 0; n + 1 < grid.nodes; n++) {
        const double rise = values[n + 1] - values[n];
        cubics[4 * n] = T(values[n]);
        cubics[4 * n + 1] = T(slopes[n]);
        cubics[4 * n + 2] = T(3 * rise - 2 * slopes[n] - slopes[n + 1]);
        cubics[4 * n + 3] = T(slopes[n] + slopes[n + 1] - 2 * rise);
    }
}

// All offsets of a window, shortest first, equally long ones row by row.
void rank_offsets(int window, int8_t (*offsets)[2], int32_t (*pairs)[2], int32_t *rank_of) {
    const int reach = window / 2;
    int rank = 0;
    for (int length = 0; length <= 2 * reach * reach; length++) {
        for (int dy = -reach; dy <= reach; dy++) {
            if (dy * dy > length) continue;
            for (int dx = -reach; dx <= reach; dx++) {
                if (dy * dy + dx * dx != length) continue;
                offsets[rank][0] = int8_t(dy);
                offsets[rank][1] = int8_t(dx);
                rank_of[(dy + reach) * window + dx + reach] = rank++;
            }
        }
    }
    int pair = 0;
    for (int first = 1; first < window * window; first++) {
        const int dy = offsets[first][0], dx = offsets[first][1];
        if (dy > 0 || (dy == 0 && dx > 0)) {
            pairs[pair][0] = first;
            pairs[pair++][1] = rank_of[(reach - dy) * window + reach - dx];
        }
    }
}

template <typename T>
void make_stages(const char *block, const Head &head, const Shape &shape, const Grid &grid,
                 Memory &memory, nlnet_network *network) {
    const bool single = head.element == 0;
    const int64_t filters = shape.filters(), pixels = shape.pixels();
    Stage<T> *stages = memory.take<Stage<T>>(shape.stages);
    double *values = memory.take<double>(grid.nodes), *slopes = memory.take<double>(grid.nodes);
    size_t start = sizeof(Head);
    for (int number = 0; number < shape.stages; number++) {
        const StagePlace place = place_of(shape, start, single);
        T *matrix = memory.take<T>(filters, pixels);
        T *transposed = memory.take<T>(filters, pixels);
        T *weights = memory.take<T>(shape.group);
        T *cubics = memory.take<T>(shape.channels, filters, shape.intervals, 4);
        if (cubics != nullptr) {
            for (int64_t f = 0; f < filters; f++) {
                for (int64_t p = 0; p < pixels; p++) {
                    const T value = T(value_at(block + place.filters, single, f * pixels + p));
                    matrix[f * pixels + p] = transposed[p * filters + f] = value;
                }
            }
            for (int k = 0; k < shape.group; k++) {
                weights[k] = T(value_at(block + place.weights, single, k));
            }
            for (int64_t i = 0; i < shape.channels * filters; i++) {
                tabulate(grid, head, block + place.coefficients, single, i * shape.rbf_count,
                         values, slopes, cubics + i * shape.intervals * 4);
            }
            stages[number] = {matrix,
                              transposed,
                              weights,
                              cubics,
                              T(head.rbf_range / grid.step),
                              T(1 / grid.step),
                              T(value_at(block + start, false, 0))};
        }
        start = place.end;
    }
    if (network != nullptr) network->stages = stages;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_network_make(const void *block, size_t bytes, nlnet_element element,
                                nlnet_set set, void *memory, size_t *size,
                                nlnet_network **network) {
    if (size == nullptr || (memory != nullptr && network == nullptr) ||
        (element != NLNET_FLOAT && element != NLNET_DOUBLE) ||
        uintptr_t(memory) % kCacheLine != 0) {
        return NLNET_BAD_ARGUMENT;
    }
    Head head;
    Shape shape;
    RefinementBlock refinement = {};
    const nlnet_status status = read_head(block, bytes, &head, &shape, &refinement);
    if (status != NLNET_OK) return status;
    const Kernels *kernels = kernels_of(set == NLNET_BEST ? nlnet_best_set() : set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    const char *start = static_cast<const char *>(block);

    // Once to count, once to fill.
    for (int round = 0; round < 2; round++) {
        Memory pieces(round == 0 ? nullptr : memory);
        nlnet_network *made = pieces.take<nlnet_network>(1);
        Grid grid = {shape.intervals + 1, 2 * head.rbf_range / shape.intervals, nullptr, nullptr};
        double *values = pieces.take<double>(shape.rbf_count, grid.nodes);
        double *slopes = pieces.take<double>(shape.rbf_count, grid.nodes);
        const int64_t offset_count = int64_t(shape.window) * shape.window;
        auto offsets = reinterpret_cast<int8_t (*)[2]>(pieces.take<int8_t>(2 * offset_count));
        auto pairs = reinterpret_cast<int32_t (*)[2]>(pieces.take<int32_t>(offset_count));
        int32_t *rank_of = pieces.take<int32_t>(offset_count);
        if (round == 1) {
            const bool single = head.element == 0;
            if (!values_finite(start, shape, single) || !refinement.is_finite()) {
                return NLNET_BAD_BLOCK;
            }
            make_grid(head, grid, shape.rbf_count, values, slopes);
            rank_offsets(shape.window, offsets, pairs, rank_of);
            grid.values = values;
            grid.slopes = slopes;
            *made = {shape,   element,          (head.flags & kProjectEveryStage) != 0,
                     kernels, {offsets, pairs}, grid,
                     nullptr, nullptr};
        }
        if (element == NLNET_FLOAT) {
            make_stages<float>(start, head, shape, grid, pieces, made);
        } else {
            make_stages<double>(start, head, shape, grid, pieces, made);
        }
        const void *layers = refinement.make(element == NLNET_FLOAT, pieces);
        if (made != nullptr) made->refinement = layers;
        if (pieces.impossible()) return NLNET_NO_MEMORY;
        if (round == 1) {
            *network = made;
        } else if (memory == nullptr) {
            *size = pieces.size();
            return NLNET_OK;
        } else if (*size < pieces.size()) {
            return NLNET_NO_MEMORY;
        }
    }
    return NLNET_OK;
}
