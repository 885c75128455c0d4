// Estimates of noise from samples of any size, type and content.
#pragma once

#include "fuzz_run.h"
#include "plain_eye.h"
#include "sample_case.h"

namespace fuzz {

// One number of a task out of its bounds; false if all are as they were.
inline bool spoil_estimate(Choices &choices, nlnet_estimate_task *task) {
    switch (choices.below(9)) {
        case 0: task->sample.channels = 2; return true;
        case 1: task->sample.type = 8 + choices.below(99); return true;
        case 2: task->sample.pages = choices.below(2) ? 0 : int64_t(1) << 40; return true;
        case 3: task->sample.grid.rows = choices.below(2) ? -1 : 5000; return true;
        case 4: task->sample.grid.width = int64_t(1) << 40; return true;
        case 5: task->kind = choices.below(2) ? -1 : 4; return true;
        case 6: task->threads = choices.below(2) ? 0 : 1025; return true;
        default: return false;
    }
}

inline void run_estimate(Choices &choices, const nlnet_eye *eye, nlnet_set set) {
    check::Random random = {choices.word() | 1};
    const int64_t height = 1 + choices.below(90), width = 1 + choices.below(90);
    const samples::Picture picture = {double(choices.below(40)), choices.below(9) / 4.0,
                                      choices.below(2) != 0, choices.below(4) == 0};
    const samples::Sample sample(&random, choices.below(8), choices.below(2) ? 3 : 1,
                                 1 + choices.below(2), 1 + choices.below(2), 1 + choices.below(2),
                                 height, width, picture);
    nlnet_found_noise found = {}, same = {};
    nlnet_estimate_task task = {};
    task.sample = sample.given;
    task.measures = sample.measures();
    task.kind = choices.below(4);
    task.set = set;
    task.threads = 1 + choices.below(4);
    task.found = &found;
    const bool spoilt = choices.below(3) == 0 && spoil_estimate(choices, &task);
    size_t size = 0;
    const nlnet_status status = nlnet_estimate_noise(eye, &task, nullptr, &size, nullptr);
    const bool small = height < 8 || width < 8;
    const nlnet_status wanted = spoilt ? NLNET_BAD_ARGUMENT : small ? NLNET_TOO_SMALL : NLNET_OK;
    require(status == wanted, "samples are taken, or refused");
    if (status != NLNET_OK || !run(choices, nlnet_estimate_noise, eye, task, task.threads)) return;
    const bool whole = found.kind >= 0 && found.kind <= 3 && found.sigma >= 0 &&
                       found.certainty >= 0 && found.certainty <= 1;
    require(whole, "what is found is a record");
    task.threads = 1;
    task.found = &same;
    if (!run(choices, nlnet_estimate_noise, eye, task, 1)) return;
    found.strengths = same.strengths = nullptr;  // in memory that is gone
    require(!memcmp(&found, &same, sizeof(found)), "threads change no bit");
}

inline void run_noise(Choices &choices) {
    check::Random random = {choices.word() | 1};
    const nlnet_set set = nlnet_set(choices.below(6));
    const plain::LevelSizes sizes = plain::random_sizes(&random);
    const plain::Eye values = plain::random_eye(sizes, 16 + 8 * choices.below(2), &random);
    size_t bytes = 0, size = 0;
    uint8_t *block = plain::block_of(values, &bytes);
    if (nlnet_eye_make(block, bytes, set, nullptr, &size, nullptr) == NLNET_OK) {
        const check::Array<char> memory(size);
        nlnet_eye *eye = nullptr;
        nlnet_eye_make(block, bytes, set, memory.data, &size, &eye);
        run_estimate(choices, eye, set);
    }
    free(block);
    values.layers.release();
}

}  // namespace fuzz
