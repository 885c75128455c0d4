// What denoising, training's passes and matching have in common: the arrays that tasks work on.
#pragma once

#include "job.h"
#include "planes.h"

namespace nlnet {
namespace {

// What is held of one image on its way, in the job's memory.
template <typename T>
struct Held {
    T *read;         // (C, read_capacity, W)
    T *between;      // (passes - 1, C, pass_capacity, W): from one pass to the next
    T *parts;        // (passes, C, parts_capacity, tile columns, window)
    int8_t *groups;  // (groups_capacity * tile_rows, W, K, 2)
};

template <typename T>
struct Run : nlnet_job {
    const nlnet_network *network;
    Plan plan;
    Box<T> box;
    Held<T> *held;  // one per sweep

    const Shape &shape() const { return network->shape; }
    const Stage<T> &stage(int number) const {
        return static_cast<const Stage<T> *>(network->stages)[number];
    }
    const MatchingKernels<T> &matching() const { return matching_kernels<T>(*network->kernels); }
    const PixelKernels<T> &pixels() const { return pixel_kernels<T>(*network->kernels); }
    const StageKernels<T> &kernels() const { return stage_kernels<T>(*network->kernels); }

    // An image of a contiguous (batch, C, H, W) array.
    Planes<T> image_of(const void *array, int64_t image) const {
        const int64_t size = shape().channels * plan.height * plan.width;
        return {static_cast<T *>(const_cast<void *>(array)) + image * size, plan.width,
                plan.height};
    }
    Planes<T> read_rows(const Task &task) const {
        return {held[task.sweep].read, plan.width, plan.read_capacity()};
    }
    // What goes from pass `number` to the next.
    Planes<T> between(const Task &task, int number) const {
        const int64_t size = shape().channels * plan.pass_capacity() * plan.width;
        return {held[task.sweep].between + number * size, plan.width, plan.pass_capacity()};
    }
    T *windows(const Task &task, int channel) const {
        const int64_t plane =
            plan.parts_capacity() * plan.tile_columns() * window_size(shape(), plan.tile_rows);
        return held[task.sweep].parts + (task.pass * shape().channels + channel) * plane;
    }
    Parts<T> parts(const Task &task, int channel) const {
        return {windows(task, channel), int(plan.parts_capacity()), plan.tile_rows, task.first_tile,
                task.last_tile};
    }
    int64_t group_bytes() const { return plan.width * shape().group * 2; }  // of one row
    int8_t *held_groups(const Task &task) const {
        return held[task.sweep].groups +
               task.row % plan.groups_capacity() * plan.tile_rows * group_bytes();
    }

    // A tile of the task's row, in one plane.
    StageTile<T> tile(const Task &task, int channel, int64_t column, const Rows<const T> &estimate,
                      const int8_t *groups) const {
        const int64_t top = task.row * plan.tile_rows, left = column * kTileColumns;
        const int64_t rows = plan.height - top, columns = plan.width - left;
        const int64_t slot = task.row % plan.parts_capacity() * plan.tile_columns() + column;
        return {estimate,
                plan.height,
                plan.width,
                top,
                left,
                int(rows < plan.tile_rows ? rows : plan.tile_rows),
                int(columns < kTileColumns ? columns : kTileColumns),
                groups,
                windows(task, channel) + slot * window_size(shape(), plan.tile_rows)};
    }

    // Match the task's columns of its row of tiles.
    void match(const Task &task, const Rows<const T> &luminance, int8_t *groups,
               void *scratch) const {
        const int64_t top = task.row * plan.tile_rows, bottom = top + plan.tile_rows;
        const MatchingTile<T> tile = {
            luminance,  plan.height, plan.width, top, bottom < plan.height ? bottom : plan.height,
            task.first, task.last,   groups};
        matching().match(shape(), network->offsets, tile, scratch);
    }
};

// Take the memory that a run needs besides its own: schedule, slots, ring buffers.
template <typename T>
void make_run(Run<T> *run, const nlnet_network *network, const Plan &plan,
              const LayerSchedule &refinement, Box<T> box, int threads, size_t scratch,
              Memory &memory) {
    const Shape &shape = network->shape;
    make_job(run, plan, refinement, threads, scratch, memory);
    Held<T> *held = memory.take<Held<T>>(plan.sweeps);
    for (int number = 0; number < plan.sweeps; number++) {
        Held<T> pieces = {};
        if (plan.reads) {
            pieces.read = memory.take<T>(plan.read_capacity(), shape.channels, plan.width);
        }
        if (plan.passes > 0) {
            pieces.between =
                memory.take<T>(plan.passes - 1, plan.pass_capacity(), shape.channels, plan.width);
            pieces.parts = memory.take<T>(plan.passes, shape.channels, plan.parts_capacity(),
                                          plan.tile_columns(), window_size(shape, plan.tile_rows));
        }
        if (plan.passes > 0 && plan.matches) {
            pieces.groups = memory.take<int8_t>(plan.groups_capacity(), plan.tile_rows, plan.width,
                                                shape.group, 2);
        }
        if (held != nullptr) held[number] = pieces;
    }
    if (run == nullptr) return;
    run->network = network;
    run->plan = plan;
    run->box = box;
    run->held = held;
}

template <typename T>
Box<T> make_box(double low, double high) {
    return {low <= high, T(low), T(high)};
}

inline size_t larger_size(size_t left, size_t right) {
    return left < right ? right : left;
}

// Scratch memory for finishing rows: a line to fold to, and a row of every channel.
template <typename T>
size_t finish_scratch(const Shape &shape, int64_t width) {
    const int64_t line = width + 2 * shape.radius() + kRoom;
    return size_t((1 + shape.channels) * line) * sizeof(T);
}

inline bool big_enough(const Shape &shape, int64_t height, int64_t width) {
    const int64_t side = height < width ? height : width;
    const int64_t seen = shape.reach() + 1;  // a corner sees the least: a quarter of the window
    const int64_t rows = height < seen ? height : seen, columns = width < seen ? width : seen;
    return side >= shape.patch && rows * columns >= shape.group;
}

constexpr int64_t kMostPixels = INT32_MAX;  // of a side
constexpr int kLeastTileRows = 8, kMostTileRows = 4096;

inline nlnet_status check_size(const nlnet_network *network, int64_t batch, int64_t height,
                               int64_t width, int threads) {
    if (network == nullptr || batch < 1 || height < 1 || width < 1 || height > kMostPixels ||
        width > kMostPixels || threads < 1 || threads > kMostThreads) {
        return NLNET_BAD_ARGUMENT;
    }
    return big_enough(network->shape, height, width) ? NLNET_OK : NLNET_TOO_SMALL;
}

// An image is cut into rows of tiles of about the same height: a low tile takes nearly as long as a
// high one.
inline int even_rows(int64_t height, int64_t at_most) {
    const int64_t count = (height + at_most - 1) / at_most;
    return int((height + count - 1) / count);
}

}  // namespace
}  // namespace nlnet
