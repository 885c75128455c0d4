// Running jobs in exactly the memory that they ask for, and giving up where they do not as said.
#pragma once

#include "fuzz_blocks.h"
#include "threads.h"

namespace fuzz {

constexpr size_t kMostMemory = size_t(1) << 26;

inline long case_number = 0;

// Whether every job gets all the threads that it is made for, and not some of them.
inline bool all_threads = false;

inline void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "FAILED in case %ld: %s\n", case_number, what);
    abort();
}

// A function of the interface that makes something in memory says no to memory that cannot do.
template <typename Make, typename Made>
void refuse_bad_memory(Make make, char *memory, size_t size, Made **made) {
    size_t less = size - 1;
    require(make(memory, &less, made) == NLNET_NO_MEMORY, "too little memory is refused");
    require(make(memory + 8, &size, made) == NLNET_BAD_ARGUMENT, "misaligned memory is refused");
    require(make(memory, nullptr, made) == NLNET_BAD_ARGUMENT, "a missing size is refused");
}

// Run a job in exactly the memory that it asks for; false if it was refused or cancelled.
template <typename Task, typename Function, typename Network>
bool run(Choices &choices, Function function, const Network &network, const Task &task,
         int threads) {
    const auto make = [&](void *memory, size_t *size, nlnet_job **job) {
        return function(network, &task, memory, size, job);
    };
    size_t size = 0;
    if (make(nullptr, &size, nullptr) != NLNET_OK || size > kMostMemory) return false;
    const check::Array<char> memory(size);
    nlnet_job *job = nullptr;
    refuse_bad_memory(make, memory.data, size, &job);
    if (make(memory.data, &size, &job) != NLNET_OK) return false;
    if (choices.below(10) == 0) {
        for (int i = choices.below(20); i > 0; i--) nlnet_work(job);
        nlnet_cancel(job);
    }
    const int most = threads < check::kMostThreads ? threads : check::kMostThreads;
    const int some = 1 + choices.below(most);
    check::run_job(job, all_threads ? most : some);
    require(nlnet_progress(job) >= 0 && nlnet_progress(job) <= 1, "progress is a share");
    return !nlnet_was_cancelled(job);
}

}  // namespace fuzz
