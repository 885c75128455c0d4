// Ring buffers without content, for schedules that are only simulated: which row each place holds.
#pragma once

#include "../src/convolutions/layer_schedule.h"

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

// Sizes of a network, with up to so many blocks on each way.
inline nlnet::LevelSizes random_sizes(int most_blocks, Random *random) {
    nlnet::LevelSizes sizes = {};
    sizes.levels = 1 + int(random->below(nlnet::kMostLevels));
    for (int level = 0; level < sizes.levels; level++) {
        sizes.widths[level] = 8;
        sizes.down[level] = int(random->between(0, most_blocks));
        if (level + 1 < sizes.levels) sizes.up[level] = int(random->between(0, most_blocks));
    }
    return sizes;
}

// What the ring buffers of layers hold of an image.
struct LayerStore {
    Ring input;  // rows of the image, not of level 0, which may be there by half
    Ring layers[nlnet::kMostLayers];
    int64_t height;  // of the image

    void make(const nlnet::LayerSchedule &schedule, int64_t image_height) {
        height = image_height;
        input.make(2 * schedule.layer(nlnet::kInput).capacity);
        for (int i = 0; i < schedule.count(); i++) layers[i].make(schedule.layer(i).capacity);
    }
    void release(const nlnet::LayerSchedule &schedule) const {
        free(input.rows);
        for (int i = 0; i < schedule.count(); i++) free(layers[i].rows);
    }

    // Rows of a layer, or of the input, that are within its level.
    bool has(const nlnet::LayerSchedule &schedule, int number, int64_t first, int64_t last) const {
        const int64_t end = schedule.layer(number).height;
        if (last > end) last = end;
        if (number == nlnet::kInput) return input.has(0, 2 * first, 2 * last);
        return layers[number].has(0, first, last);
    }
    // All that a task reads.
    bool has_all(const nlnet::LayerSchedule &schedule, const nlnet::LayerTask &task) const {
        const nlnet::LayerSpec &spec = schedule.layer(task.layer).spec;
        for (int64_t y = task.first; y < task.last; y++) {
            int64_t first = y - 1, last = y + 2;
            if (spec.kind == nlnet::LayerKind::kHalve) {
                first = 2 * y;
                last = 2 * y + 2;
            } else if (spec.kind == nlnet::LayerKind::kDouble) {
                first = y / 2;
                last = y / 2 + 1;
            }
            if (!has(schedule, spec.source, first, last)) return false;
            if (spec.addend != nlnet::kNone && !has(schedule, spec.addend, y, y + 1)) return false;
        }
        return true;
    }
    // The last layer's rows are not kept.
    void write(const nlnet::LayerSchedule &schedule, const nlnet::LayerTask &task, bool there) {
        if (task.layer + 1 == schedule.count()) return;
        layers[task.layer].set(0, task.first, task.last, there);
    }

    // Rows of the image that come in; with the last one, those that fill up the lowest level.
    void feed(const nlnet::LayerSchedule &schedule, int64_t first, int64_t last, bool there) {
        const int64_t filled = 2 * schedule.layer(nlnet::kInput).height;
        input.set(0, first, last < height ? last : filled, there);
    }
    // Those are mirrored ones, which must be there besides the rows that come.
    bool has_mirrored(const nlnet::LayerSchedule &schedule, int64_t first, int64_t last) const {
        if (last < height) return true;
        return input.has(0, 2 * height - 2 * schedule.layer(nlnet::kInput).height, first);
    }
};

}  // namespace check
