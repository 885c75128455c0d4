// The layers of a small convolutional network, a refinement or an eye: what each one does, and its
// weights.
//
// Level 0 has half the size of the image, and every level below it half that of the one above. On
// the way down each level has blocks of two convolutions, whose result is added to the block's
// input. A refinement then goes up again: each level adds the end of its way down, and has blocks
// again.
#pragma once

#include "../block.h"
#include "../memory.h"

namespace nlnet {

constexpr int kMostLevels = 4;
constexpr int kMostWidth = 256;
constexpr int kMostBlocks = 8;  // of a level, on one of its ways

struct LevelSizes {
    int levels;               // 0: there is no network
    int widths[kMostLevels];  // channels of each level, multiples of 8
    int down[kMostLevels];    // blocks on the way down
    int up[kMostLevels];      // blocks on the way up; the lowest level has none
};

enum class LayerKind : int8_t {
    kSame,    // 3x3, with zeros around
    kHalve,   // 2x2, with a stride of 2
    kDouble,  // 1x1; each pixel becomes 2x2, whose rows have weights of their own
};

constexpr int kInput = -1;  // in place of a layer: the network's input
constexpr int kNone = -2;   // in place of a layer: nothing is added

struct LayerSpec {
    LayerKind kind;
    bool rectified;      // ReLU after the addition
    int source, addend;  // earlier layers, kInput or kNone
    int level;           // of its output
    int in_channels, out_channels;

    int kernel_rows() const {
        return kind == LayerKind::kSame ? 3 : kind == LayerKind::kHalve ? 2 : 1;
    }
    // Rows of the output that one row of the input becomes, each with weights of its own.
    int phases() const { return kind == LayerKind::kDouble ? 2 : 1; }
    // Elements that one row of the kernel reads, next to each other.
    int row_inputs() const { return kernel_rows() * in_channels; }
    // Elements that one position of the kernel gives, next to each other in a row of the output.
    int row_outputs() const { return phases() * out_channels; }
    // Elements of (phases, kernel rows, row inputs, row outputs) weights.
    int64_t weight_count() const {
        return int64_t(phases()) * kernel_rows() * row_inputs() * row_outputs();
    }
    int64_t bias_count() const { return int64_t(phases()) * row_outputs(); }
    // Whether its biases depend on sigma, in the refinement of a family: those of the first layer,
    // and of the first one of each block.
    bool varies() const { return kind == LayerKind::kSame && addend == kNone; }
};

// Layers of a network at most: with all blocks, and what is between the levels.
constexpr int kMostLayers = kMostLevels * (4 * kMostBlocks + 2) + 2;

// All layers, each behind those that it needs.
struct LayerSpecs {
    int levels, count;
    LayerSpec specs[kMostLayers];

    // Pixels of the image, along a side, that are one of the lowest level.
    int unit() const { return 1 << levels; }
    // Bytes of all arrays in a parameter block.
    size_t bytes(bool single) const;
};

// Channels of a refinement's input, four pixels of x and four of y, and of its output, rounded up
// to a multiple of 8.
constexpr int refinement_inputs(int channels) {
    return 8 * channels;
}
constexpr int refinement_outputs(int channels) {
    return int(round_up(4 * channels, 8));
}
// The last layer of a refinement gives R; its addend is what R is subtracted from.
LayerSpecs refinement_layers(const LevelSizes &sizes, int channels);

constexpr int kFeatures = 4;  // per pixel, of an eye's input

LayerSpecs eye_layers(const LevelSizes &sizes, int outputs);

// Take sizes from a parameter block; `up` is NULL where there is no way up. False if one of them is
// out of its bounds.
bool read_sizes(uint32_t levels, const uint32_t *widths, const uint32_t *down, const uint32_t *up,
                LevelSizes *sizes);
// Whether a level can have so many channels.
bool width_fits(uint32_t width);

// The weights of a layer; arrays have kRoom elements more than said.
template <typename T>
struct Layer {
    const T *weights;
    const T *biases;
};

namespace {

// Copy the arrays of all layers from a parameter block.
template <typename T>
const Layer<T> *read_layers(const LayerSpecs &specs, const char *arrays, bool single,
                            Memory &memory) {
    Layer<T> *layers = memory.take<Layer<T>>(specs.count);
    size_t at = 0;
    const auto read = [&](int64_t count) {
        T *values = memory.take<T>(count);
        for (int64_t i = 0; values != nullptr && i < count; i++) {
            values[i] = T(value_at(arrays + at, single, i));
        }
        at = after(at, count, single);
        return values;
    };
    for (int number = 0; number < specs.count; number++) {
        const T *weights = read(specs.specs[number].weight_count());
        const T *biases = read(specs.specs[number].bias_count());
        if (layers != nullptr) layers[number] = {weights, biases};
    }
    return layers;
}

}  // namespace
}  // namespace nlnet
