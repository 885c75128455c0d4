// Random networks and images for whole jobs, and what the paper in plain loops makes of them.
#pragma once

#include "../src/network.h"

#include "plain.h"
#include "threads.h"

namespace jobs {

constexpr double kLow = 0, kHigh = 255;

// Ask a function of the interface for its memory, make the job and run it.
template <typename Function, typename Description>
nlnet_status run_task(Function function, const nlnet_network *network, const Description &task,
                      int threads) {
    size_t size = 0;
    const nlnet_status status = function(network, &task, nullptr, &size, nullptr);
    if (status != NLNET_OK) return status;
    const check::Array<char> memory(size);
    nlnet_job *job = nullptr;
    const nlnet_status made = function(network, &task, memory.data, &size, &job);
    if (made != NLNET_OK) return made;
    check::run_job(job, threads);
    return nlnet_was_cancelled(job) ? NLNET_BAD_ARGUMENT : NLNET_OK;
}

// A network of the engine's, in memory of its own.
template <typename T>
struct Made {
    static constexpr nlnet_element kElement = sizeof(T) == 4 ? NLNET_FLOAT : NLNET_DOUBLE;
    size_t bytes;
    unsigned char *block;
    size_t size;
    check::Array<char> memory;
    nlnet_network *network = nullptr;

    Made(const plain::Network &values, nlnet_set set)
        : block(plain::block_of<T>(values, &bytes)), size(needed(set)), memory(size) {
        nlnet_network_make(block, bytes, kElement, set, memory.data, &size, &network);
    }
    ~Made() { free(block); }

    size_t needed(nlnet_set set) const {
        size_t most = 0;
        nlnet_network_make(block, bytes, kElement, set, nullptr, &most, nullptr);
        return most;
    }
};

inline plain::Config random_config(check::Random *random) {
    const int patches[] = {3, 5, 7, 5};
    plain::Config config = {};
    config.channels = random->below(2) ? 3 : 1;
    config.stages = 1 + int(random->below(3));
    config.patch = patches[random->below(4)];
    config.group = random->below(3) ? 8 : 1 + int(random->below(12));
    config.window = random->below(2) ? 31 : 9;
    config.rbf_count = random->below(2) ? 63 : 21;
    config.project_every_stage = random->below(2) != 0;
    config.rbf_range = 100;
    config.rbf_std = 200.0 / (config.rbf_count - 1);
    if (random->below(2)) config.refinement = plain::random_sizes(random);
    return config;
}

template <typename T>
struct Case {
    plain::Network values;
    int64_t height, width, size;
    T *image;        // (C, H, W), gray or RGB
    T *working;      // the same as working planes
    int8_t *groups;  // of the engine's matching
    double *wanted;  // working planes after all stages

    Case(const plain::Config &config, check::Random *random, nlnet_set set) {
        values = plain::random_network(config, random);
        height = 9 + int64_t(random->below(config.window == 3 ? 3 : 40));
        width = 9 + int64_t(random->below(random->below(3) ? 40 : 150));
        size = config.channels * height * width;
        image = static_cast<T *>(malloc(size_t(size) * sizeof(T)));
        working = static_cast<T *>(malloc(size_t(size) * sizeof(T)));
        groups = static_cast<int8_t *>(malloc(size_t(height * width * config.group * 2)));
        wanted = plain::numbers(size);
        for (int64_t i = 0; i < size; i++) image[i] = T(280 * random->uniform() - 12);
        for (int64_t i = 0; i < height * width; i++) {
            double c[3];
            for (int channel = 0; channel < config.channels; channel++) {
                c[channel] = double(image[channel * height * width + i]);
            }
            if (config.channels == 3) plain::to_opponent(c);
            for (int channel = 0; channel < config.channels; channel++) {
                wanted[channel * height * width + i] = c[channel];
            }
        }
        // By the engine, or rounding could lead to other groups than denoising finds.
        const T *pixels[3] = {};
        T *planes[3] = {};
        for (int channel = 0; channel < config.channels; channel++) {
            pixels[channel] = image + channel * height * width;
            planes[channel] = working + channel * height * width;
        }
        nlnet::pixel_kernels<T>(*nlnet::kernels_of(set))
            .to_working(config.channels, pixels, 1, planes, height * width);
        const Made<T> made(values, set);
        nlnet_match_task match = {1, height, width, working, groups, 1};
        run_task(nlnet_match, made.network, match, 1);
        plain::run(values, {height, width, groups}, kLow, kHigh, wanted);
    }
    ~Case() {
        plain::release(&values);
        free(image);
        free(working);
        free(groups);
        free(wanted);
    }
    Case(const Case &) = delete;
    Case &operator=(const Case &) = delete;

    // The largest difference of an image, gray or RGB, from what is wanted.
    double difference(const T *result) const {
        double most = 0;
        const int64_t plane = height * width;
        for (int64_t i = 0; i < plane; i++) {
            double c[3];
            for (int channel = 0; channel < values.config.channels; channel++) {
                c[channel] = wanted[channel * plane + i];
            }
            if (values.config.channels == 3) plain::to_rgb(c);
            for (int channel = 0; channel < values.config.channels; channel++) {
                const double off = fabs(c[channel] - double(result[channel * plane + i]));
                if (!(off <= most)) most = off;
            }
        }
        return most;
    }
};

// The number of the set that these kernels are of.
inline nlnet_set set_of(const nlnet::Kernels &kernels) {
    for (int set = NLNET_SSE2; set <= NLNET_SIMD128; set++) {
        if (nlnet::kernels_of(nlnet_set(set)) == &kernels) return nlnet_set(set);
    }
    return NLNET_BEST;
}

}  // namespace jobs
