// Convolutions, for the instruction set that is compiled for. Unlike the stages they may fuse a
// multiplication with an addition: nothing is searched for in their results.
#include "convolve.h"

namespace nlnet {
namespace NLNET_SET {

void convolve_float(const ConvolvedRow<float> &row) {
    convolve(row);
}

void convolve_double(const ConvolvedRow<double> &row) {
    convolve(row);
}

}  // namespace NLNET_SET
}  // namespace nlnet
