// Noise estimates of planes of any size and content.
#pragma once

#include "fuzz_run.h"

namespace fuzz {

inline void run_noise(Choices &choices) {
    nlnet_plane planes[3] = {};
    const int count = 1 + choices.below(3);
    bool sound = true, large_enough = false;
    size_t pixels = 0;
    for (int i = 0; i < count; i++) {
        planes[i].height = choices.below(9) ? 1 + choices.below(90) : choices.number(1, 90);
        planes[i].width = choices.below(9) ? 1 + choices.below(90) : choices.number(1, 90);
        const bool fits = planes[i].height > 0 && planes[i].width > 0 &&
                          planes[i].height <= 1 << 20 && planes[i].width <= 1 << 20;
        sound = sound && fits;
        large_enough = large_enough || (planes[i].height >= 3 && planes[i].width >= 3);
        if (fits) pixels += size_t(planes[i].height * planes[i].width);
    }
    nlnet_white_task task = {planes, count, double(choices.below(90)), 200, 0};
    if (choices.below(2)) task.start = choices.below(60);
    if (choices.below(9) == 0) {
        task.start = choices.below(2) ? -1 : double(INFINITY);
        sound = false;
    }
    const nlnet_set set = nlnet_set(choices.below(6));
    size_t size = 0;
    const nlnet_status status = nlnet_estimate_white(&task, set, nullptr, &size, nullptr);
    require(sound ? status != NLNET_BAD_ARGUMENT : status == NLNET_BAD_ARGUMENT,
            "planes are taken, or refused");
    if (!sound || status == NLNET_NO_SUCH_SET || pixels > 1 << 16) return;
    require(status == (large_enough ? NLNET_OK : NLNET_TOO_SMALL), "small planes are refused");
    if (status != NLNET_OK) return;
    const check::Array<float> values(pixels);
    const uint64_t seed = choices.word(), levels = 1 + uint64_t(choices.below(200));
    for (size_t i = 0; i < pixels; i++) {
        values.data[i] = float((i * i * 31 + seed % 97 * (i >> 3)) % levels);
    }
    // Every plane in memory of exactly its size, so that a sanitizer sees what is read behind it.
    const float *next = values.data;
    float *copies[3] = {};
    for (int i = 0; i < count; i++) {
        const size_t bytes = size_t(planes[i].height * planes[i].width) * sizeof(float);
        copies[i] = static_cast<float *>(malloc(bytes));
        memcpy(copies[i], next, bytes);
        planes[i].data = copies[i];
        next += bytes / sizeof(float);
    }
    const check::Array<char> memory(size);
    double sigma = -1;
    const auto make = [&](void *where, size_t *bytes, double **) {
        return nlnet_estimate_white(&task, set, where, bytes, &sigma);
    };
    double *unused = nullptr;
    refuse_bad_memory(make, memory.data, size, &unused);
    require(make(memory.data, &size, &unused) == NLNET_OK, "planes are looked at");
    require(sigma >= 0 && sigma <= double(levels), "an estimate is within what the values fill");
    for (float *copy : copies) free(copy);
}

}  // namespace fuzz
