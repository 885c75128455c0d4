// From a parameter block to a network: checks, filters in two orders, tables of psi, offsets.
#include "network.h"

#include "memory.h"
#include "network_block.h"

namespace nlnet {
namespace {

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

nlnet_status read_block(const void *block, size_t bytes, Head *head, Shape *shape,
                        RefinementBlock *refinement) {
    const nlnet_status status = read_head(block, bytes, head, shape);
    if (status != NLNET_OK) return status;
    if (head->sets != 1) return NLNET_BAD_BLOCK;
    const bool single = head->element == 0;
    uint64_t end = sizeof(Head) + bytes_of_stages(*shape, single);
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
    for (int64_t first = 1; first < int64_t(window) * window; first++) {
        const int dy = offsets[first][0], dx = offsets[first][1];
        if (dy > 0 || (dy == 0 && dx > 0)) {
            pairs[pair][0] = int32_t(first);
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
    const nlnet_status status = read_block(block, bytes, &head, &shape, &refinement);
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
            if (!stages_finite(start + sizeof(Head), shape, single) || !refinement.is_finite()) {
                return NLNET_BAD_BLOCK;
            }
            make_grid(head, grid, shape.rbf_count, values, slopes);
            rank_offsets(shape.window, offsets, pairs, rank_of);
            grid.values = values;
            grid.slopes = slopes;
            *made = {shape,      element, (head.flags & kProjectEveryStage) != 0,
                     head.sigma, kernels, {offsets, pairs},
                     grid,       nullptr, nullptr};
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
