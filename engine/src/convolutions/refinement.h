// The refinement: a small convolutional network as one more step of the recursion,
// x <- (1 - gamma) x + gamma y - R(x, y).
//
// A pixel of its input is four pixels of the estimate x and four of the noisy image y.
#pragma once

#include "layers.h"

namespace nlnet {

// What a refinement begins with in a parameter block; unused levels are 0.
struct RefinementHead {
    uint32_t levels, reserved;
    double step_size, center;
    uint32_t widths[kMostLevels], down[kMostLevels], up[kMostLevels];
};
static_assert(sizeof(RefinementHead) == 72, "the layout of files");

// Take a head that begins there, and the layers that it says; false if it is not one.
bool read_refinement_head(const char *start, size_t available, int channels, RefinementHead *head,
                          LayerSpecs *specs);

template <typename T>
struct Refinement {
    LayerSpecs specs;  // none: there is no refinement
    const Layer<T> *layers;
    T step_size;  // gamma
    T center;     // the gray that is 0 for the layers
};

// A refinement within a parameter block.
struct RefinementBlock {
    const char *arrays;  // of its layers; NULL: there is no refinement
    size_t bytes;        // with its head
    bool single;         // the arrays are float32
    double step_size, center;
    LayerSpecs specs;

    // False unless the block has a refinement there, with all sizes in their bounds.
    bool read(const char *start, size_t available, int channels, bool is_single);
    bool is_finite() const;
    // Its Refinement, ready for the kernels, of float or double; without layers if there is none.
    const void *make(bool of_float, Memory &memory) const;
};

}  // namespace nlnet
