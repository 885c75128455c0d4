// What the noise of an image is: the job that finds it out, in rounds.
#include "../block.h"
#include "../job.h"
#include "estimator.h"

namespace nlnet {
namespace {

// The tasks of a round are independent, and wait for all of the round before.
enum Round : int {
    kScaleTiles,  // a tile each
    kLookAtPieces,
    kSee,
    kCutBlocks,  // a plane each
    kConclude,
    kRounds
};

struct Estimating : nlnet_job {
    Estimator estimator;
    int round;
    void *schedule_memory;

    int64_t tasks_of(int number) const {
        const bool flat = estimator.is_flat(), looks = estimator.looks && !flat;
        switch (number) {
            case kScaleTiles: return flat ? 0 : estimator.tiles();
            case kLookAtPieces: return looks ? estimator.piece_count() : 0;
            case kSee: return looks ? 1 : 0;
            case kCutBlocks: return estimator.wants_blocks() ? estimator.plane_count() : 0;
            default: return 1;
        }
    }

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        Estimating *own = static_cast<Estimating *>(job);
        switch (own->round) {
            case kScaleTiles: own->estimator.scale_tile(step.image); break;
            case kLookAtPieces: own->estimator.look_at(step.image, scratch); break;
            case kSee: own->estimator.see(); break;
            case kCutBlocks: own->estimator.cut_blocks(step.image, scratch); break;
            default: own->estimator.conclude(); break;
        }
        return true;
    }

    // To the schedule, a task is one of matching a small image.
    static Plan plan_of(int64_t tasks, int threads) {
        Plan plan = {};
        plan.batch = tasks;
        plan.height = plan.width = plan.tile_rows = plan.match_columns = 1;
        plan.matches = true;
        plan.matching_share = 1;
        plan.sweeps = threads;
        return plan;
    }

    static bool begin_next_round(nlnet_job *job) {
        Estimating *own = static_cast<Estimating *>(job);
        int64_t tasks = 0;
        while (tasks == 0) {
            if (++own->round >= kRounds) return false;
            tasks = own->tasks_of(own->round);
        }
        Memory memory(own->schedule_memory);
        own->schedule.make(plan_of(tasks, own->estimator.task.threads), LayerSchedule(), memory);
        own->start = double(own->round) / kRounds;
        own->share = 1.0 / kRounds;
        return true;
    }
};

nlnet_job *make(const nlnet_eye *eye, const nlnet_estimate_task &task, const Kernels &kernels,
                Memory &memory) {
    Estimating *job = memory.take<Estimating>(1);
    Estimator counted;
    Estimator &estimator = job == nullptr ? counted : job->estimator;
    estimator.make(eye, task, kernels, memory);
    // The schedule of each round takes the place of the one before.
    const Plan plan = Estimating::plan_of(1, task.threads);
    Memory needed(nullptr);
    Schedule().make(plan, LayerSchedule(), needed);
    void *schedule_memory = memory.take<char>(int64_t(needed.size()));
    make_job(job, plan, LayerSchedule(), task.threads, estimator.scratch(), memory);
    if (job == nullptr) return nullptr;
    job->run = Estimating::run_task;
    job->advance = Estimating::begin_next_round;
    job->schedule_memory = schedule_memory;
    job->round = -1;
    start_job(job);
    Estimating::begin_next_round(job);
    return job;
}

bool are_sound(const nlnet_measures &measures) {
    return measures.low <= measures.high && is_finite(measures.high - measures.low) &&
           is_finite(measures.low) && measures.step >= 0;
}

bool can_look(const nlnet_eye *eye, int32_t kind) {
    if (kind == NLNET_WHITE_NOISE || kind == NLNET_PHOTON_NOISE) return true;
    return eye != nullptr && eye->outputs >= kEyeMaps && eye->specs.unit() <= 2 * kLeastSide;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_estimate_noise(const nlnet_eye *eye, const nlnet_estimate_task *task,
                                  void *memory, size_t *size, nlnet_job **job) {
    const bool begins = memory != nullptr;
    if (task == nullptr || !is_sound(&task->sample, begins) || task->threads < 1 ||
        task->threads > kMostThreads || task->kind < NLNET_NO_NOISE ||
        task->kind > NLNET_CAMERA_NOISE || !can_look(eye, task->kind) ||
        (begins && (task->found == nullptr || !are_sound(task->measures)))) {
        return NLNET_BAD_ARGUMENT;
    }
    if (smaller_of(task->sample.grid.height, task->sample.grid.width) < kLeastSide) {
        return NLNET_TOO_SMALL;
    }
    const Kernels *kernels = kernels_of(task->set == NLNET_BEST ? nlnet_best_set() : task->set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    return make_in(memory, size, job,
                   [&](Memory &pieces) { return make(eye, *task, *kernels, pieces); });
}
