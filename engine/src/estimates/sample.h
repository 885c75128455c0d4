// The values of a sample, of whichever type they are, and the scale on which they are looked at.
#pragma once

#include "../elementary.h"
#include "../memory.h"
#include "decisions.h"

namespace nlnet {

// Copy `count` values of a row, from column `first` on, every `step`th.
void copy_values(const nlnet_planes &planes, int32_t type, int64_t channel, int64_t row,
                 int64_t first, int64_t step, int64_t count, double *values);

bool is_sound(const nlnet_sample *sample, bool with_values);

namespace {

// Tiles of a sample in all.
inline int64_t tile_count(const nlnet_sample &sample) {
    return sample.pages * sample.grid.rows * sample.grid.columns;
}

// From an image's values to those from 0 to 255 between the ends of what they fill.
struct SampleScale {
    double low, unit;

    SampleScale() = default;
    explicit SampleScale(const nlnet_measures &fill)
        : low(fill.low), unit((fill.high - fill.low) / 255) {}
    double of(double value) const { return (value - low) / unit; }
};

// The scaled values beyond which noise was clipped; infinite where it was not.
struct ClipLimits {
    double low, high;

    ClipLimits() = default;
    ClipLimits(const nlnet_extremes &extremes, const SampleScale &scale)
        : low(-__builtin_inf()), high(__builtin_inf()) {
        // Values next to those at which noise was clipped are left out, too.
        constexpr double next = 0.01;
        const double least = kClippedShare * double(extremes.count);
        if (double(extremes.low_count) > least) low = scale.of(extremes.low) + next;
        if (double(extremes.high_count) > least) high = scale.of(extremes.high) - next;
    }
};

}  // namespace
}  // namespace nlnet
