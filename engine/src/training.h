// What the forward and the backward pass of training share: batches of whole arrays.
#pragma once

#include "run.h"

namespace nlnet {
namespace {

constexpr int kTrainingRows = 64;  // of a tile

template <typename T>
struct Training : Run<T> {
    nlnet_forward_task task;

    // Stages of the network are counted from its first, those of the arrays from the run's.
    int stage_count() const { return task.last_stage - task.first_stage; }
    const Stage<T> &run_stage(int number) const { return this->stage(task.first_stage + number); }

    bool projects(int number) const {
        const bool every = this->network->project_every_stage;
        const bool is_last = number + 1 == stage_count();
        return this->box.limited && (every || (is_last && task.project_last));
    }
    // One image of what the forward pass has recorded of a stage.
    Planes<T> recorded(const void *array, int number, int64_t image) const {
        return this->image_of(array, number * this->plan.batch + image);
    }
    // What enters a stage.
    Planes<T> estimate(int number, int64_t image) const {
        return number == 0 ? this->image_of(task.estimate, image)
                           : recorded(task.estimates, number - 1, image);
    }
    const int8_t *groups(const Task &step) const {
        const int64_t row = step.image * this->plan.height + step.row * this->plan.tile_rows;
        return task.groups + row * this->group_bytes();
    }
};

inline nlnet_status check_forward(const nlnet_network *network, const nlnet_forward_task *task,
                                  bool with_arrays) {
    const nlnet_status status =
        check_size(network, task->batch, task->height, task->width, task->threads);
    if (status != NLNET_OK) return status;
    const bool stages_fit = 0 <= task->first_stage && task->first_stage < task->last_stage &&
                            task->last_stage <= network->shape.stages;
    const bool arrays_fit = !with_arrays || (task->estimate && task->noisy && task->groups &&
                                             task->updates && task->estimates);
    const bool box_fits = task->low == task->low && task->high == task->high;
    return stages_fit && arrays_fit && box_fits ? NLNET_OK : NLNET_BAD_ARGUMENT;
}

inline Plan training_plan(const nlnet_network *network, const nlnet_forward_task &task) {
    Plan plan = {};
    plan.batch = task.batch;
    plan.height = task.height;
    plan.width = task.width;
    plan.tile_rows = even_rows(task.height, kTrainingRows);
    plan.margin = network->shape.margin();
    plan.passes = task.last_stage - task.first_stage;
    plan.sweeps = int(task.batch < task.threads ? task.batch : task.threads);
    return plan;
}

}  // namespace
}  // namespace nlnet
