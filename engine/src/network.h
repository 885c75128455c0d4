// A network made ready for its kernels.
#pragma once

#include "../include/nlnet_engine.h"
#include "kernels.h"
#include "convolutions/refinement.h"

namespace nlnet {

// psi's table: equidistant nodes on the Gaussians' range, and what each Gaussian is worth there.
struct Grid {
    int nodes;             // intervals + 1
    double step;           // from one node to the next
    const double *values;  // (M, nodes): Gaussian j at node n
    const double *slopes;  // (M, nodes): its slope there, per interval
};

// The kernels of a set for an element type.
template <typename T>
NLNET_ALWAYS_INLINE const MatchingKernels<T> &matching_kernels(const Kernels &kernels) {
    if constexpr (sizeof(T) == sizeof(float))
        return *kernels.match_float;
    else
        return *kernels.match_double;
}
template <typename T>
NLNET_ALWAYS_INLINE const StageKernels<T> &stage_kernels(const Kernels &kernels) {
    if constexpr (sizeof(T) == sizeof(float))
        return *kernels.stage_float;
    else
        return *kernels.stage_double;
}
template <typename T>
NLNET_ALWAYS_INLINE const PixelKernels<T> &pixel_kernels(const Kernels &kernels) {
    if constexpr (sizeof(T) == sizeof(float))
        return *kernels.pixel_float;
    else
        return *kernels.pixel_double;
}

// The kernels of a set, or NULL where this CPU or this build does not have it.
const Kernels *kernels_of(nlnet_set set);

}  // namespace nlnet

struct nlnet_network {
    nlnet::Shape shape;
    nlnet_element element;
    bool project_every_stage;
    double sigma;  // of the noise that it was trained for; 0 if unknown
    const nlnet::Kernels *kernels;
    nlnet::Offsets offsets;
    nlnet::Grid grid;
    // As the element says, of float or double:
    const void *stages;      // (stages) of Stage
    const void *refinement;  // one Refinement
};
