// Ring buffers with rows of every layer's output, and the convolution of one row.
#pragma once

#include "../kernels.h"
#include "layer_schedule.h"

namespace nlnet {
namespace {

// Rows of one layer's output, or of the input: all channels of a pixel are next to each other, and
// both ends of a row have a pixel of zeros.
template <typename T>
struct LayerRing {
    T *data;
    int64_t stride, capacity;
    int channels;

    T *row(int64_t y) const { return data + y % capacity * stride + channels; }
};

template <typename T>
class LayerRings {
  public:
    // Take memory for the rows that the schedule keeps; `pixels` are those of a row of level 0.
    void make(const LayerSpecs &specs, const Layer<T> *layers, const LayerSchedule &schedule,
              int64_t pixels, Memory &memory) {
        specs_ = &specs;
        layers_ = layers;
        pixels_ = pixels;
        input_rows_ = schedule.layer(kInput).height;
        input_ =
            make_ring(schedule.layer(kInput).capacity, pixels, specs.specs[0].in_channels, memory);
        for (int number = 0; number + 1 < specs.count; number++) {
            const LayerSpec &spec = specs.specs[number];
            rings_[number] = make_ring(schedule.layer(number).capacity, pixels >> spec.level,
                                       spec.out_channels, memory);
        }
    }

    int64_t pixels() const { return pixels_; }
    int64_t input_rows() const { return input_rows_; }
    bool is_last(int number) const { return number + 1 == specs_->count; }

    // Row y of the input, from its first pixel on.
    T *input(int64_t y) const { return input_.row(y); }

    // Compute row y of a layer, into its ring buffer, or of the last layer, into `result`.
    void convolve(const StageKernels<T> &kernels, int number, int64_t y, T *result) const {
        const LayerSpec &spec = specs_->specs[number];
        const LayerRing<T> &source = ring(spec.source);
        const int source_level = spec.source == kInput ? 0 : specs_->specs[spec.source].level;
        const int64_t source_height = input_rows_ >> source_level;
        ConvolvedRow<T> row = {};
        row.lines = spec.kernel_rows();
        row.inner = spec.row_inputs();
        row.weights = layers_[number].weights;
        row.biases = layers_[number].biases;
        row.rectified = spec.rectified;
        row.outputs = spec.row_outputs();
        row.pixels = (pixels_ >> spec.level) / spec.phases();
        row.step = spec.in_channels;
        row.target = is_last(number) ? result : rings_[number].row(y);
        int64_t first = y - 1;
        if (spec.kind == LayerKind::kHalve) {
            first = 2 * y;
            row.step = 2 * spec.in_channels;
        } else if (spec.kind == LayerKind::kDouble) {
            first = y / 2;
            row.weights += y % 2 * (spec.weight_count() / 2);
            row.biases += y % 2 * (spec.bias_count() / 2);
        }
        for (int line = 0; line < row.lines; line++) {
            const int64_t there = first + line;
            if (there < 0 || there >= source_height) continue;
            // A 3x3 kernel begins at the pixel before.
            const int64_t before = spec.kind == LayerKind::kSame ? spec.in_channels : 0;
            row.sources[line] = source.row(there) - before;
        }
        if (spec.addend != kNone && !is_last(number)) row.addend = ring(spec.addend).row(y);
        kernels.convolve(row);
    }

  private:
    static LayerRing<T> make_ring(int64_t capacity, int64_t pixels, int channels, Memory &memory) {
        const int64_t stride = (pixels + 2) * channels;
        T *data = memory.take<T>(capacity, stride);
        // The zeros at both ends stay; all else is written before it is read.
        for (int64_t row = 0; data != nullptr && row < capacity; row++) {
            T *start = data + row * stride, *end = start + stride - channels;
            for (int i = 0; i < channels; i++) start[i] = end[i] = 0;
        }
        return {data, stride, capacity, channels};
    }

    const LayerRing<T> &ring(int number) const {
        return number == kInput ? input_ : rings_[number];
    }

    const LayerSpecs *specs_;
    const Layer<T> *layers_;
    int64_t pixels_;      // of a row of level 0
    int64_t input_rows_;  // of the whole image
    LayerRing<T> input_;
    LayerRing<T> rings_[kMostLayers];
};

}  // namespace
}  // namespace nlnet
