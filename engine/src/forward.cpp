// Training's forward pass: a batch through some stages, with what the backward pass needs.
#include "training.h"

namespace nlnet {
namespace {

template <typename T>
struct Forward : Training<T> {
    void spread(const Task &step, void *scratch) const {
        const Planes<T> estimate = this->estimate(step.pass, step.image);
        for (int64_t column = step.first; column < step.last; column++) {
            for (int channel = 0; channel < this->shape().channels; channel++) {
                this->kernels().spread(
                    this->shape(), this->run_stage(step.pass), channel,
                    this->tile(step, channel, column, estimate.read(channel), this->groups(step)),
                    scratch);
            }
        }
    }

    void finish(const Task &step, void *scratch) const {
        const int channels = this->shape().channels;
        const int64_t width = this->plan.width;
        T *line = static_cast<T *>(scratch);
        const Planes<T> estimate = this->estimate(step.pass, step.image);
        const Planes<T> noisy = this->image_of(this->task.noisy, step.image);
        const Planes<T> updates = this->recorded(this->task.updates, step.pass, step.image);
        const Planes<T> estimates = this->recorded(this->task.estimates, step.pass, step.image);
        for (int64_t y = step.first; y < step.last; y++) {
            for (int channel = 0; channel < channels; channel++) {
                T *update = updates.row(channel, y);
                this->kernels().fold(this->shape(), this->parts(step, channel), this->plan.height,
                                     width, y, line, update);
                this->kernels().descend(estimate.row(channel, y), noisy.row(channel, y),
                                        this->run_stage(step.pass).step_size, update, width);
                __builtin_memcpy(estimates.row(channel, y), update, size_t(width) * sizeof(T));
            }
            if (this->projects(step.pass)) {
                this->kernels().project(channels, RowOf<T>(estimates, channels, y).channels,
                                        this->box, width);
            }
        }
    }

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        const Forward &self = *static_cast<Forward *>(job);
        if (step.step == Step::kSpread) {
            self.spread(step, scratch);
        } else {
            self.finish(step, scratch);
        }
        return true;
    }
};

template <typename T>
nlnet_job *make(const nlnet_network *network, const nlnet_forward_task &task, Memory &memory) {
    Plan plan = training_plan(network, task);
    const int64_t threads_each = (task.threads + task.batch - 1) / task.batch;
    plan.chunk = int((plan.tile_columns() + threads_each - 1) / threads_each);
    const StageKernels<T> &kernels = stage_kernels<T>(*network->kernels);
    const size_t scratch = larger_size(kernels.spread_scratch(network->shape, plan.tile_rows),
                                       finish_scratch<T>(network->shape, plan.width));
    Forward<T> *job = memory.take<Forward<T>>(1);
    make_run<T>(job, network, plan, LayerSchedule(), make_box<T>(task.low, task.high), task.threads,
                scratch, memory);
    if (job == nullptr) return nullptr;
    start_job(job);
    job->run = Forward<T>::run_task;
    job->task = task;
    return job;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_forward(const nlnet_network *network, const nlnet_forward_task *task,
                           void *memory, size_t *size, nlnet_job **job) {
    if (task == nullptr) return NLNET_BAD_ARGUMENT;
    const nlnet_status status = check_forward(network, task, memory != nullptr);
    if (status != NLNET_OK) return status;
    return make_in(memory, size, job, [&](Memory &pieces) {
        return network->element == NLNET_FLOAT ? make<float>(network, *task, pieces)
                                               : make<double>(network, *task, pieces);
    });
}
