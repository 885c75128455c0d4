// How strong white noise is, in planes that are parts of one image.
#pragma once

#include "../memory.h"
#include "../network.h"

namespace nlnet {

struct WhiteTask {
    const float *planes;           // (count, height, width), contiguous, all finite
    int64_t count, height, width;  // 3x3 pixels at least
    double low, high;              // where values were clipped; infinite: nowhere
};

struct WhiteEstimate;

// Take memory for an estimate, which depends on the size of the planes only: their values and the
// limits may follow.
WhiteEstimate *make_white(const Kernels &kernels, const WhiteTask *task, Memory &memory);

// The standard deviation, in the units of the planes.
double white_sigma(WhiteEstimate *estimate);

}  // namespace nlnet
