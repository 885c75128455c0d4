// The refinement of one image, row by row: what its tasks work on, and what they do.
#pragma once

#include "network.h"
#include "planes.h"
#include "schedule.h"

namespace nlnet {
namespace {

// Rows of one layer's output, or of the input, with a pixel of zeros at both ends.
template <typename T>
struct LayerBuffer {
    T *data;
    int64_t stride, capacity;

    T *row(int64_t y, int channels) const { return data + y % capacity * stride + channels; }
};

template <typename T>
class Refining {
  public:
    // Take memory for the ring buffers of a flow.
    void make(const Refinement<T> &refinement, const Flow &flow, int channels, int64_t height,
              int64_t width, Memory &memory) {
        refinement_ = &refinement;
        channels_ = channels;
        height_ = height;
        width_ = width;
        pixels_ = round_up(width, refinement.shape.unit()) / 2;
        input_ = make_buffer(flow, kInput, input_channels(channels), memory);
        for (int number = 0; number + 1 < flow.count(); number++) {
            buffers_[number] = make_buffer(flow, number, flow.layer(number).place.given, memory);
        }
        input_rows_ = flow.layer(kInput).height;
        for (int number = 0; number < flow.count(); number++) {
            heights_[number] = flow.layer(number).height;
        }
    }

    // Scratch memory for a task: a row of R, and one of the image.
    static size_t scratch(const RefinementShape &shape, int channels, int64_t width) {
        const int64_t pixels = round_up(width, shape.unit()) / 2;
        const int64_t result = pixels * output_channels(channels) + kRoom;
        return size_t(result + channels * (width + kRoom)) * sizeof(T);
    }

    // Row y of x and y, as working planes; behind the image's last row follow mirrored ones.
    void take(const T *const *estimate, const T *const *noisy, int64_t y) const {
        take_row(estimate, noisy, y);
        if (y + 1 < height_) return;
        for (int64_t beyond = height_; beyond < 2 * input_rows_; beyond++) {
            const int64_t mirrored = 2 * height_ - 1 - beyond;
            copy_row(mirrored < 0 ? 0 : mirrored, beyond);
        }
    }

    // Rows of a layer; those of the last one go to `write`, as working planes of the image.
    template <typename Write>
    void run(const StageKernels<T> &kernels, const LayerTask &task, void *scratch,
             const Write &write) const {
        const Layer<T> &layer = refinement_->layers[task.layer];
        const bool last = task.layer + 1 == refinement_->count;
        const int given = layer.place.given;
        for (int64_t y = task.first; y < task.last; y++) {
            T *result = static_cast<T *>(scratch);
            T *target = last ? result : buffers_[task.layer].row(y, given);
            kernels.convolve(row_of(layer, task.layer, y, target));
            if (last) descend(y, result, write);
        }
    }

  private:
    LayerBuffer<T> make_buffer(const Flow &flow, int number, int channels, Memory &memory) const {
        const LayerRows &rows = flow.layer(number);
        const int level = number == kInput ? 0 : rows.place.level;
        const int64_t stride = ((pixels_ >> level) + 2) * channels;
        T *data = memory.take<T>(rows.capacity, stride);
        // The zeros at the ends stay; all else is written before it is read.
        for (int64_t i = 0; data != nullptr && i < rows.capacity * stride; i++) data[i] = 0;
        return {data, stride, rows.capacity};
    }

    const LayerBuffer<T> &buffer(int number) const {
        return number == kInput ? input_ : buffers_[number];
    }

