// The kernels that work on single rows of pixels and give the same bits for all sets, beside their
// definitions.
#include "../src/network.h"

#include "plain_eye.h"

namespace check {
namespace {

template <typename T>
void check_to_working(const nlnet::PixelKernels<T> &kernels, Random &random, Report &report) {
    const int channels = random.between(0, 1) ? 3 : 1;
    const int64_t width = random.between(1, 70), step = random.between(1, 4);
    Array<T> pixels(size_t(3 * width * step)), planes(size_t(3 * width));
    for (size_t i = 0; i < pixels.count; ++i) pixels[i] = T(300 * random.uniform() - 20);
    const T *const sources[] = {pixels.data, pixels.data + width * step,
                                pixels.data + 2 * width * step};
    T *const results[] = {planes.data, planes.data + width, planes.data + 2 * width};
    kernels.to_working(channels, sources, step, results, width);
    bool equal = true;
    for (int64_t x = 0; x < width; ++x) {
        const T r = sources[0][x * step];
        if (channels == 1) {
            equal = equal && planes[x] == r;
            continue;
        }
        const T g = sources[1][x * step], b = sources[2][x * step], third = T(1.0 / 3);
        const T terms[] = {r * third, g * third, b * third};
        const T luminance = terms[0] + terms[1];
        const T chroma = r * T(0.25) - g * T(0.5);
        equal = equal && planes[x] == luminance + terms[2] &&
                planes[width + x] == r * T(0.5) - b * T(0.5) &&
                planes[2 * width + x] == chroma + b * T(0.25);
    }
    report.expect(equal, "%d working planes of %d pixels of %d bytes, %d apart", channels,
                  int(width), int(sizeof(T)), int(step));
}

template <typename T>
void fill(const Array<T> &values, Random &random) {
    for (size_t i = 0; i < values.count; i++) values.data[i] = T(300 * random.uniform() - 20);
}

template <typename T>
void check_shuffles(const nlnet::PixelKernels<T> &kernels, Random &random, Report &report) {
    const int64_t pairs = random.between(1, 70);
    const int64_t from = 2 * random.between(1, 12), to = 2 * random.between(1, 12);
    const T center = T(100 * random.uniform()), step = T(random.uniform());
    const Array<T> estimate(size_t(pairs * from)), noisy(size_t(pairs * from));
    const Array<T> change(size_t(pairs * to)), moved(size_t(pairs * to)), row(size_t(2 * pairs));
    fill(estimate, random);
    fill(noisy, random);
    fill(change, random);
    fill(moved, random);
    const Array<T> before(moved.count);
    memcpy(before.data, moved.data, moved.count * sizeof(T));
    kernels.unshuffle({estimate.data, from, center, pairs, moved.data, to});
    kernels.refine(
        {estimate.data, noisy.data, from, change.data, to, step, center, pairs, row.data});
    bool is_moved = true, refined = true;
    for (int64_t i = 0; i < pairs * to; i++) {
        const T wanted = i % to < 2 ? T(estimate[i / to * from + i % to] - center) : before[i];
        is_moved = is_moved && moved[i] == wanted;
    }
    for (int64_t x = 0; x < 2 * pairs; x++) {
        const int64_t at = x / 2 * from + x % 2;
        const T kept = (1 - step) * estimate[at], pulled = step * noisy[at];
        const T sum = kept + pulled;
        const T less = sum - change[x / 2 * to + x % 2];
        refined = refined && row[x] == less + center;
    }
    report.expect(is_moved, "unshuffle, %d pairs, steps %d, %d", int(pairs), int(from), int(to));
    report.expect(refined, "refine, %d pairs, steps %d, %d", int(pairs), int(from), int(to));
}

// All rows of a tile, as planes of opponent colors.
struct FeatureCase {
    static constexpr int kRows = 5;  // the middle one is looked at
    int channels;
    int64_t width;
    Array<float> rgb, planes, line, target;

    FeatureCase(int count, int64_t columns, Random &random)
        : channels(count),
          width(columns),
          rgb(size_t(count * kRows * columns)),
          planes(size_t(count * kRows * (columns + nlnet::kRoom))),
          line(size_t(columns + 4 + nlnet::kRoom)),
          target(size_t(columns / 2 * 16)) {
        // From flat to far beyond what an image can hold.
        const double size = pow(10, random.uniform() * 8 - 2);
        for (size_t i = 0; i < rgb.count; i++) {
            rgb.data[i] = float(128 + size * (random.uniform() - 0.5));
        }
    }
    void run(const nlnet::Kernels &kernels) const {
        nlnet::FeatureRow row = {};
        row.planes = channels;
        row.width = width;
        row.line = line.data;
        row.target = target.data;
        for (int y = 0; y < kRows; y++) {
            const float *pixels[3] = {};
            float *converted[3] = {};
            for (int c = 0; c < channels; c++) {
                pixels[c] = rgb.data + (c * kRows + y) * width;
                row.rows[c][y] = converted[c] =
                    planes.data + (c * kRows + y) * (width + nlnet::kRoom);
            }
            kernels.pixel_float->to_working(channels, pixels, 1, converted, width);
        }
        for (size_t i = 0; i < target.count; i++) target.data[i] = -1;
        kernels.eye->features(row);
    }
};

void check_features(const nlnet::Kernels &kernels, Random &random, Report &report) {
    const FeatureCase now(random.below(2) ? 3 : 1, 2 * random.between(1, 60), random);
    now.run(kernels);
    const plain::Features wanted =
        plain::features_of(now.channels, FeatureCase::kRows, now.width, now.rgb.data);
    double most = 1, apart = 0;
    for (size_t i = 0; i < now.rgb.count; i++) {
        if (fabs(double(now.rgb.data[i])) > most) most = fabs(double(now.rgb.data[i]));
    }
    bool others_kept = true;
    for (int64_t i = 0; i < now.width / 2 * 16; i++) {
        const int channel = int(i % 16);
        if (channel % 4 >= 2) {
            others_kept = others_kept && now.target[i] == -1;  // of the other row of a pair
            continue;
        }
        const double off =
            fabs(double(now.target[i]) - wanted.at(channel / 4, 2, i / 16 * 2 + channel % 4));
        if (!(off <= apart)) apart = off;
    }
    // The mean is rounded to the digits of the largest pixels.
    report.expect(apart <= 1e-6 + 4e-7 * most && others_kept,
                  "features, %d channels, %d columns, up to %g: %.3g apart", now.channels,
                  int(now.width), most, apart);
    const Array<float> first(now.target.count);
    memcpy(first.data, now.target.data, first.count * sizeof(float));
    for (int set = NLNET_SSE2; set <= NLNET_SIMD128; set++) {
        if (nlnet::kernels_of(nlnet_set(set)) == nullptr) continue;
        now.run(*nlnet::kernels_of(nlnet_set(set)));
        report.expect(!memcmp(first.data, now.target.data, first.count * sizeof(float)),
                      "features differ from those of set %d", set);
    }
}

}  // namespace

void check_pixels(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < 2 * rounds; round++) {
        check_to_working(*kernels.pixel_float, random, report);
        check_to_working(*kernels.pixel_double, random, report);
        check_shuffles(*kernels.pixel_float, random, report);
        check_shuffles(*kernels.pixel_double, random, report);
        check_features(kernels, random, report);
    }
}

}  // namespace check
