// What a fuzzer chooses: networks, and ways to damage their parameter blocks.
#pragma once

#include "plain.h"

namespace fuzz {

// Choices come from bytes, so that a fuzzer can change one of them.
struct Choices {
    const uint8_t *next;
    size_t left;

    uint8_t byte() { return left == 0 ? 0 : (--left, *next++); }
    int below(int count) { return byte() % count; }
    uint64_t word() {
        uint64_t bits = 0;
        for (int i = 0; i < 8; i++) bits = bits << 8 | byte();
        return bits;
    }
    // Mostly what may be; at times zero, negative, or far too much.
    int64_t number(int64_t low, int64_t high) {
        switch (below(40)) {
            case 0: return 0;
            case 1: return -1 - below(100);
            case 2: return int64_t(word());
            case 3: return int64_t(1) << below(63);
            default: return low + int64_t(word() % uint64_t(high - low + 1));
        }
    }
};

inline plain::Config small_config(Choices &choices) {
    plain::Config config = {};
    config.channels = choices.below(3) ? 1 : 3;
    config.stages = 1 + choices.below(2);
    config.patch = 3 + 2 * choices.below(4);
    config.group = choices.below(2) ? 8 : 1 + choices.below(12);
    config.window = choices.below(2) ? 9 : 5 + 2 * choices.below(14);
    config.rbf_count = choices.below(2) ? 21 : 2 + choices.below(70);
    config.project_every_stage = choices.below(2) != 0;
    config.rbf_range = 100;
    config.rbf_std = 200.0 / (config.rbf_count - 1);
    if (choices.below(2)) {
        check::Random random = {choices.word() | 1};
        config.refinement = plain::random_sizes(&random);
    }
    return config;
}

constexpr size_t kHead = 80, kRefinementHead = 72;

// Change bytes of the block, mostly of its heads, or cut off its end. `refinement` is where that
// begins, if there is one, and the end otherwise.
inline void damage(Choices &choices, uint8_t *block, size_t *bytes, size_t refinement) {
    for (int i = choices.below(6); i > 0; i--) {
        size_t at = size_t(choices.word() % (choices.below(4) ? kHead : *bytes));
        if (refinement < *bytes && choices.below(2)) at = refinement + at % kRefinementHead;
        if (choices.below(2)) {
            block[at] = choices.byte();
        } else if (at / 4 * 4 + 4 <= *bytes) {
            const uint32_t value = uint32_t(choices.number(0, 64));
            memcpy(block + at / 4 * 4, &value, 4);
        }
    }
    if (choices.below(4)) return;
    if (choices.below(2)) {
        *bytes = size_t(choices.word() % (*bytes + 1));
    } else if (refinement < *bytes) {
        *bytes = refinement + size_t(choices.below(2 * kRefinementHead)) % (*bytes - refinement);
    }
    // As if it had always been so long.
    const uint64_t total = *bytes;
    if (*bytes >= kHead && choices.below(2)) memcpy(block + 72, &total, sizeof(total));
}

// One of a refinement's sizes out of its bounds, or a value that is not finite.
inline void spoil(Choices &choices, uint8_t *head, int levels) {
    const int level = choices.below(plain::kMostLevels);
    uint32_t number = uint32_t(choices.word()) | 9;  // no multiple of 8, and more than 8
    if (choices.below(2)) number = 1u << (9 + choices.below(23));  // too many of everything
    size_t at = 24 + 16 * size_t(choices.below(3)) + 4 * size_t(level);
    switch (choices.below(4)) {
        case 0:
            at = 0;
            if (choices.below(2)) number = 0;
            break;
        case 1: at = 4; break;
        case 2:
            at = 8 + 8 * size_t(choices.below(2)) + 4;
            number = 0x7FF00000u | (number & 0x800FFFFFu);  // infinite, or not a number
            break;
        default:
            // What has no blocks: the lowest level on the way up, and those that are not there.
            if (choices.below(2)) {
                at = 56 + 4 * size_t(level < levels ? levels - 1 : level);
                number = 1;
            }
    }
    memcpy(head + at, &number, sizeof(number));
}

}  // namespace fuzz
