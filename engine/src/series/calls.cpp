// The calls for series, checked: each runs to its end in the thread that calls it.
#include "../memory.h"
#include "../network.h"

namespace nlnet {
namespace {

constexpr int64_t kMostPixels = int64_t(1) << 40;
constexpr int kMostNeighbours = 64;

bool is_page(int64_t height, int64_t width) {
    return height > 0 && width > 0 && height <= kMostPixels / width;
}

// Say how much memory a call takes, or make it with what there is.
template <typename Pages>
nlnet_status call(nlnet_set set, const Pages &pages, void *memory, size_t *size,
                  size_t (*SeriesKernels::*scratch)(const Pages &),
                  void (*SeriesKernels::*run)(const Pages &, Memory &)) {
    if (size == nullptr || uintptr_t(memory) % kCacheLine != 0) return NLNET_BAD_ARGUMENT;
    const Kernels *kernels = kernels_of(set == NLNET_BEST ? nlnet_best_set() : set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    const size_t needed = (kernels->series->*scratch)(pages);
    if (needed == SIZE_MAX || (memory != nullptr && *size < needed)) return NLNET_NO_MEMORY;
    *size = needed;
    if (memory == nullptr) return NLNET_OK;
    Memory pieces(memory);
    (kernels->series->*run)(pages, pieces);
    return NLNET_OK;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_align(nlnet_set set, const nlnet_align_task *task, void *memory, size_t *size) {
    if (task == nullptr || !is_page(task->height, task->width)) return NLNET_BAD_ARGUMENT;
    if (memory != nullptr && !(task->reference && task->other && task->noisy && task->other_noisy &&
                               task->field && task->fits)) {
        return NLNET_BAD_ARGUMENT;
    }
    return call<AlignedPages>(set, *task, memory, size, &SeriesKernels::align_scratch,
                              &SeriesKernels::align);
}

nlnet_status nlnet_merge(nlnet_set set, const nlnet_merge_task *task, void *memory, size_t *size) {
    if (task == nullptr || !is_page(task->height, task->width)) return NLNET_BAD_ARGUMENT;
    if ((task->channels != 1 && task->channels != 3) || task->count < 0 ||
        task->count > kMostNeighbours || task->first < 0 || task->last > task->height) {
        return NLNET_BAD_ARGUMENT;
    }
    if (memory != nullptr && !(task->noisy && task->guide && task->merged && task->left &&
                               task->removed && (task->neighbours || task->count == 0))) {
        return NLNET_BAD_ARGUMENT;
    }
    return call<MergedPages>(set, *task, memory, size, &SeriesKernels::merge_scratch,
                             &SeriesKernels::merge);
}

nlnet_status nlnet_keep(nlnet_set set, const nlnet_keep_task *task, void *memory, size_t *size) {
    if (task == nullptr || !is_page(task->height, task->width)) return NLNET_BAD_ARGUMENT;
    if ((task->channels != 1 && task->channels != 3) || task->first < 0 ||
        task->last < task->first || task->last > task->height) {
        return NLNET_BAD_ARGUMENT;
    }
    if (memory != nullptr && !(task->noisy && task->merged && task->removed && task->kept)) {
        return NLNET_BAD_ARGUMENT;
    }
    return call<KeptPages>(set, *task, memory, size, &SeriesKernels::keep_scratch,
                           &SeriesKernels::keep);
}
