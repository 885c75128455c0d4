// Removal of any noise from images of any size and type, and families damaged in any way.
#pragma once

#include "fuzz_run.h"

namespace fuzz {

// Mostly what may be; at times 0, negative, infinite or not a number.
inline double real(Choices &choices, double low, double high) {
    const double odd[] = {0, -1, double(INFINITY), double(NAN), 1e300};
    if (choices.below(60) == 0) return odd[choices.below(5)];
    return low + (high - low) * choices.byte() / 255;
}

// A removal task with all that it points to.
struct RemovalCase {
    static constexpr int64_t kSide = 48;
    static constexpr int kCells = 6;

    nlnet_removal_task task = {};
    nlnet_place place = {};
    nlnet_level levels[3] = {};
    double points[6];
    float strengths[2 * NLNET_SCALES * kCells * kCells];
    check::Array<float> change;
    check::Array<double> noisy, denoised;  // room for pixels of any type

    RemovalCase(Choices &choices, int channels)
        : change(size_t(channels * kSide * kSide)),
          noisy(size_t(channels * kSide * kSide)),
          denoised(noisy.count) {
        task.height = choices.number(3, kSide);
        task.width = choices.number(3, kSide);
        task.channels = int32_t(choices.below(30) ? channels : choices.number(1, 3));
        task.luma = real(choices, 0, 2);
        task.chroma = real(choices, 0, 2);
        task.span = real(choices, 1, 255);
        task.black = real(choices, -9, 9);
        task.low = real(choices, 0, 9);
        task.high = real(choices, 0, 255);
        task.threads = int32_t(choices.number(1, 4));
        task.tile_rows = int32_t(choices.below(2) ? 0 : choices.number(8, 40));
        nlnet_noise &noise = task.noise;
        noise.kind = int32_t(choices.below(choices.below(20) ? 3 : 9));
        noise.sigma = real(choices, 1, 30);
        noise.certainty = real(choices, 0, 1);
        noise.rows = 1 + choices.below(kCells);
        noise.columns = 1 + choices.below(kCells);
        noise.strengths = strengths;
        check::Random random = {choices.word() | 1};
        const double odd = choices.below(9) ? 20 : real(choices, 0, 20);
        for (float &strength : strengths) {
            strength = random.below(4) ? float(odd * random.uniform()) : 0;
        }
        noise.levels = levels;
        noise.level_count = choices.below(30) ? 1 : int32_t(choices.number(1, 3));
        for (nlnet_level &level : levels) {
            level.gain = real(choices, 0.01, 3);
            level.offset = real(choices, -20, 50);
            level.points = choices.below(2) ? points : nullptr;
            level.count = choices.below(30) ? 3 : 2;
        }
        for (int i = 0; i < 6; i++) points[i] = real(choices, 1, 9) + (i % 2 ? 0 : 30 * i);
        if (choices.below(4) == 0) {
            place.scale = int32_t(choices.number(0, 2));
            place.height = choices.number(kSide, 200);
            place.width = choices.number(kSide, 200);
            place.top = choices.number(0, 99);
            place.left = choices.number(0, 99);
            place.change = choices.below(2) ? change.data : nullptr;
            task.place = &place;
        }
        for (size_t i = 0; i < noisy.count; i++) {
            noisy.data[i] = 0;
            denoised.data[i] = 0;
            change.data[i] = float(i % 7) - 3;
        }
        task.noisy = pixels(choices, noisy.data);
        task.denoised = pixels(choices, denoised.data);
        for (size_t i = 0; task.noisy.type == NLNET_FLOAT32 && i < noisy.count; i++) {
            reinterpret_cast<float *>(noisy.data)[i] = float(i * i % 251);
        }
    }
    bool is_small() const {
        return task.height <= kSide && task.width <= kSide && task.height > 0 && task.width > 0;
    }
    nlnet_pixels pixels(Choices &choices, double *data) const {
        const ptrdiff_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 8};
        const int type = choices.below(8);
        const ptrdiff_t size = sizes[type], width = ptrdiff_t(is_small() ? task.width : 1);
        const ptrdiff_t plane = width * ptrdiff_t(is_small() ? task.height : 1);
        return {type, {data, plane * size, width * size, size, nullptr, nullptr}};
    }
};

// Whatever is asked for is refused, or done within the memory that was asked for, with the same
// result for any number of threads.
inline void run_removal(Choices &choices, const nlnet_network *network, int channels) {
    RemovalCase c(choices, channels);
    const nlnet_network *networks[NLNET_SCALES];
    for (const nlnet_network *&each : networks) each = choices.below(30) ? network : nullptr;
    int32_t scales = 0;
    double sigmas[NLNET_SCALES], span = 0, black = 0;
    const nlnet_status told = nlnet_removal_sigmas(&c.task, &scales, sigmas);
    require(told != NLNET_OK || (scales >= 1 && scales <= NLNET_SCALES), "there are scales");
    nlnet_fill(&c.task.noise, 0, 255, &span, &black);
    if (!c.is_small() || !run(choices, nlnet_remove, networks, c.task, c.task.threads)) return;
    const check::Array<double> before(c.denoised.count);
    memcpy(before.data, c.denoised.data, c.denoised.count * sizeof(double));
    c.task.threads = 1;
    if (!run(choices, nlnet_remove, networks, c.task, 1)) return;
    require(memcmp(before.data, c.denoised.data, before.count * sizeof(double)) == 0,
            "threads change nothing");
}

// The block of a family: two sets of the stages of a network's block, and no refinement.
inline void run_family(Choices &choices, const unsigned char *block, size_t bytes) {
    const size_t stages = bytes - kHead, total = kHead + 16 + 2 * stages;
    const check::Array<unsigned char> family(total);
    const uint32_t sets = 2;
    const uint64_t size = total;
    const double sigmas[] = {real(choices, 1, 20), real(choices, 30, 90)};
    memcpy(family.data, block, kHead);
    memcpy(family.data + 44, &sets, sizeof(sets));
    memcpy(family.data + 72, &size, sizeof(size));
    memcpy(family.data + kHead, sigmas, sizeof(sigmas));
    for (int set = 0; set < 2; set++) {
        memcpy(family.data + kHead + 16 + size_t(set) * stages, block + kHead, stages);
    }
    size_t given = total;
    const bool sound = choices.below(2) != 0;
    if (!sound) damage(choices, family.data, &given, given);
    unsigned char *exact = static_cast<unsigned char *>(malloc(given ? given : 1));
    memcpy(exact, family.data, given);
    const double sigma = real(choices, 0.5, 120);
    size_t needed = 0;
    if (nlnet_family_at(exact, given, sigma, nullptr, &needed) == NLNET_OK) {
        const check::Array<unsigned char> made(needed);
        require(nlnet_family_at(exact, given, sigma, made.data, &needed) == NLNET_OK,
                "a family is taken twice");
        size_t memory = 0;
        const nlnet_status taken = nlnet_network_make(made.data, needed, NLNET_FLOAT, NLNET_BEST,
                                                      nullptr, &memory, nullptr);
        require(!sound || taken == NLNET_OK, "what a family gives is a network");
        size_t less = needed - 1;
        require(nlnet_family_at(exact, given, sigma, made.data, &less) == NLNET_NO_MEMORY,
                "too little memory for a block is refused");
    }
    free(exact);
}

}  // namespace fuzz
