// How strong white noise is, found from the image alone.
//
// X. Liu, M. Tanaka, M. Okutomi, "Single-Image Noise Level Estimation for Blind Denoising", IEEE
// Transactions on Image Processing 22 (2013). Patches of a natural image lie near a subspace, noise
// fills all dimensions alike: the smallest eigenvalues of the patches' covariance are the noise's
// variance. Texture fills the subspace up, so only weakly textured patches are looked at: those
// whose gradients are no stronger than those of noise alone.
//
// Departures from the paper: the mean of the smallest twelfth of the eigenvalues instead of the
// very smallest, which is biased downwards; smaller patches for small images; patches near a limit
// at which values were clipped are left out, for their noise was clipped as well; and so are
// constant patches, such as the surroundings of a CT scan.
#include "white.h"

#include "covariance.h"
#include "patch_grid.h"

namespace nlnet {
namespace {

constexpr int kRounds = 5;
constexpr double kSettled = 1e-3;                // relative change of the variance
constexpr double kQuantile = 4.753424308822899;  // of the normal distribution, for 1 - 1e-6
constexpr double kMargin = 2;  // standard deviations of the noise between a limit and the patches

// What the texture of a patch of noise of variance 1 stays below, almost surely. It is nearly a
// scaled chi-squared variable of as many degrees as the differences have independent directions;
// its quantile is by the formula of Wilson and Hilferty.
double texture_of_noise(int patch) {
    const double differences = patch * (patch - 2);  // in each direction, of variance 1/2 each
    const double degrees = patch * patch - 4;  // the mean of each of the four sublattices cancels
    const double spread = 2 / (9 * degrees);
    const double root = 1 - spread + kQuantile * __builtin_sqrt(spread);
    return differences * root * root * root;
}

// Which patches to look at: those with no more texture, and a mean between limits.
struct Choice {
    double texture, low, high;

    bool has(float patch_texture, float mean) const {
        return double(patch_texture) <= texture && double(mean) > low && double(mean) < high;
    }
};

constexpr double kInfinite = __builtin_inf();
constexpr Choice kAll = {3e38, -kInfinite, kInfinite};

// Patches are chosen by the noise that was found in those chosen before.
struct Rounds {
    const NoiseKernels *kernels;
    PatchGrid grid;
    Survey survey;
    uint8_t *chosen;  // of each patch
    int64_t chosen_count;
    Covariance covariance;

    bool has(const Choice &choice, int64_t number) const {
        return choice.has(survey.textures[number], survey.means[number]);
    }
    int64_t count(const Choice &choice) const {
        int64_t found = 0;
        for (int64_t i = 0; i < grid.count; i++) found += has(choice, i);
        return found;
    }
    bool is_enough(int64_t patches) const { return patches >= 2 * (grid.pixels() - 1); }

    // Patches that noise of this variance alone explains, away from clipped values.
    Choice weakly_textured(double variance) const {
        const double texture = variance * texture_of_noise(grid.patch);
        const double margin = kMargin * __builtin_sqrt(variance);
        const Choice inside = {texture, grid.task->low + margin, grid.task->high - margin};
        // Unless little is left: an image in black and white is all at its limits.
        if (count(inside) >= 10 * (grid.pixels() - 1)) return inside;
        return {texture, -kInfinite, kInfinite};
    }

    void begin() {
        __builtin_memset(chosen, 0, size_t(grid.count));
        covariance.clear();
    }

    // Bring the covariance up to date: only what has changed is added or taken away.
    void choose(const Choice &choice) {
        int64_t kept = 0;
        for (int64_t i = 0; i < grid.count; i++) kept += has(choice, i) & chosen[i];
        chosen_count = count(choice);
        if (kept < chosen_count / 2) begin();  // that is less work
        const int64_t stride = grid.task->width;
        grid.each_row([&](const float *row, int64_t first, int64_t columns) {
            for (int64_t i = 0; i < columns; i++) {
                const bool now = has(choice, first + i);
                if (now == (chosen[first + i] != 0)) continue;
                chosen[first + i] = now;
                covariance.change(now, *kernels, row + i * grid.step, stride,
                                  survey.means[first + i]);
            }
        });
        covariance.end(*kernels);
    }

    double variance_of(const Choice &choice) {
        choose(choice);
        return covariance.smallest_variance(chosen_count);
    }

    double sigma() {
        survey.make(*kernels, grid);
        begin();
        double variance = variance_of(kAll);
        for (int round = 0; round < kRounds; round++) {
            const Choice weak = weakly_textured(variance);
            if (!is_enough(count(weak))) break;
            const double before = variance;
            variance = variance_of(weak);
            if (__builtin_fabs(variance - before) <= kSettled * before) break;
        }
        return __builtin_sqrt(variance);
    }
};

}  // namespace

struct WhiteEstimate {
    Rounds rounds;
};

WhiteEstimate *make_white(const Kernels &kernels, const WhiteTask *task, Memory &memory) {
    WhiteEstimate *estimate = memory.take<WhiteEstimate>(1);
    const PatchGrid grid = choose_grid(task);
    Rounds made = {kernels.noise, grid, {}, nullptr, 0, {}};
    made.survey.take_memory(grid, memory);
    made.chosen = memory.take<uint8_t>(grid.count);
    made.covariance.take_memory(grid.patch, memory);
    if (estimate != nullptr) estimate->rounds = made;
    return estimate;
}

double white_sigma(WhiteEstimate *estimate) {
    return estimate->rounds.sigma();
}

}  // namespace nlnet
