// The eye: a small convolutional network that looks at a tile of a picture and gives maps of it, as
// large as its lowest level.
#pragma once

#include "../network.h"

struct nlnet_eye {
    const nlnet::Kernels *kernels;
    nlnet::LayerSpecs specs;
    int outputs;  // maps
    const nlnet::Layer<float> *layers;
};
