// A job: a schedule, what its tasks do, and the lock and scratch memory that threads share.
#pragma once

#include "network.h"
#include "schedule.h"

namespace nlnet {

constexpr int kMostThreads = 1024;

// One thread's place in a job.
struct Slot {
    enum State : int32_t { kFree, kRunning, kEnded };

    int32_t state;  // atomic
    Task task;
    void *scratch;
};

}  // namespace nlnet

struct nlnet_job {
    nlnet::Schedule schedule;
    // Runs a task; false cancels the job.
    bool (*run)(nlnet_job *job, const nlnet::Task &task, void *scratch);
    int32_t threads;
    nlnet::Slot *slots;

    // Atomic from here on.
    int32_t lock;
    int32_t cancelled;
    int32_t finished;
    uint64_t progress;  // bits of a double
};

namespace nlnet {

// Take memory for the slots and their scratch, and begin.
void make_job(nlnet_job *job, const Plan &plan, const LayerSchedule &refinement, int threads,
              size_t scratch, Memory &memory);

}  // namespace nlnet
