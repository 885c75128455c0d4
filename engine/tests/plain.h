// The network as the paper writes it, in plain loops and double precision: what jobs must give.
#pragma once

#include "plain_refinement.h"

namespace plain {

struct Config {
    int channels, stages, patch, group, window, rbf_count;
    bool project_every_stage;
    double rbf_range, rbf_std;
    LevelSizes refinement;

    int radius() const { return patch / 2; }
    int pixels() const { return patch * patch; }
    int filters() const { return patch * patch - 1; }
    int64_t mixtures() const { return int64_t(channels) * filters() * rbf_count; }
};

struct StageValues {
    double step_size;
    double *filters, *weights, *coefficients;  // (F, P), (K), (C, F, M)
};

struct Network {
    Config config;
    StageValues stages[4];
    Refinement refinement;
};

inline Network random_network(const Config &config, check::Random *random) {
    Network network = {};
    network.config = config;
    for (int s = 0; s < config.stages; s++) {
        StageValues &stage = network.stages[s];
        stage.step_size = s == 0 ? 0 : 0.05 + 0.1 * random->uniform();
        stage.filters = numbers(int64_t(config.filters()) * config.pixels());
        stage.weights = numbers(config.group);
        stage.coefficients = numbers(config.mixtures());
        for (int f = 0; f < config.filters(); f++) {
            double *row = stage.filters + f * config.pixels(), mean = 0, norm = 0;
            for (int p = 0; p < config.pixels(); p++) mean += row[p] = random->uniform() - 0.5;
            for (int p = 0; p < config.pixels(); p++) row[p] -= mean / config.pixels();
            for (int p = 0; p < config.pixels(); p++) norm += row[p] * row[p];
            for (int p = 0; p < config.pixels(); p++) row[p] = float(row[p] / sqrt(norm));
        }
        for (int k = 0; k < config.group; k++) stage.weights[k] = float(random->uniform() / 2);
        for (int64_t i = 0; i < config.mixtures(); i++) {
            stage.coefficients[i] = float((random->uniform() - 0.5) / 4);
        }
    }
    network.refinement = random_refinement(config.refinement, config.channels, random);
    return network;
}

inline void release(Network *network) {
    for (int s = 0; s < network->config.stages; s++) {
        free(network->stages[s].filters);
        free(network->stages[s].weights);
        free(network->stages[s].coefficients);
    }
    network->refinement.layers.release();
}

// Where the refinement is in the parameter block, behind the stages.
inline size_t refinement_start(const Config &config, size_t element) {
    size_t stage = sizeof(double);
    const int64_t counts[3] = {int64_t(config.filters()) * config.pixels(), config.group,
                               config.mixtures()};
    for (const int64_t count : counts) stage += (size_t(count) * element + 7) / 8 * 8;
    return 80 + size_t(config.stages) * stage;
}

template <typename T>
void put_network(const Network &network, uint64_t total, Writer<T> &writer) {
    const Config &config = network.config;
    const LevelSizes &sizes = config.refinement;
    const uint32_t flags = (config.project_every_stage ? 1 : 0) | (sizes.levels > 0 ? 2 : 0);
    const uint32_t head[] = {1,
                             sizeof(T) == 8,
                             uint32_t(config.channels),
                             uint32_t(config.stages),
                             uint32_t(config.patch),
                             uint32_t(config.group),
                             uint32_t(config.window),
                             uint32_t(config.rbf_count),
                             flags,
                             1};
    const double reals[] = {config.rbf_range, config.rbf_std, 25.0};
    writer.put("nlnetpar", 8);
    writer.put(head, sizeof(head));
    writer.put(reals, sizeof(reals));
    writer.put(&total, sizeof(total));
    for (int s = 0; s < config.stages; s++) {
        const StageValues &stage = network.stages[s];
        writer.put(&stage.step_size, sizeof(double));
        writer.put_array(stage.filters, int64_t(config.filters()) * config.pixels());
        writer.put_array(stage.weights, config.group);
        writer.put_array(stage.coefficients, config.mixtures());
    }
    if (sizes.levels > 0) put_refinement(network.refinement, writer);
}

// The parameter block of docs/engine.md.
template <typename T>
unsigned char *block_of(const Network &network, size_t *bytes) {
    return write_block<T>(
        bytes, [&](Writer<T> &writer, uint64_t total) { put_network(network, total, writer); });
}

inline double psi(const Config &config, const double *coefficients, double s) {
    const double spacing = 2 * config.rbf_range / (config.rbf_count - 1);
    s = s < -config.rbf_range ? -config.rbf_range : s > config.rbf_range ? config.rbf_range : s;
    double sum = 0;
    for (int j = 0; j < config.rbf_count; j++) {
        const double offset = (s + config.rbf_range - j * spacing) / config.rbf_std;
        sum += coefficients[j] * exp(-0.5 * offset * offset);
    }
    return sum;
}

struct Image {
    int64_t height, width;
    const int8_t *groups;  // (H, W, K, 2)
};

// One patch of a plane, around (y, x).
inline void patch_at(const Config &config, const Image &image, const double *plane, int64_t y,
                     int64_t x, double *patch) {
    const int r = config.radius();
    for (int i = 0; i < config.patch; i++) {
        for (int j = 0; j < config.patch; j++) {
            patch[i * config.patch + j] = plane[mirrored(y + i - r, image.height) * image.width +
                                                mirrored(x + j - r, image.width)];
        }
    }
}

// u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x), of one plane
inline void stage_update(const Config &config, const StageValues &stage, int channel,
                         const Image &image, const double *estimate, const double *noisy,
                         double *update) {
    const int pixels = config.pixels(), r = config.radius();
    double *sum = numbers(pixels), *patch = numbers(pixels), *back = numbers(pixels);
    for (int64_t i = 0; i < image.height * image.width; i++) {
        update[i] = (1 - stage.step_size) * estimate[i] + stage.step_size * noisy[i];
    }
    for (int64_t y = 0; y < image.height; y++) {
        for (int64_t x = 0; x < image.width; x++) {
            const int8_t *group = image.groups + (y * image.width + x) * config.group * 2;
            for (int p = 0; p < pixels; p++) sum[p] = back[p] = 0;
            for (int k = 0; k < config.group; k++) {
                patch_at(config, image, estimate, y + group[2 * k], x + group[2 * k + 1], patch);
                for (int p = 0; p < pixels; p++) sum[p] += stage.weights[k] * patch[p];
            }
            for (int f = 0; f < config.filters(); f++) {
                const double *filter = stage.filters + f * pixels;
                double feature = 0;
                for (int p = 0; p < pixels; p++) feature += filter[p] * sum[p];
                const double *mixture =
                    stage.coefficients +
                    (int64_t(channel) * config.filters() + f) * config.rbf_count;
                feature = psi(config, mixture, feature);
                for (int p = 0; p < pixels; p++) back[p] += filter[p] * feature;
            }
            for (int k = 0; k < config.group; k++) {
                for (int p = 0; p < pixels; p++) {
                    const int64_t row =
                        mirrored(y + group[2 * k] + p / config.patch - r, image.height);
                    const int64_t column =
                        mirrored(x + group[2 * k + 1] + p % config.patch - r, image.width);
                    update[row * image.width + column] -= stage.weights[k] * back[p];
                }
            }
        }
    }
    free(sum);
    free(patch);
    free(back);
}

inline void to_opponent(double *c) {
    const double r = c[0], g = c[1], b = c[2];
    c[0] = (r + g + b) / 3;
    c[1] = (r - b) / 2;
    c[2] = r / 4 - g / 2 + b / 4;
}

// The inverse: luminance and chrominances to red, green and blue.
inline void to_rgb(double *c) {
    const double l = c[0], u = c[1], v = c[2];
    c[0] = l + u + v * 2 / 3;
    c[1] = l - v * 4 / 3;
    c[2] = l - u + v * 2 / 3;
}

// P_C of all pixels of working planes, (C, H, W), in place.
inline void project(int channels, double low, double high, int64_t size, double *planes) {
    for (int64_t i = 0; i < size; i++) {
        double c[3];
        for (int channel = 0; channel < channels; channel++)
            c[channel] = planes[channel * size + i];
        if (channels == 3) to_rgb(c);
        for (int channel = 0; channel < channels; channel++) {
            c[channel] = c[channel] < low ? low : c[channel] > high ? high : c[channel];
        }
        if (channels == 3) to_opponent(c);
        for (int channel = 0; channel < channels; channel++)
            planes[channel * size + i] = c[channel];
    }
}

// All stages, and the refinement if there is one, on working planes, (C, H, W), in place.
inline void run(const Network &network, const Image &image, double low, double high,
                double *planes) {
    const Config &config = network.config;
    const int64_t size = image.height * image.width;
    double *noisy = numbers(config.channels * size), *update = numbers(config.channels * size);
    memcpy(noisy, planes, size_t(config.channels * size) * sizeof(double));
    for (int s = 0; s < config.stages; s++) {
        for (int channel = 0; channel < config.channels; channel++) {
            stage_update(config, network.stages[s], channel, image, planes + channel * size,
                         noisy + channel * size, update + channel * size);
        }
        memcpy(planes, update, size_t(config.channels * size) * sizeof(double));
        if (low <= high && (config.project_every_stage || s + 1 == config.stages)) {
            project(config.channels, low, high, size, planes);
        }
    }
    if (config.refinement.levels > 0) {
        refine(network.refinement, config.channels, image.height, image.width, noisy, planes);
        if (low <= high) project(config.channels, low, high, size, planes);
    }
    free(noisy);
    free(update);
}

}  // namespace plain
