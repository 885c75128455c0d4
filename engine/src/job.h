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
    // Begins what follows when all tasks have ended; false if nothing does. NULL: nothing does.
    bool (*advance)(nlnet_job *job);
    double start, share;  // what part of all work the schedule is, for progress
    int32_t threads;
    nlnet::Slot *slots;

    // Atomic from here on.
    int32_t lock;
    int32_t cancelled;
    int32_t finished;
    int32_t failure;    // nlnet_status
    uint64_t progress;  // bits of a double
};

namespace nlnet {

// Take memory for the schedule, the slots and their scratch.
void make_job(nlnet_job *job, const Plan &plan, const LayerSchedule &refinement, int threads,
              size_t scratch, Memory &memory);
// Let threads begin.
void start_job(nlnet_job *job);

}  // namespace nlnet