    ConvolvedRow<T> row_of(const Layer<T> &layer, int number, int64_t y, T *target) const {
        const Place &place = layer.place;
        const LayerBuffer<T> &source = buffer(place.source);
        const int64_t height = place.source == kInput ? input_rows_ : heights_[place.source];
        const int64_t pixels = pixels_ >> place.level;
        ConvolvedRow<T> row = {};
        row.lines = kernel_rows(place.kind);
        row.inner = int(kernel_inner(place));
        row.weights = layer.weights;
        row.biases = layer.biases;
        row.rectified = place.rectified;
        row.outputs = int(outputs(place));
        row.pixels = place.kind == Kind::kDouble ? pixels / 2 : pixels;
        row.step = place.kind == Kind::kHalve ? 2 * place.taken : place.taken;
        row.target = target;
        const int64_t first = place.kind == Kind::kSame    ? y - 1
                              : place.kind == Kind::kHalve ? 2 * y
                                                           : y / 2;
        for (int line = 0; line < row.lines; line++) {
            const int64_t there = first + line;
            if (there < 0 || there >= height) continue;
            row.sources[line] = source.row(there, place.taken);
            if (place.kind == Kind::kSame) row.sources[line] -= place.taken;  // the pixel before
        }
        if (place.kind == Kind::kDouble && y % 2 == 1) {
            row.weights += weight_count(place) / 2;
            row.biases += bias_count(place) / 2;
        }
        const bool last = number + 1 == refinement_->count;
        if (place.addend != kNothing && !last) {
            row.addend = buffer(place.addend).row(y, place.given);
        }
        return row;
    }

    // Where a pixel of the image is in the input: channels of x, then of y, four pixels each.
    T *input_at(int64_t y, int plane) const {
        return input_.row(y / 2, input_channels(channels_)) + plane * 4 + y % 2 * 2;
    }

    void take_row(const T *const *estimate, const T *const *noisy, int64_t y) const {
        const int count = input_channels(channels_);
        for (int plane = 0; plane < 2 * channels_; plane++) {
            const T *from = plane < channels_ ? estimate[plane] : noisy[plane - channels_];
            const T center = plane % channels_ == 0 ? refinement_->center : T(0);
            T *to = input_at(y, plane);
            for (int64_t x = 0; x < 2 * pixels_; x++) {
                const int64_t mirrored = x < width_ ? x : 2 * width_ - 1 - x;
                to[x / 2 * count + x % 2] = from[mirrored < 0 ? 0 : mirrored] - center;
            }
        }
    }

    void copy_row(int64_t from, int64_t to) const {
        const int count = input_channels(channels_);
        for (int plane = 0; plane < 2 * channels_; plane++) {
            const T *source = input_at(from, plane);
            T *target = input_at(to, plane);
            for (int64_t x = 0; x < 2 * pixels_; x++) {
                target[x / 2 * count + x % 2] = source[x / 2 * count + x % 2];
            }
        }
    }

    // (1 - gamma) x + gamma y - R for the two rows of the image that a row of R is.
    template <typename Write>
    void descend(int64_t y, T *result, const Write &write) const {
        const int count = input_channels(channels_), given = output_channels(channels_);
        const T step = refinement_->step_size;
        T *rows = result + pixels_ * given + kRoom;
        const Planes<T> planes = {rows, width_ + kRoom, 1};
        for (int64_t half = 0; half < 2 && 2 * y + half < height_; half++) {
            const RowOf<T> row(planes, channels_, 0);
            for (int channel = 0; channel < channels_; channel++) {
                const T *estimate = input_at(2 * y + half, channel);
                const T *noisy = input_at(2 * y + half, channels_ + channel);
                const T *change = result + channel * 4 + half * 2;
                const T center = channel == 0 ? refinement_->center : T(0);
                T *target = row.channels[channel];
                for (int64_t x = 0; x < width_; x++) {
                    const int64_t at = x / 2 * count + x % 2;
                    target[x] = (1 - step) * estimate[at] + step * noisy[at] -
                                change[x / 2 * given + x % 2] + center;
                }
            }
            write(row, 2 * y + half);
        }
    }

    const Refinement<T> *refinement_;
    int channels_;
    int64_t height_, width_;
    int64_t pixels_;  // of a row of level 0
    int64_t input_rows_;
    int64_t heights_[kMostLayers];
    LayerBuffer<T> input_;
    LayerBuffer<T> buffers_[kMostLayers];
};

}  // namespace
}  // namespace nlnet
