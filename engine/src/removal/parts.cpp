// Parts of removal, for arrays in memory: each call runs to its end in the thread that makes it.
#include "../arithmetic.h"
#include "../network.h"
#include "image.h"
#include "plan.h"

namespace nlnet {
namespace {

// Values of white that are usual, and the share of one that values of such an image fill; more than
// 1 if there is much noise.
constexpr double kWhites[] = {1, 255, 1023, 4095, 16383, 65535};
constexpr double kLeastFill = 0.25, kMostFill = 2.5;
constexpr int64_t kMostValues = int64_t(1) << 40;

bool is_image(int channels, int64_t height, int64_t width) {
    return channels > 0 && height > 0 && width > 0 && channels <= 64 &&
           height <= kMostValues / 64 / width;
}

const RemovalKernels *removal_kernels(nlnet_set set) {
    const Kernels *kernels = kernels_of(set == NLNET_BEST ? nlnet_best_set() : set);
    return kernels == nullptr ? nullptr : kernels->removal;
}

double larger(double left, double right) {
    return left < right ? right : left;
}

bool is_none(const nlnet_noise &noise) {
    return noise.kind == NLNET_WHITE && noise.sigma == 0;
}

double mean_strength(const nlnet_noise &noise) {
    if (noise.kind != NLNET_CAMERA) return noise.sigma;
    double sum = 0;
    for (int64_t i = 0; i < noise.rows * noise.columns; i++) sum += double(noise.strengths[i]);
    return sum / double(noise.rows * noise.columns);
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_fill(const nlnet_noise *noise, double low, double high, double *span,
                        double *black) {
    if (noise == nullptr || span == nullptr || black == nullptr ||
        !(is_sound(*noise, noise->level_count) || is_none(*noise)) || !is_finite(low) ||
        !is_finite(high)) {
        return NLNET_BAD_ARGUMENT;
    }
    if (noise->kind == NLNET_DEPENDENT) {
        // Once it is even.
        const RemovalKernels &kernels = *removal_kernels(NLNET_BEST);
        alignas(kCacheLine) char room[sizeof(Curve) + 2 * kCacheLine];
        *span = 1;
        for (int i = 0; i < noise->level_count; i++) {
            Memory memory(room);
            Stabiliser stabiliser;
            stabiliser.make(noise->levels[i], memory);
            double ends[2] = {low, high};
            stabiliser.turn(kernels, false, 2, ends, ends);
            *span = larger(*span, ends[1] - ends[0]);
            *black = i == 0 || ends[0] < *black ? ends[0] : *black;
        }
        return NLNET_OK;
    }
    const double filled = high - low, sigma = mean_strength(*noise);
    // Where the white is a usual one, images are seen as in training.
    for (const double white : kWhites) {
        if (kLeastFill * white <= filled && filled <= kMostFill * white && low < white) {
            *span = larger(white, sigma);
            *black = 0;
            return NLNET_OK;
        }
    }
    *span = larger(filled, sigma);
    if (*span == 0) *span = 1;
    *black = low;
    return NLNET_OK;
}

nlnet_status nlnet_stabilise(const nlnet_level *level, nlnet_element element, nlnet_set set,
                             int inverse, int64_t count, const void *values, void *turned,
                             void *memory, size_t *size) {
    if (level == nullptr || !is_sound(*level) || count < 0 || count > kMostValues ||
        (element != NLNET_FLOAT && element != NLNET_DOUBLE) ||
        (memory != nullptr && count > 0 && (values == nullptr || turned == nullptr))) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalKernels *kernels = removal_kernels(set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    Stabiliser *made = nullptr;
    const nlnet_status status = make_in(memory, size, &made, [&](Memory &pieces) {
        Stabiliser *stabiliser = pieces.take<Stabiliser>(1), counted;
        (stabiliser == nullptr ? counted : *stabiliser).make(*level, pieces);
        return stabiliser;
    });
    if (status != NLNET_OK || memory == nullptr) return status;
    const DefaultArithmetic arithmetic;
    if (element == NLNET_FLOAT) {
        made->turn(*kernels, inverse != 0, count, static_cast<const float *>(values),
                   static_cast<float *>(turned));
    } else {
        made->turn(*kernels, inverse != 0, count, static_cast<const double *>(values),
                   static_cast<double *>(turned));
    }
    return NLNET_OK;
}

nlnet_status nlnet_halve(nlnet_set set, int32_t channels, int64_t height, int64_t width,
                         const float *planes, float *half) {
    if (!is_image(channels, height, width) || planes == nullptr || half == nullptr) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalKernels *kernels = removal_kernels(set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    const DefaultArithmetic arithmetic;
    for (int channel = 0; channel < channels; channel++) {
        for (int64_t y = 0; y < height / 2; y++) {
            const float *upper = planes + (channel * height + 2 * y) * width;
            kernels->halve(upper, upper + width, width / 2,
                           half + (channel * (height / 2) + y) * (width / 2));
        }
    }
    return NLNET_OK;
}

nlnet_status nlnet_enlarge(nlnet_set set, int32_t channels, int64_t height, int64_t width,
                           const float *half, int64_t first, int64_t last, int64_t full_width,
                           float *planes, void *memory, size_t *size) {
    if (!is_image(channels, height, width) || half == nullptr || planes == nullptr || first < 0 ||
        last < first || last > 2 * height + 1 || full_width < 1 || full_width > 2 * width + 1) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalKernels *kernels = removal_kernels(set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    float *line = nullptr;
    const nlnet_status status =
        make_in(memory, size, &line, [&](Memory &pieces) { return pieces.take<float>(width); });
    if (status != NLNET_OK || memory == nullptr) return status;
    const DefaultArithmetic arithmetic;
    const Change change = {half, height, width};
    for (int channel = 0; channel < channels; channel++) {
        for (int64_t y = first; y < last; y++) {
            float *row = planes + (channel * (last - first) + y - first) * full_width;
            for (int64_t x = 0; x < full_width; x++) row[x] = 0;
            change.add(*kernels, channel, y, full_width, line, row);
        }
    }
    return NLNET_OK;
}

nlnet_status nlnet_widen(nlnet_set set, int64_t rows, int64_t columns, const float *map,
                         int64_t height, int64_t width, float *plane, void *memory, size_t *size) {
    if (!is_image(1, rows, columns) || !is_image(1, height, width) || map == nullptr ||
        plane == nullptr) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalKernels *kernels = removal_kernels(set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    CoarseMap *made = nullptr;
    const nlnet_status status = make_in(memory, size, &made, [&](Memory &pieces) {
        CoarseMap *coarse = pieces.take<CoarseMap>(1), counted;
        (coarse == nullptr ? counted : *coarse)
            .make(rows, columns, {height, width, 0, 0, width}, pieces);
        return coarse;
    });
    if (status != NLNET_OK || memory == nullptr) return status;
    const DefaultArithmetic arithmetic;
    for (int64_t y = 0; y < height; y++) made->row(*kernels, map, y, plane + y * width);
    return NLNET_OK;
}

nlnet_status nlnet_blend(nlnet_set set, int32_t channels, int64_t pixels, const float *noisy,
                         float *denoised, double luma, double chroma) {
    const bool shares = luma >= 0 && luma <= 1 && chroma >= 0 && chroma <= 1;
    if ((channels != 1 && channels != 3) || pixels < 0 || pixels > kMostValues || !shares ||
        noisy == nullptr || denoised == nullptr) {
        return NLNET_BAD_ARGUMENT;
    }
    const RemovalKernels *kernels = removal_kernels(set);
    if (kernels == nullptr) return NLNET_NO_SUCH_SET;
    const DefaultArithmetic arithmetic;
    const float *from[3] = {noisy, noisy + pixels, noisy + 2 * pixels};
    float *to[3] = {denoised, denoised + pixels, denoised + 2 * pixels};
    kernels->blend(channels, from, to, float(luma), float(channels == 1 ? luma : chroma), pixels);
    return NLNET_OK;
}
