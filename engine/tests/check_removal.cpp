// Removal beside plain loops, with a function in place of networks; and with networks, for any
// threads, tiles and types of pixels.
#include "job_case.h"
#include "plain_removal.h"

namespace check {
namespace {

// A random task, with all that it points to.
struct RemovalCase {
    nlnet_removal_task task = {};
    nlnet_level levels[3] = {};
    double points[3][8];
    Array<float> strengths;
    Array<float> image, result;

    RemovalCase(Random *random, int channels)
        : strengths(2 * NLNET_SCALES * 20),
          image(size_t(channels * 130 * 150)),
          result(image.count) {
        const int sides[] = {9, 31, 32, 70, 129};
        task.height = sides[random->below(5)] + int64_t(random->below(2));
        task.width = sides[random->below(5)] + int64_t(random->below(20));
        task.channels = channels;
        task.span = 255;
        task.black = random->below(2) ? 0 : 3;
        task.low = random->below(2) ? 0 : 1;
        task.high = task.low == 0 ? 255 : 0;
        task.luma = random->below(2) ? 1 : 2 * random->uniform();
        task.chroma = random->below(2) ? task.luma : 2 * random->uniform();
        task.threads = 1;
        task.noise.kind = int32_t(random->below(3));
        task.noise.sigma = 2 + 20 * random->uniform();
        task.noise.certainty = random->below(2) ? 1 : random->uniform();
        task.noise.rows = 1 + int64_t(random->below(4));
        task.noise.columns = 1 + int64_t(random->below(5));
        task.noise.strengths = strengths.data;
        const bool holes = random->below(3) == 0;
        for (size_t i = 0; i < strengths.count; i++) {
            const bool hole = holes && random->below(3) == 0;
            strengths.data[i] = hole ? 0 : float(2 + 10 * random->uniform());
        }
        task.noise.levels = levels;
        task.noise.level_count = random->below(2) ? channels : 1;
        for (int i = 0; i < 3; i++) {
            levels[i].gain = 0.3 + 2 * random->uniform();
            levels[i].offset = 40 * random->uniform() - 10;
            if (random->below(2)) {
                for (int p = 0; p < 4; p++) {
                    points[i][2 * p] = 60 * p + 50 * random->uniform();
                    points[i][2 * p + 1] = 3 + 9 * random->uniform();
                }
                levels[i].points = points[i];
                levels[i].count = 4;
            }
        }
        for (size_t i = 0; i < image.count; i++) {
            const double shade = 128 + 60 * sin(double(i) / 90);
            image.data[i] = float(shade + 30 * (random->uniform() - 0.5));
        }
        task.noisy = planes_of(image.data);
        task.denoised = planes_of(result.data);
    }
    size_t count() const { return size_t(task.channels * task.height * task.width); }
    nlnet_pixels planes_of(float *data) const {
        const ptrdiff_t row = ptrdiff_t(task.width) * 4;
        return {NLNET_FLOAT32, {data, row * ptrdiff_t(task.height), row, 4, nullptr, nullptr}};
    }
};

nlnet_status run(const nlnet_network *const *networks, const nlnet_removal_task &task,
                 int threads) {
    size_t size = 0;
    nlnet_status status = nlnet_remove(networks, &task, nullptr, &size, nullptr);
    if (status != NLNET_OK) return status;
    const Array<char> memory(size);
    nlnet_job *job = nullptr;
    status = nlnet_remove(networks, &task, memory.data, &size, &job);
    if (status != NLNET_OK) return status;
    run_job(job, threads);
    return nlnet_was_cancelled(job) ? nlnet_failure(job) : NLNET_OK;
}

int stand_in(void *context, int32_t, int64_t height, int64_t width, const float *noisy,
             float *denoised, double, double) {
    const int64_t rows = height * *static_cast<const int32_t *>(context);
    for (int64_t i = 0; i < rows * width; i++) {
        const int64_t right = i % width + 1 < width ? i + 1 : i;
        denoised[i] = plain::Removal::stand_in(noisy[i], noisy[right]);
    }
    return 0;
}

plain::Config stages_config(int channels) {
    plain::Config config = {};
    config.channels = channels;
    config.stages = 2;
    config.patch = 3;
    config.group = 4;
    config.window = 5;
    config.rbf_count = 21;
    config.rbf_range = 100;
    config.rbf_std = 10;
    return config;
}

void beside_plain(const nlnet_network *network, Random *random, Report &report) {
    RemovalCase c(random, network->shape.channels);
    const nlnet_network *networks[] = {network, network, network};
    int32_t scales = 0;
    double sigmas[NLNET_SCALES];
    c.task.elsewhere = stand_in;
    c.task.context = &c.task.channels;
    const nlnet_status told = nlnet_removal_sigmas(&c.task, &scales, sigmas);
    report.expect(told == NLNET_OK, "removal is refused");
    if (told != NLNET_OK) return;
    for (int scale = 0; scale < scales; scale++) {
        if (sigmas[scale] == 0) return;  // such a scale is copied, which has a check of its own
    }
    const int channels = c.task.channels;
    const nlnet_status status = run(networks, c.task, 1);
    const plain::Planes image(channels, c.task.height, c.task.width);
    const plain::Planes wanted(channels, c.task.height, c.task.width);
    for (size_t i = 0; i < c.count(); i++) image.values.data[i] = double(c.image.data[i]);
    plain::Removal{c.task, scales, network->sigma}.remove(image, 0, wanted);
    double apart = 0;
    for (size_t i = 0; i < c.count(); i++) {
        const double off = fabs(wanted.values.data[i] - double(c.result.data[i]));
        if (!(off <= apart)) apart = off;
    }
    report.expect(status == NLNET_OK && apart < 2e-3,
                  "removal, kind %d, %d channels, %dx%d, %d scales, strength %g, %g: %.3g apart",
                  int(c.task.noise.kind), channels, int(c.task.width), int(c.task.height), scales,
                  c.task.luma, c.task.chroma, apart);
}

int take_rows(void *context, int64_t first, int64_t count, void *planes) {
    const RemovalCase &c = *static_cast<RemovalCase *>(context);
    for (int channel = 0; channel < c.task.channels; channel++) {
        memcpy(c.result.data + (channel * c.task.height + first) * c.task.width,
               static_cast<float *>(planes) + channel * count * c.task.width,
               size_t(count * c.task.width) * sizeof(float));
    }
    return 0;
}

// Threads change no bit, nor do callbacks; other tiles only round.
void with_networks(const nlnet_network *network, Random *random, Report &report) {
    RemovalCase c(random, network->shape.channels);
    const nlnet_network *networks[] = {network, network, network};
    if (run(networks, c.task, 1) != NLNET_OK) {
        report.expect(false, "removal with networks fails");
        return;
    }
    const Array<float> before(c.count());
    memcpy(before.data, c.result.data, c.count() * sizeof(float));
    c.task.threads = 4;
    c.task.denoised.rows = {nullptr, 0, 0, 0, take_rows, &c};
    run(networks, c.task, 1 + int(random->below(4)));
    report.expect(memcmp(before.data, c.result.data, c.count() * sizeof(float)) == 0,
                  "removal, kind %d, %dx%d: threads or callbacks change bits",
                  int(c.task.noise.kind), int(c.task.width), int(c.task.height));
    // RGBA pixels in 8 bits, of which alpha stays; the values are rounded.
    const int64_t pixels = c.task.height * c.task.width;
    const Array<uint8_t> from(size_t(4 * pixels)), to(size_t(4 * pixels));
    for (size_t i = 0; i < from.count; i++) {
        from.data[i] = i % 4 < size_t(c.task.channels)
                           ? uint8_t(c.image.data[i % 4 * size_t(pixels) + i / 4])
                           : 77;
        to.data[i] = 99;
    }
    for (size_t i = 0; i < c.count(); i++) c.image.data[i] = float(uint8_t(c.image.data[i]));
    c.task.denoised = c.planes_of(c.result.data);
    run(networks, c.task, 2);
    const ptrdiff_t row = ptrdiff_t(4 * c.task.width);
    c.task.noisy = {NLNET_UINT8, {from.data, 1, row, 4, nullptr, nullptr}};
    c.task.denoised = {NLNET_UINT8, {to.data, 1, row, 4, nullptr, nullptr}};
    run(networks, c.task, 2);
    bool same = true;
    for (size_t i = 0; i < to.count; i++) {
        const size_t channel = i % 4;
        double wanted = 99;
        if (channel < size_t(c.task.channels)) {
            const double value = double(c.result.data[channel * size_t(pixels) + i / 4]);
            wanted = fmin(fmax(rint(value), 0), 255);
        }
        same = same && double(to.data[i]) == wanted;
    }
    report.expect(same, "removal, 8 bits, kind %d", int(c.task.noise.kind));
}

void copies_what_has_no_noise(const nlnet_network *network, Random *random, Report &report) {
    RemovalCase c(random, network->shape.channels);
    const nlnet_network *networks[] = {nullptr, nullptr, nullptr};
    c.task.noise.kind = NLNET_CAMERA;
    c.task.low = 1;
    c.task.high = 0;
    memset(c.strengths.data, 0, c.strengths.count * sizeof(float));
    const nlnet_status status = run(networks, c.task, 2);
    report.expect(
        status == NLNET_OK && memcmp(c.image.data, c.result.data, c.count() * sizeof(float)) == 0,
        "without noise, the image is not copied");
    c.image.data[5] = 3e38f;
    c.task.noise.kind = NLNET_WHITE;
    c.task.noise.sigma = 1e-3;
    networks[0] = network;
    report.expect(run(networks, c.task, 2) == NLNET_TOO_LARGE, "large values are not refused");
}

// Every type of pixels, to the nearest and within its range.
template <typename P>
void check_type(const nlnet::RemovalKernels &kernels, nlnet_type type, double low, double high,
                Random *random, Report &report) {
    const int64_t width = random->between(1, 90), step = random->between(1, 4);
    const Array<P> pixels{size_t(width * step)}, back{size_t(width * step)};
    const Array<float> row{size_t(width)};
    bool same = true;
    for (int64_t x = 0; x < width * step; x++) pixels[x] = P(random->between(0, 100));
    kernels.load(type, pixels.data, ptrdiff_t(step), width, row.data);
    for (int64_t x = 0; x < width; x++) same = same && row[x] == float(pixels[x * step]);
    for (int64_t x = 0; x < width; x++) {
        row[x] = float(random->between(-9, 9)) / 2 * (random->below(3) ? 1.0f : 1e9f);
    }
    kernels.store(type, row.data, width, back.data, ptrdiff_t(step));
    for (int64_t x = 0; x < width; x++) {
        const bool whole = double(P(0.5)) == 0;
        const double value = double(row[x]), wanted = whole ? rint(value) : value;
        same = same && double(back[x * step]) == fmin(fmax(wanted, low), high);
    }
    report.expect(same, "pixels of type %d, width %d, step %d", int(type), int(width), int(step));
}

void check_types(const nlnet::RemovalKernels &kernels, Random *random, Report &report) {
    check_type<uint8_t>(kernels, NLNET_UINT8, 0, 255, random, report);
    check_type<int8_t>(kernels, NLNET_INT8, -128, 127, random, report);
    check_type<uint16_t>(kernels, NLNET_UINT16, 0, 65535, random, report);
    check_type<int16_t>(kernels, NLNET_INT16, -32768, 32767, random, report);
    check_type<uint32_t>(kernels, NLNET_UINT32, 0, 4294967295.0, random, report);
    check_type<int32_t>(kernels, NLNET_INT32, -2147483648.0, 2147483647.0, random, report);
    check_type<float>(kernels, NLNET_FLOAT32, -INFINITY, INFINITY, random, report);
    check_type<double>(kernels, NLNET_FLOAT64, -INFINITY, INFINITY, random, report);
}

}  // namespace

void check_removal(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        check_types(*kernels.removal, &random, report);
        plain::Network values = plain::random_network(stages_config(round % 2 ? 3 : 1), &random);
        {
            const jobs::Made<float> made(values, jobs::set_of(kernels));
            beside_plain(made.network, &random, report);
            if (round % 4 < 2) with_networks(made.network, &random, report);
            copies_what_has_no_noise(made.network, &random, report);
        }
        plain::release(&values);
    }
}

}  // namespace check
