#include "refinement.h"

#include "block.h"

namespace nlnet {
namespace {

// What a refinement begins with in a parameter block; unused levels are 0.
struct RefinementHead {
    uint32_t levels, reserved;
    double step_size, center;
    uint32_t widths[kMostLevels], down[kMostLevels], up[kMostLevels];
};
static_assert(sizeof(RefinementHead) == 72, "the layout of files");

bool fits(const RefinementHead &head) {
    bool fit = head.levels >= 1 && head.levels <= kMostLevels && head.reserved == 0;
    for (uint32_t level = 0; level < kMostLevels && fit; level++) {
        const uint32_t width = head.widths[level];
        const bool used = level < head.levels, lowest = level + 1 >= head.levels;
        fit = used ? width >= 8 && width <= kMostWidth && width % 8 == 0 : width == 0;
        fit = fit && head.down[level] <= (used ? kMostBlocks : 0) &&
              head.up[level] <= (lowest ? 0 : kMostBlocks);
    }
    return fit;
}

// Layers in the order in which they are listed.
struct List {
    Place *places;
    int count;

    int add(Kind kind, int source, int addend, int level, int taken, int given) {
        places[count] = {kind, false, source, addend, level, taken, given};
        return count++;
    }
    int last() const { return count - 1; }
    void blocks(int number, int level, int width) {
        for (int block = 0; block < number; block++) {
            const int before = last();
            const int first = add(Kind::kSame, before, kNothing, level, width, width);
            places[first].rectified = true;
            add(Kind::kSame, first, before, level, width, width);
        }
    }
};

// Not a member: the symbols of members that are templates are weak.
template <typename T>
const Refinement<T> *make_refinement(const RefinementBlock &block, Memory &memory) {
    Refinement<T> *made = memory.take<Refinement<T>>(1);
    Layer<T> *layers = memory.take<Layer<T>>(block.count);
    size_t at = 0;
    const auto take = [&](int64_t count) {
        T *values = memory.take<T>(count);
        for (int64_t i = 0; values != nullptr && i < count; i++) {
            values[i] = T(value_at(block.arrays + at, block.single, i));
        }
        at = after(at, count, block.single);
        return values;
    };
    for (int number = 0; number < block.count; number++) {
        const Place &place = block.places[number];
        const T *weights = take(weight_count(place));
        const T *biases = take(bias_count(place));
        if (layers != nullptr) layers[number] = {place, weights, biases};
    }
    if (made != nullptr) {
        *made = {block.shape, T(block.step_size), T(block.center), block.count, layers};
    }
    return made;
}

}  // namespace

int list_layers(const RefinementShape &shape, int channels, Place *places) {
    List list = {places, 0};
    int ends[kMostLevels];  // of the way down
    list.add(Kind::kSame, kInput, kNothing, 0, input_channels(channels), shape.widths[0]);
    for (int level = 0; level < shape.levels; level++) {
        const int width = shape.widths[level];
        if (level > 0) {
            list.add(Kind::kHalve, list.last(), kNothing, level, shape.widths[level - 1], width);
        }
        list.blocks(shape.down[level], level, width);
        ends[level] = list.last();
    }
    for (int level = shape.levels - 2; level >= 0; level--) {
        const int width = shape.widths[level];
        list.add(Kind::kDouble, list.last(), ends[level], level, shape.widths[level + 1], width);
        list.blocks(shape.up[level], level, width);
    }
    places[list.last()].rectified = true;  // only the last one takes it
    list.add(Kind::kSame, list.last(), kInput, 0, shape.widths[0], output_channels(channels));
    return list.count;
}

bool RefinementBlock::read(const char *start, size_t available, int channels, bool is_single) {
    RefinementHead head;
    if (available < sizeof(head)) return false;
    __builtin_memcpy(&head, start, sizeof(head));
    if (!fits(head)) return false;
    shape.levels = int(head.levels);
    for (int level = 0; level < kMostLevels; level++) {
        shape.widths[level] = int(head.widths[level]);
        shape.down[level] = int(head.down[level]);
        shape.up[level] = int(head.up[level]);
    }
    arrays = start + sizeof(head);
    single = is_single;
    step_size = head.step_size;
    center = head.center;
    count = list_layers(shape, channels, places);
    bytes = sizeof(head);
    for (int number = 0; number < count; number++) {
        bytes = after(bytes, weight_count(places[number]), single);
        bytes = after(bytes, bias_count(places[number]), single);
    }
    return bytes <= available;
}

bool RefinementBlock::is_finite() const {
    if (arrays == nullptr) return true;
    const int64_t values = int64_t(bytes - sizeof(RefinementHead)) / (single ? 4 : 8);
    return nlnet::is_finite(step_size) && nlnet::is_finite(center) &&
           all_finite(arrays, single, values);
}

const void *RefinementBlock::make(bool of_float, Memory &memory) const {
    if (of_float) return make_refinement<float>(*this, memory);
    return make_refinement<double>(*this, memory);
}

}  // namespace nlnet
