// Random eyes and tiles for whole jobs.
#pragma once

#include "plain_eye.h"
#include "threads.h"

namespace eyes {

// An eye of the engine's, in memory of its own.
struct Made {
    size_t bytes;
    unsigned char *block;
    size_t size;
    check::Array<char> memory;
    nlnet_eye *eye = nullptr;

    Made(const plain::Eye &values, nlnet_set set)
        : block(plain::block_of(values, &bytes)), size(needed(set)), memory(size) {
        nlnet_eye_make(block, bytes, set, memory.data, &size, &eye);
    }
    ~Made() { free(block); }
    Made(const Made &) = delete;
    Made &operator=(const Made &) = delete;

    size_t needed(nlnet_set set) const {
        size_t most = 0;
        nlnet_eye_make(block, bytes, set, nullptr, &most, nullptr);
        return most;
    }
};

inline plain::Eye random_eye(check::Random *random) {
    return plain::random_eye(plain::random_sizes(random), 8 + 8 * int(random->below(4)), random);
}

// A batch of tiles, and where their maps go.
struct Batch {
    nlnet_look_task task;
    check::Array<float> tiles, maps;

    Batch(const plain::Eye &eye, int64_t count, int channels, int64_t height, int64_t width,
          check::Random *random)
        : task(),
          tiles(size_t(count * channels * height * width)),
          maps(size_t(count * eye.outputs * height * width / unit(eye) / unit(eye))) {
        task.count = count;
        task.height = height;
        task.width = width;
        task.channels = channels;
        task.threads = 1 + int32_t(random->below(4));
        task.tiles = tiles.data;
        task.maps = maps.data;
        for (size_t i = 0; i < tiles.count; i++) {
            tiles.data[i] = float(280 * random->uniform() - 12);
        }
    }
    static int64_t unit(const plain::Eye &eye) { return eye.layers.sizes.unit(); }

    nlnet_status look(const nlnet_eye *eye) const {
        size_t size = 0;
        const nlnet_status status = nlnet_look(eye, &task, nullptr, &size, nullptr);
        if (status != NLNET_OK) return status;
        const check::Array<char> memory(size);
        nlnet_job *job = nullptr;
        const nlnet_status made = nlnet_look(eye, &task, memory.data, &size, &job);
        if (made == NLNET_OK) check::run_job(job, task.threads);
        return made;
    }
};

}  // namespace eyes
