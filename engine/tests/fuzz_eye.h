// Eyes with broken parameter blocks, and batches of tiles of any size.
#pragma once

#include "fuzz_run.h"
#include "plain_eye.h"

namespace fuzz {

constexpr size_t kEyeHead = 64;

// One of an eye's sizes out of its bounds, a block that is cut short, or a value that is not
// finite.
inline void spoil_eye(Choices &choices, uint8_t *block, size_t *bytes) {
    uint32_t number = uint32_t(choices.word()) | 9;  // no multiple of 8, and more than 8
    size_t at = 24 + 4 * size_t(choices.below(8));
    switch (choices.below(4)) {
        case 0: at = 4 * size_t(choices.below(6)); break;
        case 1:
            at = kEyeHead + size_t(choices.word() % ((*bytes - kEyeHead) / 4)) * 4;
            number = 0x7F800000u | (number & 0x807FFFFFu);  // infinite, or not a number
            break;
        case 2: {
            *bytes = size_t(choices.word() % *bytes);
            const uint64_t total = *bytes;
            if (*bytes >= kEyeHead) memcpy(block + 56, &total, sizeof(total));
            return;
        }
        default: break;
    }
    memcpy(block + at, &number, sizeof(number));
}

// Look at tiles by any number of threads: the bits are those of one.
inline void look(Choices &choices, const nlnet_eye *eye, const plain::Eye &values) {
    const int64_t unit = values.layers.sizes.unit();
    nlnet_look_task task = {};
    task.count = choices.number(1, 4);
    task.height = choices.below(8) ? unit * (1 + choices.below(5)) : choices.number(1, 70);
    task.width = choices.below(8) ? unit * (1 + choices.below(5)) : choices.number(1, 70);
    task.channels = int32_t(choices.below(8) ? 1 + 2 * choices.below(2) : choices.number(0, 4));
    task.threads = int32_t(choices.number(1, 4));
    size_t size = 0;
    const nlnet_status status = nlnet_look(eye, &task, nullptr, &size, nullptr);
    const bool sides_fit = task.height > 0 && task.width > 0 && task.height <= 1024 &&
                           task.width <= 1024 && task.height % unit == 0 && task.width % unit == 0;
    const bool sound = task.count > 0 && sides_fit && task.threads > 0 && task.threads <= 1024 &&
                       (task.channels == 1 || task.channels == 3);
    require(sound ? status != NLNET_BAD_ARGUMENT : status == NLNET_BAD_ARGUMENT,
            "sizes are taken, or refused");
    if (!sound || task.count > 4 || task.height * task.width > 1 << 13) return;
    const size_t pixels = size_t(task.count * task.height * task.width);
    const check::Array<float> tiles(pixels * size_t(task.channels));
    const size_t places = pixels / size_t(unit * unit) * size_t(values.outputs);
    const check::Array<float> maps(places), same(places);
    for (size_t i = 0; i < tiles.count; i++) tiles.data[i] = float((i * i + i / 3) % 251);
    task.tiles = tiles.data;
    task.maps = maps.data;
    if (!run(choices, nlnet_look, eye, task, task.threads)) return;
    task.maps = same.data;
    task.threads = 1;
    if (!run(choices, nlnet_look, eye, task, 1)) return;
    require(!memcmp(maps.data, same.data, places * sizeof(float)), "threads change nothing");
}

inline void run_eye(Choices &choices) {
    check::Random random = {choices.word() | 1};
    const plain::LevelSizes sizes = plain::random_sizes(&random);
    const plain::Eye values = plain::random_eye(sizes, 8 + 8 * choices.below(3), &random);
    size_t bytes = 0;
    uint8_t *whole = plain::block_of(values, &bytes);
    const bool sound = choices.below(3) != 0;
    if (!sound) spoil_eye(choices, whole, &bytes);
    // Of exactly its size, so that a sanitizer sees what is read behind its end.
    uint8_t *block = static_cast<uint8_t *>(malloc(bytes ? bytes : 1));
    memcpy(block, whole, bytes);
    free(whole);
    const nlnet_set set = nlnet_set(choices.below(6));
    const auto make = [&](void *memory, size_t *size, nlnet_eye **eye) {
        return nlnet_eye_make(block, bytes, set, memory, size, eye);
    };
    size_t size = 0;
    const nlnet_status status = make(nullptr, &size, nullptr);
    require(!sound || status == NLNET_OK || status == NLNET_NO_SUCH_SET, "a sound eye is taken");
    if (status == NLNET_OK) {
        const check::Array<char> memory(size);
        nlnet_eye *eye = nullptr;
        if (sound) refuse_bad_memory(make, memory.data, size, &eye);
        const nlnet_status made = make(memory.data, &size, &eye);
        require(sound ? made == NLNET_OK : made == NLNET_BAD_BLOCK, "a spoilt eye is refused");
        if (made == NLNET_OK) look(choices, eye, values);
    }
    free(block);
    values.layers.release();
}

}  // namespace fuzz
