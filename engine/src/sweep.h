// Denoising one image: read its rows, match, run all stages, write the result's rows.
#pragma once

#include "convolutions/refiner.h"
#include "run.h"

namespace nlnet {
namespace {

constexpr int kTileRows = 72;  // unless a task says: more would not stay in the cache
constexpr int kChunk = 8;      // tiles: more would keep threads waiting where a row depends on it

template <typename T>
struct Denoising : Run<T> {
    nlnet_denoise_task task;
    T *rows_in, *rows_out;  // (C, rows of a task, W): for rows that go through callbacks
    Refiner<T> refiner;

    bool refines() const { return this->schedule.refinement().exists(); }

    T *address(const nlnet_rows &rows, int channel, int64_t y) const {
        char *start = static_cast<char *>(rows.data) + channel * rows.channel_stride;
        return reinterpret_cast<T *>(start + y * rows.row_stride);
    }

    bool read(const Task &step) const {
        const int channels = this->shape().channels;
        const int64_t count = step.last - step.first, width = this->plan.width;
        const nlnet_rows &from = task.noisy;
        if (from.data == nullptr && from.rows(from.context, step.first, count, rows_in) != 0) {
            return false;
        }
        const Planes<T> planes = this->read_rows(step);
        for (int64_t y = step.first; y < step.last; y++) {
            const T *source[3] = {};
            for (int channel = 0; channel < channels; channel++) {
                source[channel] = from.data == nullptr
                                      ? rows_in + (channel * count + y - step.first) * width
                                      : address(from, channel, y);
            }
            const ptrdiff_t apart =
                from.data == nullptr ? 1 : from.column_stride / ptrdiff_t(sizeof(T));
            this->pixels().to_working(channels, source, apart,
                                      RowOf<T>(planes, channels, y).channels, width);
        }
        return true;
    }

    Planes<T> input(const Task &step) const {
        return step.pass == 0 ? this->read_rows(step) : this->between(step, step.pass - 1);
    }

    void spread(const Task &step, void *scratch) const {
        const Planes<T> estimate = input(step);
        const int8_t *groups = this->held_groups(step);
        for (int64_t column = step.first; column < step.last; column++) {
            for (int channel = 0; channel < this->shape().channels; channel++) {
                this->kernels().spread(
                    this->shape(), this->stage(step.pass), channel,
                    this->tile(step, channel, column, estimate.read(channel), groups), scratch);
            }
        }
    }

    // Rows of u, projected, for the next pass, for the refinement, or as the result.
    bool finish(const Task &step, void *scratch) const {
        const int channels = this->shape().channels;
        const int64_t width = this->plan.width, count = step.last - step.first;
        const bool last = step.pass + 1 == this->plan.passes, written = last && !refines();
        T *line = static_cast<T *>(scratch);
        T *rows = line + width + 2 * this->shape().radius() + kRoom;
        const Planes<T> estimate = input(step), noisy = this->read_rows(step);
        const Planes<T> result =
            last ? Planes<T>{rows, width + kRoom, 1} : this->between(step, step.pass);
        for (int64_t y = step.first; y < step.last; y++) {
            const RowOf<T> row(result, channels, y);
            for (int channel = 0; channel < channels; channel++) {
                this->kernels().fold(this->shape(), this->parts(step, channel), this->plan.height,
                                     width, y, line, row.channels[channel]);
                this->kernels().descend(estimate.row(channel, y), noisy.row(channel, y),
                                        this->stage(step.pass).step_size, row.channels[channel],
                                        width);
            }
            if (written) {
                write_row(row, y, y - step.first, count);
                continue;
            }
            if (last || this->network->project_every_stage) {
                this->kernels().project(channels, row.channels, this->box, width);
            }
            if (last)
                refiner.take(this->pixels(), row.channels, RowOf<T>(noisy, channels, y).channels,
                             y);
        }
        return !written || hand_over(step.first, count);
    }

    bool refine(const Task &step, void *scratch) const {
        const LayerTask &rows = step.layer;
        const int64_t first = 2 * rows.first, end = 2 * rows.last;
        const int64_t count = (end < this->plan.height ? end : this->plan.height) - first;
        refiner.run(this->kernels(), this->pixels(), rows, scratch,
                    [&](const RowOf<T> &row, int64_t y) { write_row(row, y, y - first, count); });
        // Rows below the image only fill up the lowest level.
        const bool last = rows.layer + 1 == this->schedule.refinement().count();
        return !last || count <= 0 || hand_over(first, count);
    }

    // Give rows that are not in memory to the caller.
    bool hand_over(int64_t first, int64_t count) const {
        const nlnet_rows &to = task.denoised;
        return to.data != nullptr || to.rows(to.context, first, count, rows_out) == 0;
    }

