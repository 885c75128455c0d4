// Ring buffers without content, for schedules that are only simulated: which row each place holds.
#pragma once

#include "../src/flow.h"

#include "check.h"

namespace check {

struct Ring {
    int64_t capacity;
    int64_t *rows;  // the number of the row that each place holds, or -1

    void make(int64_t size) {
        capacity = size;
        rows = static_cast<int64_t *>(malloc(size_t(size) * sizeof(int64_t)));
        for (int64_t i = 0; i < capacity; i++) rows[i] = -1;
    }
    void set(int64_t image, int64_t first, int64_t last, bool there) {
        for (int64_t y = first; y < last; y++) rows[y % capacity] = there ? mark(image, y) : -1;
    }
    bool has(int64_t image, int64_t first, int64_t last) const {
        for (int64_t y = first < 0 ? 0 : first; y < last; y++) {
            if (rows[y % capacity] != mark(image, y)) return false;
        }
        return true;
    }
    static int64_t mark(int64_t image, int64_t y) { return image << 32 | y; }
};

// Sizes of a refinement, with up to so many blocks on each way.
inline nlnet::RefinementShape random_sizes(int most_blocks, Random *random) {
    nlnet::RefinementShape shape = {};
    shape.levels = 1 + int(random->below(nlnet::kMostLevels));
    for (int level = 0; level < shape.levels; level++) {
        shape.widths[level] = 8;
        shape.down[level] = int(random->between(0, most_blocks));
        if (level + 1 < shape.levels) shape.up[level] = int(random->between(0, most_blocks));
    }
    return shape;
}

// What a refinement holds of its image.
struct FlowStore {
    Ring input;  // rows of the image, not of level 0, which may be there by half
    Ring layers[nlnet::kMostLayers];
    int64_t height;  // of the image

    void make(const nlnet::Flow &flow, int64_t image_height) {
        height = image_height;
        input.make(2 * flow.layer(nlnet::kInput).capacity);
        for (int i = 0; i < flow.count(); i++) layers[i].make(flow.layer(i).capacity);
    }
    void release(const nlnet::Flow &flow) const {
        free(input.rows);
        for (int i = 0; i < flow.count(); i++) free(layers[i].rows);
    }

    // Rows of a layer, or of the input, that are within its level.
    bool has(const nlnet::Flow &flow, int number, int64_t first, int64_t last) const {
        const int64_t end = flow.layer(number).height;
        if (last > end) last = end;
        if (number == nlnet::kInput) return input.has(0, 2 * first, 2 * last);
        return layers[number].has(0, first, last);
    }
    // All that a task reads.
    bool has_all(const nlnet::Flow &flow, const nlnet::LayerTask &task) const {
        const nlnet::Place &place = flow.layer(task.layer).place;
        for (int64_t y = task.first; y < task.last; y++) {
            int64_t first = y - 1, last = y + 2;
            if (place.kind == nlnet::Kind::kHalve) {
                first = 2 * y;
                last = 2 * y + 2;
            } else if (place.kind == nlnet::Kind::kDouble) {
                first = y / 2;
                last = y / 2 + 1;
            }
            if (!has(flow, place.source, first, last)) return false;
            if (place.addend != nlnet::kNothing && !has(flow, place.addend, y, y + 1)) return false;
        }
        return true;
    }
    // The last layer's rows are not kept.
    void write(const nlnet::Flow &flow, const nlnet::LayerTask &task, bool there) {
        if (task.layer + 1 == flow.count()) return;
        layers[task.layer].set(0, task.first, task.last, there);
    }

    // Rows of the image that come in; with the last one, those that fill up the lowest level.
    void feed(const nlnet::Flow &flow, int64_t first, int64_t last, bool there) {
        const int64_t filled = 2 * flow.layer(nlnet::kInput).height;
        input.set(0, first, last < height ? last : filled, there);
    }
    // Those are mirrored ones, which must be there besides the rows that come.
    bool has_mirrored(const nlnet::Flow &flow, int64_t first, int64_t last) const {
        if (last < height) return true;
        return input.has(0, 2 * height - 2 * flow.layer(nlnet::kInput).height, first);
    }
};

}  // namespace check
