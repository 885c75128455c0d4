#include "layer_schedule.h"

namespace nlnet {
namespace {

constexpr int64_t kUnlimited = INT64_MAX / 4;
constexpr int64_t kMeasuredRows = 64;  // of the lowest level; with more, capacities do not grow

// The first row of its source that a layer needs for its rows from `row` on.
int64_t first_needed(LayerKind kind, int64_t row) {
    switch (kind) {
        case LayerKind::kSame: return larger_of(0, row - 1);
        case LayerKind::kHalve: return 2 * row;
        default: return row / 2;
    }
}

}  // namespace

LayerSchedule::LayerSchedule(const LayerSpecs &specs, int64_t image_height, int64_t fed)
    : count_(specs.count), unit_(specs.unit()), image_height_(image_height) {
    if (count_ == 0) return;
    input_.height = round_up(image_height, unit_) / 2;
    for (int number = 0; number < count_; number++) {
        layers_[number].spec = specs.specs[number];
        layers_[number].height = input_.height >> specs.specs[number].level;
    }
    LayerSchedule trial = *this;
    trial.measure();
    // With the last rows come those that fill up the lowest level.
    input_.capacity = trial.input_.capacity + (fed + unit_) / 2 + kSpare;
    for (int number = 0; number < count_; number++) {
        const int64_t rows = trial.layers_[number].capacity + kSpare;
        layers_[number].capacity = smaller_of(rows, layers_[number].height);
    }
}

void LayerSchedule::measure() {
    const int64_t lowest = smaller_of(input_.height * 2 / unit_, kMeasuredRows);
    input_.height = lowest * unit_ / 2;
    for (int number = 0; number < count_; number++) {
        layers_[number].height = input_.height >> layers_[number].spec.level;
    }
    while (!done()) {
        int number = count_ - 1;
        while (number >= 0 && rows_possible(layers_[number]) <= layers_[number].done) number--;
        LayerProgress &moved = number < 0 ? input_ : layers_[number];
        moved.done++;
        const int64_t held = moved.done - needed_from(number < 0 ? kInput : number);
        moved.capacity = larger_of(moved.capacity, held);
    }
}

int64_t LayerSchedule::rows_possible(const LayerProgress &layer) const {
    const LayerProgress &source = this->layer(layer.spec.source);
    int64_t rows = source.done;
    switch (layer.spec.kind) {
        case LayerKind::kSame: rows -= source.done < source.height ? 1 : 0; break;
        case LayerKind::kHalve: rows /= 2; break;
        case LayerKind::kDouble: rows *= 2; break;
    }
    if (layer.spec.addend == kNone) return rows;
    return smaller_of(rows, this->layer(layer.spec.addend).done);
}

int64_t LayerSchedule::needed_from(int number) const {
    int64_t first = kUnlimited;
    for (int other = 0; other < count_; other++) {
        const LayerProgress &layer = layers_[other];
        if (layer.spec.source == number) {
            first = smaller_of(first, first_needed(layer.spec.kind, layer.done));
        }
        if (layer.spec.addend == number) first = smaller_of(first, layer.done);
    }
    return first;
}

bool LayerSchedule::next(LayerTask *task) {
    for (int number = count_ - 1; number >= 0; number--) {
        LayerProgress &layer = layers_[number];
        if (layer.busy || layer.done == layer.height) continue;
        int64_t last = smaller_of(rows_possible(layer), layer.done + kTaskRows);
        if (last <= layer.done) continue;
        last = smaller_of(last, needed_from(number) + layer.capacity);
        if (last <= layer.done) continue;
        *task = {number, layer.done, last};
        layer.busy = true;
        return true;
    }
    return false;
}

void LayerSchedule::end(const LayerTask &task) {
    layers_[task.layer].done = task.last;
    layers_[task.layer].busy = false;
}

int64_t LayerSchedule::room() const {
    return 2 * (needed_from(kInput) + input_.capacity) - unit_;
}

void LayerSchedule::feed(int64_t rows) {
    input_.done = rows == image_height_ ? input_.height : rows / 2;
}

double LayerSchedule::share_done() const {
    const LayerProgress &last = layers_[count_ - 1];
    return double(last.done) / double(last.height);
}

}  // namespace nlnet
