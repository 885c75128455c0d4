// Threads of a test program that work on a job; where there are none, one works alone.
#pragma once

#include "../include/nlnet_engine.h"

#if !defined(__wasm__)
#include <pthread.h>
#include <sched.h>
#define NLNET_HAS_THREADS 1
#endif

namespace check {

inline void *work_until_done(void *job) {
    for (;;) {
        const nlnet_progress_state state = nlnet_work(static_cast<nlnet_job *>(job));
        if (state == NLNET_DONE || state == NLNET_CANCELLED) return nullptr;
#ifdef NLNET_HAS_THREADS
        if (state == NLNET_IDLE) sched_yield();
#endif
    }
}

constexpr int kMostThreads = 8;

inline void run_job(nlnet_job *job, int threads) {
#ifdef NLNET_HAS_THREADS
    pthread_t others[kMostThreads];
    for (int i = 1; i < threads; i++) pthread_create(&others[i], nullptr, work_until_done, job);
    work_until_done(job);
    for (int i = 1; i < threads; i++) pthread_join(others[i], nullptr);
#else
    (void)threads;
    work_until_done(job);
#endif
}

}  // namespace check
