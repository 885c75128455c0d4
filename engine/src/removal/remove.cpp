// Making the job that removes noise: its networks checked, and everything that is known of a scale.
#include "removal_job.h"

namespace nlnet {
namespace {

nlnet_job *make(const nlnet_network *const *networks, const nlnet_removal_task &task,
                const RemovalPlan &plan, const Kernels &kernels, Memory &memory) {
    Removal *job = reinterpret_cast<Removal *>(memory.take<char>(sizeof(Removal)));
    const bool alone = task.place != nullptr;
    Stabiliser stabilisers[3] = {};
    const bool dependent = task.noise.kind == NLNET_DEPENDENT;
    for (int i = 0; dependent && i < task.noise.level_count; i++) {
        stabilisers[i].make(task.noise.levels[i], memory);
    }
    for (int i = task.noise.level_count; dependent && i < task.channels; i++) {
        stabilisers[i] = stabilisers[0];
    }
    RowsScratch reading, writing;
    reading.make(task.width, memory);
    writing.make(task.width, memory);
    float *changes[NLNET_SCALES] = {};
    size_t most = 0;
    for (int scale = 0; scale < plan.scales; scale++) {
        const ScalePlan &here = plan.all[scale];
        if (scale > 0) changes[scale] = memory.take<float>(task.channels, here.height, here.width);
        Evening counted;
        Evening &evening = job == nullptr ? counted : job->evenings[scale];
        const double center = task.black + task.span / 2;
        if (here.evened && here.sigma > 0) {
            evening.make(here.strengths, here.sigma, center, here.region, memory);
        }
        Memory region(nullptr);
        nlnet_denoise_task inner = {};
        inner.height = here.height;
        inner.width = here.width;
        inner.threads = task.threads;
        inner.tile_rows = task.tile_rows;
        Removal::make_scale(nullptr, inner, here.sigma > 0 ? networks[scale] : nullptr,
                            scale == 0 && !plan.coarse, task.elsewhere != nullptr, task.channels,
                            region);
        most = region.size() > most ? region.size() : most;
        if (region.impossible()) most = SIZE_MAX / 2;
    }
    char *region = memory.take<char>(int64_t(most));
    if (job == nullptr) return nullptr;
    job->asked = task;
    job->place = alone ? *task.place : nlnet_place{};
    job->scales = plan.scales;
    job->reading = reading;
    job->writing = writing;
    job->region = region;
    for (int i = 0; i < 3; i++) job->stabilisers[i] = stabilisers[i];
    for (int scale = 0; scale < plan.scales; scale++) {
        const ScalePlan &here = plan.all[scale];
        const bool full = scale == 0 && !plan.coarse, noisy = here.sigma > 0;
        Remover &remover = job->removers[scale];
        job->changes[scale] = changes[scale];
        job->networks[scale] = noisy ? networks[scale] : nullptr;
        remover = {};
        remover.kernels = kernels.removal;
        remover.channels = task.channels;
        remover.scale = scale;
        remover.height = here.height;
        remover.width = here.width;
        remover.pyramid = {kernels.removal, {task.noisy}, task.width};
        if (scale + 1 < plan.scales) {
            const ScalePlan &next = plan.all[scale + 1];
            remover.coarser = {changes[scale + 1], next.height, next.width};
        } else if (alone) {
            remover.coarser = {task.place->change, task.height / 2, task.width / 2};
        }
        remover.stabilisers = dependent ? job->stabilisers : nullptr;
        remover.evening = here.evened && noisy ? &job->evenings[scale] : nullptr;
        if (noisy) {
            const double factor = networks[scale]->sigma / here.sigma;
            // The stages do not depend on where values begin; a refinement does.
            const Refinement<float> &refinement =
                *static_cast<const Refinement<float> *>(networks[scale]->refinement);
            const bool refines = full && refinement.specs.count > 0;
            remover.factor = float(factor);
            remover.black = refines ? float(task.black * factor) : 0;
        }
        // At smaller scales values may leave the box for now.
        remover.clipped = full && task.low <= task.high;
        remover.low = float(task.low);
        remover.high = float(task.high);
        remover.shares = {1, 1};
        if (full) remover.shares = used_shares(task.noise, task.luma, task.chroma);
    }
    job->scale = plan.scales - 1;
    job->begin_scale();
    start_job(job);
    return job;
}

bool usable(const nlnet_pixels &pixels, bool by_callback) {
    if (pixels.type < NLNET_UINT8 || pixels.type > NLNET_FLOAT64) return false;
    if (pixels.rows.data != nullptr) return is_aligned(pixels.rows, bytes_of(pixels.type));
    return by_callback && pixels.rows.rows != nullptr;
}

nlnet_status check_networks(const nlnet_network *const *networks, const nlnet_removal_task &task,
                            const RemovalPlan &plan, const Kernels **kernels) {
    *kernels = nullptr;
    for (int scale = 0; scale < plan.scales; scale++) {
        const ScalePlan &here = plan.all[scale];
        if (!(here.sigma > 0)) continue;
        if (!is_finite(here.sigma)) return NLNET_BAD_ARGUMENT;
        const nlnet_network *network = networks[scale];
        const nlnet_status status = check_size(network, 1, here.height, here.width, task.threads);
        if (status != NLNET_OK) return status;
        if (network->element != NLNET_FLOAT || network->shape.channels != task.channels ||
            !(network->sigma > 0) || !is_finite(network->sigma)) {
            return NLNET_BAD_ARGUMENT;
        }
        *kernels = network->kernels;
    }
    if (*kernels == nullptr) *kernels = kernels_of(nlnet_best_set());
    return NLNET_OK;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_remove(const nlnet_network *const networks[NLNET_SCALES],
                          const nlnet_removal_task *task, void *memory, size_t *size,
                          nlnet_job **job) {
    if (networks == nullptr || !is_sound(task) || !tile_rows_fit(task->tile_rows) ||
        task->threads < 1 || task->threads > kMostThreads) {
        return NLNET_BAD_ARGUMENT;
    }
    if (memory != nullptr &&
        !(nlnet::usable(task->noisy, false) && nlnet::usable(task->denoised, true))) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalPlan plan(*task);
    const Kernels *kernels;
    const nlnet_status status = check_networks(networks, *task, plan, &kernels);
    if (status != NLNET_OK) return status;
    return make_in(memory, size, job,
                   [&](Memory &pieces) { return make(networks, *task, plan, *kernels, pieces); });
}
