#include "flow.h"

namespace nlnet {
namespace {

constexpr int64_t kUnlimited = INT64_MAX / 4;
constexpr int64_t kMeasuredRows = 64;  // of the lowest level: what follows is the same again

int64_t smaller_of(int64_t left, int64_t right) {
    return left < right ? left : right;
}
int64_t larger_of(int64_t left, int64_t right) {
    return left < right ? right : left;
}

// The first row of its source that a layer needs for its rows from `row` on.
int64_t first_needed(Kind kind, int64_t row) {
    switch (kind) {
        case Kind::kSame: return larger_of(0, row - 1);
        case Kind::kHalve: return 2 * row;
        default: return row / 2;
    }
}

}  // namespace

Flow::Flow(const RefinementShape &shape, int channels, int64_t image_height, int64_t fed)
    : unit_(shape.unit()), image_height_(image_height) {
    if (shape.levels == 0) return;
    Place places[kMostLayers];
    count_ = list_layers(shape, channels, places);
    input_.height = round_up(image_height, unit_) / 2;
    for (int number = 0; number < count_; number++) {
        layers_[number].place = places[number];
        layers_[number].height = input_.height >> places[number].level;
    }
    Flow trial = *this;
    trial.measure();
    // The last rows come with those that make them a whole number of the lowest level's.
    input_.capacity = trial.input_.capacity + (fed + unit_) / 2 + kSpare;
    for (int number = 0; number < count_; number++) {
        const int64_t rows = trial.layers_[number].capacity + kSpare;
        layers_[number].capacity = smaller_of(rows, layers_[number].height);
    }
}

void Flow::measure() {
    const int64_t lowest = smaller_of(input_.height * 2 / unit_, kMeasuredRows);
    input_.height = lowest * unit_ / 2;
    for (int number = 0; number < count_; number++) {
        layers_[number].height = input_.height >> layers_[number].place.level;
    }
    while (!done()) {
        int number = count_ - 1;
        while (number >= 0 && possible(layers_[number]) <= layers_[number].done) number--;
        LayerRows &moved = number < 0 ? input_ : layers_[number];
        moved.done++;
        const int64_t held = moved.done - needed_from(number < 0 ? kInput : number);
        moved.capacity = larger_of(moved.capacity, held);
    }
}

int64_t Flow::possible(const LayerRows &layer) const {
    const LayerRows &source = this->layer(layer.place.source);
    int64_t rows = source.done;
    switch (layer.place.kind) {
        case Kind::kSame: rows -= source.done < source.height ? 1 : 0; break;
        case Kind::kHalve: rows /= 2; break;
        case Kind::kDouble: rows *= 2; break;
    }
    if (layer.place.addend == kNothing) return rows;
    return smaller_of(rows, this->layer(layer.place.addend).done);
}

int64_t Flow::needed_from(int number) const {
    int64_t first = kUnlimited;
    for (int other = 0; other < count_; other++) {
        const LayerRows &layer = layers_[other];
        if (layer.place.source == number) {
            first = smaller_of(first, first_needed(layer.place.kind, layer.done));
        }
        if (layer.place.addend == number) first = smaller_of(first, layer.done);
    }
    return first;
}

bool Flow::next(LayerTask *task) {
    for (int number = count_ - 1; number >= 0; number--) {
        LayerRows &layer = layers_[number];
        if (layer.busy || layer.done == layer.height) continue;
        int64_t last = smaller_of(possible(layer), layer.done + kTaskRows);
        if (last <= layer.done) continue;
        last = smaller_of(last, needed_from(number) + layer.capacity);
        if (last <= layer.done) continue;
        *task = {number, layer.done, last};
        layer.busy = true;
        return true;
    }
    return false;
}

void Flow::end(const LayerTask &task) {
    layers_[task.layer].done = task.last;
    layers_[task.layer].busy = false;
}

int64_t Flow::room() const {
    return 2 * (needed_from(kInput) + input_.capacity) - unit_;
}

void Flow::feed(int64_t rows) {
    input_.done = rows == image_height_ ? input_.height : rows / 2;
}

double Flow::share_done() const {
    const LayerRows &last = layers_[count_ - 1];
    return double(last.done) / double(last.height);
}

}  // namespace nlnet
