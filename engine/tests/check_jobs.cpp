// Whole jobs through the C interface: against the paper in plain loops, for any tiles, threads,
// strides and callbacks.
#include "job_case.h"

namespace {

using namespace jobs;

// The stages with the least margin, and so with the lowest bands of rows, and a refinement whose
// rows come four at a time.
plain::Config least_config(check::Random *random) {
    plain::Config config = random_config(random);
    config.patch = config.window = 3;
    config.group = 1 + int(random->below(4));
    config.refinement = {1, {8}, {1}, {}};
    return config;
}

// Rows by callback, from or to contiguous planes of whole images.
template <typename T>
struct Stream {
    T *planes;
    int channels;
    int64_t height, width, next;
    bool reads;
    int64_t fails_at;

    static int rows(void *context, int64_t first, int64_t count, void *memory) {
        Stream &stream = *static_cast<Stream *>(context);
        if (first != stream.next || count < 1 || first + count > stream.height) return 2;
        if (stream.fails_at >= 0 && first + count > stream.fails_at) return 1;
        for (int channel = 0; channel < stream.channels; channel++) {
            T *here = static_cast<T *>(memory) + channel * count * stream.width;
            T *there = stream.planes + (channel * stream.height + first) * stream.width;
            const size_t bytes = size_t(count * stream.width) * sizeof(T);
            memcpy(stream.reads ? here : there, stream.reads ? there : here, bytes);
        }
        stream.next += count;
        return 0;
    }
};

// psi's table is off by 1e-4 of its range, float32 by its rounding.
template <typename T>
void denoises(const plain::Config &config, check::Random *random, nlnet_set set,
              check::Report &report) {
    const Case<T> image(config, random, set);
    const Made<T> made(image.values, set);
    const int channels = config.channels;
    for (int round = 0; round < 3; round++) {
        const int threads = 1 + int(random->below(4));
        T *result = static_cast<T *>(malloc(size_t(image.size) * sizeof(T)));
        Stream<T> in = {image.image, channels, image.height, image.width, 0, true, -1};
        Stream<T> out = {result, channels, image.height, image.width, 0, false, -1};
        nlnet_denoise_task task = {};
        task.height = image.height;
        task.width = image.width;
        const ptrdiff_t row = ptrdiff_t(image.width * int64_t(sizeof(T)));
        const ptrdiff_t plane = row * ptrdiff_t(image.height);
        task.noisy = {image.image, plane, row, sizeof(T), nullptr, nullptr};
        task.denoised = {result, plane, row, sizeof(T), nullptr, nullptr};
        if (random->below(2)) task.noisy = {nullptr, 0, 0, 0, Stream<T>::rows, &in};
        if (random->below(2)) task.denoised = {nullptr, 0, 0, 0, Stream<T>::rows, &out};
        task.low = kLow;
        task.high = kHigh;
        task.threads = threads;
        task.tile_rows = random->below(2) ? 0 : 8 + int(random->below(config.window == 3 ? 1 : 20));
        const nlnet_status status = run_task(nlnet_denoise, made.network, task, threads);
        const double off = image.difference(result);
        report.expect(status == NLNET_OK && off < 0.05,
                      "denoise: status %d, off by %g, %dx%d patch %d group %d levels %d", status,
                      off, int(image.width), int(image.height), config.patch, config.group,
                      config.refinement.levels);
        free(result);
    }
}

// A failing callback cancels, and nothing is read or written after it.
void cancels(check::Random *random, nlnet_set set, check::Report &report) {
    const Case<float> image(random_config(random), random, set);
    const Made<float> made(image.values, set);
    const int channels = image.values.config.channels;
    float *result = static_cast<float *>(malloc(size_t(image.size) * sizeof(float)));
    const bool reading = random->below(2) != 0;
    const int64_t at = int64_t(random->below(uint32_t(image.height)));
    Stream<float> in = {image.image, channels, image.height,     image.width,
                        0,           true,     reading ? at : -1};
    Stream<float> out = {result, channels, image.height, image.width, 0, false, reading ? -1 : at};
    nlnet_denoise_task task = {};
    task.height = image.height;
    task.width = image.width;
    task.noisy = {nullptr, 0, 0, 0, Stream<float>::rows, &in};
    task.denoised = {nullptr, 0, 0, 0, Stream<float>::rows, &out};
    task.low = kLow;
    task.high = kHigh;
    task.threads = 3;
    const bool stopped = run_task(nlnet_denoise, made.network, task, 3) != NLNET_OK;
    const bool in_time = (reading ? in.next : out.next) <= at;
    free(result);
    report.expect(stopped && in_time, "a failing callback did not cancel");
}

}  // namespace

void check::check_jobs(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    const nlnet_set set = set_of(kernels);
    for (int round = 0; round < rounds / 4; round++) {
        denoises<float>(random_config(&random), &random, set, report);
        denoises<double>(random_config(&random), &random, set, report);
        denoises<float>(least_config(&random), &random, set, report);
        cancels(&random, set, report);
    }
}