    void write_row(const RowOf<T> &row, int64_t y, int64_t number, int64_t count) const {
        const nlnet_rows &to = task.denoised;
        T *target[3] = {};
        for (int channel = 0; channel < this->shape().channels; channel++) {
            target[channel] = to.data == nullptr
                                  ? rows_out + (channel * count + number) * this->plan.width
                                  : address(to, channel, y);
        }
        const ptrdiff_t apart = to.data == nullptr ? 1 : to.column_stride / ptrdiff_t(sizeof(T));
        this->kernels().from_working(this->shape().channels, row.channels, target, apart, this->box,
                                     this->plan.width);
    }

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        const Denoising &self = *static_cast<Denoising *>(job);
        switch (step.step) {
            case Step::kRead: return self.read(step);
            case Step::kMatch:
                self.match(step, self.read_rows(step).read(0), self.held_groups(step), scratch);
                return true;
            case Step::kSpread: self.spread(step, scratch); return true;
            case Step::kRefine: return self.refine(step, scratch);
            default: return self.finish(step, scratch);
        }
    }
};

// Take the memory that denoising needs besides the job itself, and begin; the refinement may be
// left out.
template <typename T>
void make_denoising(Denoising<T> *job, const nlnet_network *network, const nlnet_denoise_task &task,
                    bool refines, Memory &memory) {
    const Shape &shape = network->shape;
    Plan plan = {};
    plan.batch = plan.sweeps = 1;
    plan.height = task.height;
    plan.width = task.width;
    plan.tile_rows = even_rows(task.height, task.tile_rows == 0 ? kTileRows : task.tile_rows);
    plan.margin = shape.margin();
    plan.passes = shape.stages;
    plan.reads = plan.all_need_read = plan.matches = true;
    const int64_t fair = (plan.tile_columns() + task.threads - 1) / task.threads;
    plan.chunk = int(fair < kChunk ? fair : kChunk);
    plan.match_columns = kMatchColumns;
    plan.matching_share = 0.5;

    const StageKernels<T> &kernels = stage_kernels<T>(*network->kernels);
    size_t scratch = matching_kernels<T>(*network->kernels).scratch(shape, plan.tile_rows);
    scratch = larger_size(scratch, kernels.spread_scratch(shape, plan.tile_rows));
    scratch = larger_size(scratch, finish_scratch<T>(shape, plan.width));
    const Refinement<T> &refinement = *static_cast<const Refinement<T> *>(network->refinement);
    LayerSchedule layers;
    if (refines) layers = LayerSchedule(refinement.specs, plan.height, plan.most_rows());
    if (layers.exists()) {
        const size_t needed = Refiner<T>::scratch(refinement.specs, shape.channels, plan.width);
        scratch = larger_size(scratch, needed);
    }
    make_run<T>(job, network, plan, layers, make_box<T>(task.low, task.high), task.threads, scratch,
                memory);
    Refiner<T> counted;
    Refiner<T> &refiner = job == nullptr ? counted : job->refiner;
    if (layers.exists()) {
        refiner.make(refinement, layers, shape.channels, plan.height, plan.width, memory);
    }
    // Rows that are not in memory pass through here.
    const int64_t planes = shape.channels, rows = plan.most_rows();
    const int64_t refined = layers.exists() ? 2 * LayerSchedule::kTaskRows : 0;
    const int64_t written = rows < refined ? refined : rows;
    T *rows_in = task.noisy.data ? nullptr : memory.take<T>(rows, planes, plan.width);
    T *rows_out = task.denoised.data ? nullptr : memory.take<T>(written, planes, plan.width);
    if (job == nullptr) return;
    job->run = Denoising<T>::run_task;
    job->task = task;
    job->rows_in = rows_in;
    job->rows_out = rows_out;
}

inline bool tile_rows_fit(int tile_rows) {
    return tile_rows == 0 || (tile_rows >= kLeastTileRows && tile_rows <= kMostTileRows);
}

// Addresses and strides are whole elements.
inline bool is_aligned(const nlnet_rows &rows, size_t element) {
    const ptrdiff_t size = ptrdiff_t(element);
    return uintptr_t(rows.data) % element == 0 && rows.channel_stride % size == 0 &&
           rows.row_stride % size == 0 && rows.column_stride % size == 0;
}

// They are, or there is a callback.
inline bool usable(const nlnet_rows &rows, size_t element) {
    return rows.data == nullptr ? rows.rows != nullptr : is_aligned(rows, element);
}

}  // namespace
}  // namespace nlnet
