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

bool RefinementBlock::read(const char *start, size_t bytes, int channels, bool single) {
    RefinementHead head;
    if (bytes < sizeof(head)) return false;
    __builtin_memcpy(&head, start, sizeof(head));
    if (!fits(head)) return false;
    shape_.levels = int(head.levels);
    for (int level = 0; level < kMostLevels; level++) {
        shape_.widths[level] = int(head.widths[level]);
        shape_.down[level] = int(head.down[level]);
        shape_.up[level] = int(head.up[level]);
    }
    start_ = start;
    single_ = single;
    step_size_ = head.step_size;
    center_ = head.center;
    count_ = list_layers(shape_, channels, places_);
    bytes_ = sizeof(head);
    for (int number = 0; number < count_; number++) {
        bytes_ = after(bytes_, weight_count(places_[number]), single);
        bytes_ = after(bytes_, bias_count(places_[number]), single);
    }
    return bytes_ <= bytes;
}

bool RefinementBlock::is_finite() const {
    if (start_ == nullptr) return true;
    const size_t arrays = bytes_ - sizeof(RefinementHead);
    return nlnet::is_finite(step_size_) && nlnet::is_finite(center_) &&
           all_finite(start_ + sizeof(RefinementHead), single_, int64_t(arrays) / (single_ ? 4 : 8));
}

template <typename T>
const Refinement<T> *RefinementBlock::make(Memory &memory) const {
    Refinement<T> *made = memory.take<Refinement<T>>(1);
    Layer<T> *layers = memory.take<Layer<T>>(count_);
    size_t at = sizeof(RefinementHead);
    const auto take = [&](int64_t count) {
        T *values = memory.take<T>(count);
        for (int64_t i = 0; values != nullptr && i < count; i++) {
            values[i] = T(value_at(start_ + at, single_, i));
        }
        at = after(at, count, single_);
        return values;
    };
    for (int number = 0; number < count_; number++) {
        const T *weights = take(weight_count(places_[number]));
        const T *biases = take(bias_count(places_[number]));
        if (layers != nullptr) layers[number] = {places_[number], weights, biases};
    }
    if (made != nullptr) *made = {shape_, T(step_size_), T(center_), count_, layers};
    return made;
}

template const Refinement<float> *RefinementBlock::make<float>(Memory &) const;
template const Refinement<double> *RefinementBlock::make<double>(Memory &) const;

}  // namespace nlnet
