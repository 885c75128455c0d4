// Finding the groups of a batch of images, for training, which uses them again and again.
#include "run.h"

namespace nlnet {
namespace {

constexpr int kRows = 32;  // of a tile: a low one keeps more of its candidates in the cache

template <typename T>
struct Finding : Run<T> {
    nlnet_match_task task;

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        const Finding &self = *static_cast<Finding *>(job);
        const Plan &plan = self.plan;
        const int64_t rows = step.image * plan.height;
        const T *image = static_cast<const T *>(self.task.images) + rows * plan.width;
        const Rows<const T> luminance = {image, plan.width, plan.height};
        const int64_t top = step.row * plan.tile_rows;
        self.match(step, luminance, self.task.groups + (rows + top) * self.group_bytes(), scratch);
        return true;
    }
};

template <typename T>
nlnet_job *make(const nlnet_network *network, const nlnet_match_task &task, Memory &memory) {
    Plan plan = {};
    plan.batch = task.batch;
    plan.height = task.height;
    plan.width = task.width;
    plan.tile_rows = even_rows(task.height, kRows);
    plan.margin = network->shape.margin();
    plan.matches = true;
    plan.sweeps = int(task.batch < task.threads ? task.batch : task.threads);
    plan.chunk = 1;
    plan.match_columns = kMatchColumns;
    plan.matching_share = 1;
    const MatchingKernels<T> &kernels = matching_kernels<T>(*network->kernels);
    Finding<T> *job = memory.take<Finding<T>>(1);
    make_run<T>(job, network, plan, LayerSchedule(), make_box<T>(1, 0), task.threads,
                kernels.scratch(network->shape, plan.tile_rows), memory);
    if (job == nullptr) return nullptr;
    start_job(job);
    job->run = Finding<T>::run_task;
    job->task = task;
    return job;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_match(const nlnet_network *network, const nlnet_match_task *task, void *memory,
                         size_t *size, nlnet_job **job) {
    if (task == nullptr || (memory != nullptr && (!task->images || !task->groups))) {
        return NLNET_BAD_ARGUMENT;
    }
    const nlnet_status status =
        check_size(network, task->batch, task->height, task->width, task->threads);
    if (status != NLNET_OK) return status;
    return make_in(memory, size, job, [&](Memory &pieces) {
        return network->element == NLNET_FLOAT ? make<float>(network, *task, pieces)
                                               : make<double>(network, *task, pieces);
    });
}
