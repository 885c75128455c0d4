// Whole jobs through the C interface: against the paper in plain loops, for any tiles, threads,
// strides and callbacks, and gradients against central differences.
#include "../src/network.h"

#include "plain.h"
#include "threads.h"

namespace {

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

plain::Config random_config(check::Random *random) {
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
        nlnet::matching_kernels<T>(*nlnet::kernels_of(set))
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

// The forward pass in double precision, and sum(weights * result).
double loss(const Made<double> &made, const nlnet_forward_task &task, const double *weights,
            int64_t size, int stages) {
    run_task(nlnet_forward, made.network, task, task.threads);
    const double *result = static_cast<double *>(task.estimates) + (stages - 1) * size;
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += weights[i] * result[i];
    return sum;
}

// Compare a gradient with differences of the loss, a function of how far a value is moved. Where a
// step meets kinks of the clips, that to one side, or a smaller one, need not.
template <typename Loss>
void compare(double gradient, const Loss &loss_at, const char *name, check::Report &report) {
    const double here = loss_at(0);
    double measured = 0;
    bool close = false;
    for (double h = 1e-6; h > 1e-8 && !close; h /= 5) {
        const double low = loss_at(-h), high = loss_at(h);
        measured = (high - low) / (2 * h);
        const double slopes[] = {measured, (high - here) / h, (here - low) / h};
        for (const double slope : slopes) {
            close = close || fabs(gradient - slope) <= 2e-5 * (fabs(slope) + 1);
        }
    }
    report.expect(close, "gradient of %s: %.9g, by differences %.9g", name, gradient, measured);
}

void differentiates(check::Random *random, nlnet_set set, check::Report &report) {
    Case<double> image(random_config(random), random, set);
    plain::Network &values = image.values;
    const plain::Config &config = values.config;
    const int stages = config.stages;
    const int64_t size = image.size;
    double *updates = plain::numbers(stages * size), *estimates = plain::numbers(stages * size);
    double *weights = plain::numbers(size), *gradient = plain::numbers(size);
    double *noisy_gradient = plain::numbers(size), *moved = plain::numbers(size);
    double *filters = plain::numbers(int64_t(stages) * config.filters() * config.pixels());
    double *group_weights = plain::numbers(stages * config.group);
    double *coefficients = plain::numbers(stages * config.mixtures());
    double *step_sizes = plain::numbers(stages);
    for (int64_t i = 0; i < size; i++) weights[i] = random->uniform() - 0.5;
    const int threads = 1 + int(random->below(3));
    nlnet_forward_task task = {
        1,       image.height, image.width, 0, stages, image.working, image.working, image.groups,
        updates, estimates,    1,           0, 1,      threads};
    if (random->below(2)) {
        task.low = 40;
        task.high = 200;
    }
    {
        const Made<double> made(values, set);
        loss(made, task, weights, size, stages);
        const nlnet_backward_task back = {task,    weights,       gradient,     noisy_gradient,
                                          filters, group_weights, coefficients, step_sizes};
        report.expect(run_task(nlnet_backward, made.network, back, threads) == NLNET_OK,
                      "the backward pass did not run");
    }
    // One value of each kind at a time.
    const int s = int(random->below(uint32_t(stages)));
    plain::StageValues &stage = values.stages[s];
    const int64_t f = random->below(uint32_t(config.filters() * config.pixels()));
    const int64_t k = random->below(uint32_t(config.group));
    const int64_t c = random->below(uint32_t(config.mixtures()));
    struct {
        double *value, gradient;
        const char *name;
    } probes[] = {
        {stage.filters + f, filters[int64_t(s) * config.filters() * config.pixels() + f], "F"},
        {stage.weights + k, group_weights[s * config.group + k], "w"},
        {stage.coefficients + c, coefficients[s * config.mixtures() + c], "pi"},
        {&stage.step_size, step_sizes[s], "gamma"},
    };
    for (const auto &probe : probes) {
        const double before = *probe.value;
        const auto loss_at = [&](double step) {
            *probe.value = before + step;
            const Made<double> made(values, set);
            return loss(made, task, weights, size, stages);
        };
        compare(probe.gradient, loss_at, probe.name, report);
        *probe.value = before;
    }
    const Made<double> made(values, set);
    for (int which = 0; which < 2; which++) {
        const int64_t at = random->below(uint32_t(size));
        const auto loss_at = [&](double step) {
            memcpy(moved, image.working, size_t(size) * sizeof(double));
            moved[at] += step;
            nlnet_forward_task there = task;
            (which ? there.noisy : there.estimate) = moved;
            return loss(made, there, weights, size, stages);
        };
        compare(which ? noisy_gradient[at] : gradient[at], loss_at, which ? "y" : "x", report);
    }
    double *const arrays[] = {updates, estimates, weights,       gradient,     noisy_gradient,
                              moved,   filters,   group_weights, coefficients, step_sizes};
    for (double *array : arrays) free(array);
}

// The number of the set that these kernels are of.
nlnet_set set_of(const nlnet::Kernels &kernels) {
    for (int set = NLNET_SSE2; set <= NLNET_SIMD128; set++) {
        if (nlnet::kernels_of(nlnet_set(set)) == &kernels) return nlnet_set(set);
    }
    return NLNET_BEST;
}

}  // namespace

void check::check_jobs(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    const nlnet_set set = set_of(kernels);
    for (int round = 0; round < rounds / 4; round++) {
        denoises<float>(random_config(&random), &random, set, report);
        denoises<double>(random_config(&random), &random, set, report);
        denoises<float>(least_config(&random), &random, set, report);
        cancels(&random, set, report);
        differentiates(&random, set, report);
    }
}
