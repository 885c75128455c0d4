#include "sweep.h"

namespace nlnet {
namespace {

template <typename T>
nlnet_job *make(const nlnet_network *network, const nlnet_denoise_task &task, Memory &memory) {
    Denoising<T> *job = memory.take<Denoising<T>>(1);
    make_denoising<T>(job, network, task, true, memory);
    if (job != nullptr) start_job(job);
    return job;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_denoise(const nlnet_network *network, const nlnet_denoise_task *task,
                           void *memory, size_t *size, nlnet_job **job) {
    if (task == nullptr) return NLNET_BAD_ARGUMENT;
    const nlnet_status status = check_size(network, 1, task->height, task->width, task->threads);
    if (status != NLNET_OK) return status;
    const bool single = network->element == NLNET_FLOAT;
    const size_t element = single ? sizeof(float) : sizeof(double);
    // Only its size may be asked for without an image.
    const bool image_fits =
        memory == nullptr || (usable(task->noisy, element) && usable(task->denoised, element));
    if (!tile_rows_fit(task->tile_rows) || !image_fits || task->low != task->low ||
        task->high != task->high) {
        return NLNET_BAD_ARGUMENT;
    }
    return make_in(memory, size, job, [&](Memory &pieces) {
        return single ? make<float>(network, *task, pieces) : make<double>(network, *task, pieces);
    });
}

int32_t nlnet_tile_rows(void) {
    return kTileRows;
}
