// The refinement of one image, row by row.
#pragma once

#include "../network.h"
#include "../planes.h"
#include "layer_rings.h"

namespace nlnet {
namespace {

template <typename T>
class Refiner {
  public:
    // Take memory for the ring buffers of a schedule.
    void make(const Refinement<T> &refinement, const LayerSchedule &schedule, int channels,
              int64_t height, int64_t width, Memory &memory) {
        refinement_ = &refinement;
        channels_ = channels;
        height_ = height;
        width_ = width;
        rings_.make(refinement.specs, refinement.layers, schedule,
                    pixels_of(refinement.specs, width), memory);
    }

    // Scratch memory for a task: a row of R, and one of the image.
    static size_t scratch(const LayerSpecs &specs, int channels, int64_t width) {
        const int64_t result = pixels_of(specs, width) * refinement_outputs(channels) + kRoom;
        return size_t(result + channels * (width + kRoom)) * sizeof(T);
    }

    // Take row y of the estimate and of the noisy image, as working planes. Mirrored rows follow
    // the last one, to make whole rows of the lowest level.
    void take(const PixelKernels<T> &kernels, const T *const *estimate, const T *const *noisy,
              int64_t y) const {
        for (int plane = 0; plane < 2 * channels_; plane++) {
            const T *from = plane < channels_ ? estimate[plane] : noisy[plane - channels_];
            const T center = center_of(plane % channels_);
            T *to = input_at(y, plane);
            kernels.unshuffle({from, 2, center, width_ / 2, to, stride()});
            for (int64_t x = width_ / 2 * 2; x < 2 * rings_.pixels(); x++) {
                const int64_t there = x < width_ ? x : larger_of(2 * width_ - 1 - x, 0);
                to[x / 2 * stride() + x % 2] = from[there] - center;
            }
        }
        if (y + 1 < height_) return;
        for (int64_t below = height_; below < 2 * rings_.input_rows(); below++) {
            const int64_t there = larger_of(2 * height_ - 1 - below, 0);
            for (int plane = 0; plane < 2 * channels_; plane++) {
                kernels.unshuffle({input_at(there, plane), stride(), T(0), rings_.pixels(),
                                   input_at(below, plane), stride()});
            }
        }
    }

    // Compute rows of a layer; those of the last one go to `write`, as rows of the image.
    template <typename Write>
    void run(const StageKernels<T> &stages, const PixelKernels<T> &pixels, const LayerTask &task,
             void *scratch, const Write &write) const {
        T *result = static_cast<T *>(scratch);
        for (int64_t y = task.first; y < task.last; y++) {
            rings_.convolve(stages, task.layer, y, result);
            if (rings_.is_last(task.layer)) descend(pixels, y, result, write);
        }
    }

  private:
    static int64_t pixels_of(const LayerSpecs &specs, int64_t width) {
        return round_up(width, specs.unit()) / 2;
    }
    int64_t stride() const { return refinement_inputs(channels_); }
    T center_of(int channel) const { return channel == 0 ? refinement_->center : T(0); }

    // Where row y of a plane begins in the input: planes of x, then of y, four channels each.
    T *input_at(int64_t y, int plane) const { return rings_.input(y / 2) + plane * 4 + y % 2 * 2; }

    // (1 - gamma) x + gamma y - R for the two rows of the image that a row of R is.
    template <typename Write>
    void descend(const PixelKernels<T> &kernels, int64_t y, T *result, const Write &write) const {
        const int outputs = refinement_outputs(channels_);
        const Planes<T> planes = {result + rings_.pixels() * outputs + kRoom, width_ + kRoom, 1};
        const RowOf<T> row(planes, channels_, 0);
        for (int64_t at = 2 * y; at < smaller_of(2 * y + 2, height_); at++) {
            for (int channel = 0; channel < channels_; channel++) {
                kernels.refine({input_at(at, channel), input_at(at, channels_ + channel), stride(),
                                result + channel * 4 + at % 2 * 2, outputs, refinement_->step_size,
                                center_of(channel), (width_ + 1) / 2, row.channels[channel]});
            }
            write(row, at);
        }
    }

    const Refinement<T> *refinement_;
    int channels_;
    int64_t height_, width_;
    LayerRings<T> rings_;
};

}  // namespace
}  // namespace nlnet
