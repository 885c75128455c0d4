// Threads that work on one job: a thread that calls nlnet_work takes whichever task is ready.
//
// The schedule is behind a lock that is held for some hundred instructions, and is never waited for
// longer than that: a thread that does not get it says that nothing is ready. A thread that has run
// a task only marks its slot; whoever holds the lock next tells the schedule.
#include "job.h"

#include "arithmetic.h"

namespace nlnet {
namespace {

constexpr int kTries = 200;

bool try_lock(nlnet_job *job) {
    for (int i = 0; i < kTries; i++) {
        if (__atomic_exchange_n(&job->lock, 1, __ATOMIC_ACQUIRE) == 0) return true;
    }
    return false;
}

void unlock(nlnet_job *job) {
    __atomic_store_n(&job->lock, 0, __ATOMIC_RELEASE);
}

bool is_cancelled(const nlnet_job *job) {
    return __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED) != 0;
}

void set_progress(nlnet_job *job, double share) {
    uint64_t bits;
    __builtin_memcpy(&bits, &share, sizeof(bits));
    __atomic_store_n(&job->progress, bits, __ATOMIC_RELAXED);
}

// Tell the schedule of the tasks that have ended, and count those that run.
int settle(nlnet_job *job) {
    int running = 0;
    bool news = false;
    for (int number = 0; number < job->threads; number++) {
        Slot &slot = job->slots[number];
        const int32_t state = __atomic_load_n(&slot.state, __ATOMIC_ACQUIRE);
        if (state == Slot::kEnded) {
            job->schedule.end(slot.task);
            __atomic_store_n(&slot.state, Slot::kFree, __ATOMIC_RELAXED);
            news = true;
        }
        running += state == Slot::kRunning;
    }
    if (news) set_progress(job, job->start + job->share * job->schedule.share_done());
    return running;
}

// A free slot with a task, or NULL and why there is none.
Slot *begin_task(nlnet_job *job, nlnet_progress_state *why) {
    const int running = settle(job);
    *why = running == 0 ? NLNET_DONE : NLNET_CANCELLED;
    if (is_cancelled(job)) return nullptr;
    if (job->schedule.done() && (job->advance == nullptr || !job->advance(job))) {
        __atomic_store_n(&job->finished, 1, __ATOMIC_RELAXED);
        return nullptr;
    }
    *why = NLNET_IDLE;
    for (int number = 0; number < job->threads; number++) {
        Slot &slot = job->slots[number];
        if (__atomic_load_n(&slot.state, __ATOMIC_RELAXED) != Slot::kFree) continue;
        if (!job->schedule.next(&slot.task)) return nullptr;
        __atomic_store_n(&slot.state, Slot::kRunning, __ATOMIC_RELAXED);
        return &slot;
    }
    return nullptr;
}

}  // namespace

void make_job(nlnet_job *job, const Plan &plan, const LayerSchedule &refinement, int threads,
              size_t scratch, Memory &memory) {
    Schedule counted;
    Schedule &schedule = job == nullptr ? counted : job->schedule;
    schedule.make(plan, refinement, memory);
    Slot *slots = memory.take<Slot>(threads);
    for (int number = 0; number < threads; number++) {
        char *piece = memory.take<char>(int64_t(scratch));
        if (slots == nullptr || piece == nullptr) continue;  // counting
        slots[number].state = Slot::kFree;
        slots[number].scratch = piece;
    }
    if (job == nullptr) return;
    job->threads = threads;
    job->slots = slots;
    job->advance = nullptr;
    job->start = 0;
    job->share = 1;
}

void start_job(nlnet_job *job) {
    job->lock = job->cancelled = job->finished = 0;
    job->failure = NLNET_OK;
    set_progress(job, 0);
}

}  // namespace nlnet

using namespace nlnet;

nlnet_progress_state nlnet_work(nlnet_job *job) {
    if (!try_lock(job)) return NLNET_IDLE;
    nlnet_progress_state state;
    Slot *slot = begin_task(job, &state);
    unlock(job);
    if (slot == nullptr) return state;
    {
        const DefaultArithmetic arithmetic;
        if (!job->run(job, slot->task, slot->scratch)) nlnet_cancel(job);
    }
    __atomic_store_n(&slot->state, Slot::kEnded, __ATOMIC_RELEASE);
    return NLNET_RAN;
}

double nlnet_progress(const nlnet_job *job) {
    const uint64_t bits = __atomic_load_n(&job->progress, __ATOMIC_RELAXED);
    double share;
    __builtin_memcpy(&share, &bits, sizeof(share));
    return share;
}

void nlnet_cancel(nlnet_job *job) {
    __atomic_store_n(&job->cancelled, 1, __ATOMIC_RELAXED);
}

int nlnet_was_cancelled(const nlnet_job *job) {
    return is_cancelled(job) && !__atomic_load_n(&job->finished, __ATOMIC_RELAXED);
}

nlnet_status nlnet_failure(const nlnet_job *job) {
    return nlnet_status(__atomic_load_n(&job->failure, __ATOMIC_RELAXED));
}
