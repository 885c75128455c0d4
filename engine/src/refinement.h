// The refinement: a small convolutional network as one more step of the recursion,
// x <- (1 - gamma) x + gamma y - R(x, y).
//
// It works at half the image's size and smaller: a pixel of its input is four pixels of the
// estimate x and of the noisy image y. Level 0 is that size, and every level below it has half the
// one above. On the way down each level has blocks of two convolutions whose result is added to
// what went in; on the way up the levels are added to those of the way down, and have blocks again.
#pragma once

#include "memory.h"

namespace nlnet {

constexpr int kMostLevels = 4;
constexpr int kMostWidth = 256;
constexpr int kMostBlocks = 8;  // of a level, on one of its ways

// Sizes of a refinement; no levels: there is none.
struct RefinementShape {
    int levels;
    int widths[kMostLevels];  // channels of each level, multiples of 8
    int down[kMostLevels];    // blocks on the way down
    int up[kMostLevels];      // blocks on the way up; the lowest level has none

    // Pixels of the image that are one of the lowest level, along a side.
    int unit() const { return 1 << levels; }
};

// What a convolution does with the size of its input.
enum class Kind : int8_t {
    kSame,    // 3x3
    kHalve,   // 2x2, next to each other
    kDouble,  // 1x1; each pixel becomes 2x2, whose rows have weights of their own
};

constexpr int kInput = -1;    // in place of a layer: what the refinement takes in
constexpr int kNothing = -2;  // in place of a layer: nothing is added

// Where a layer is in the network.
struct Place {
    Kind kind;
    bool rectified;      // negative values become 0
    int source, addend;  // layers before it, kInput or kNothing
    int level;           // of its output
    int taken, given;    // channels of its input and of its output
};

// Rows of a kernel, and how many elements next to each other one of them takes in.
inline int kernel_rows(Kind kind) {
    return kind == Kind::kSame ? 3 : kind == Kind::kHalve ? 2 : 1;
}
inline int64_t kernel_inner(const Place &place) {
    return int64_t(kernel_rows(place.kind)) * place.taken;
}
// What comes out of it at a place of its input, in one row.
inline int64_t outputs(const Place &place) {
    return place.kind == Kind::kDouble ? 2 * place.given : place.given;
}
// Elements of (rows, inner, outputs) weights and of (outputs) biases, for each of two rows of the
// result if it doubles.
inline int64_t weight_count(const Place &place) {
    const int phases = place.kind == Kind::kDouble ? 2 : 1;
    return phases * kernel_rows(place.kind) * kernel_inner(place) * outputs(place);
}
inline int64_t bias_count(const Place &place) {
    return (place.kind == Kind::kDouble ? 2 : 1) * outputs(place);
}

// Channels of what goes in, four pixels of x and four of y, and of what comes out, for each of the
// image's: the latter with as many more as make a multiple of 8.
inline int input_channels(int channels) {
    return 8 * channels;
}
inline int output_channels(int channels) {
    return int(round_up(4 * channels, 8));
}

// Layers of a refinement at most: with all blocks, and what is between the levels.
constexpr int kMostLayers = kMostLevels * (4 * kMostBlocks + 2) + 2;

// All layers, each behind those that it needs; the last one gives R, and its addend is what R is
// subtracted from. Returns how many they are.
int list_layers(const RefinementShape &shape, int channels, Place *places);

// The weights of a layer; arrays have kRoom elements more than said.
template <typename T>
struct Layer {
    Place place;
    const T *weights;
    const T *biases;
};

template <typename T>
struct Refinement {
    RefinementShape shape;
    T step_size;  // gamma
    T center;     // the gray that is 0 for the layers
    int count;
    const Layer<T> *layers;
};

// A refinement within a parameter block.
struct RefinementBlock {
    const char *arrays;  // of its layers; NULL: there is no refinement
    size_t bytes;        // with its head
    bool single;         // the arrays are float32
    double step_size, center;
    RefinementShape shape;
    int count;
    Place places[kMostLayers];

    // False unless there is one of so many bytes, or fewer, with all sizes in their bounds.
    bool read(const char *start, size_t available, int channels, bool is_single);
    bool is_finite() const;
    // Its Refinement, ready for the kernels, of float or double; without levels, if there is none.
    const void *make(bool of_float, Memory &memory) const;
};

}  // namespace nlnet
