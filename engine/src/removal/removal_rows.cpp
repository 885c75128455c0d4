// Loops over rows of pixels for removal: a table of functions, compiled once for each set.
//
// Plain loops, which compilers turn into vectors; nothing is fused, so that results are the same to
// the bit for all sets.
#include "../set_kernels.h"
#include "anscombe_rows.h"
#include "even_rows.h"
#include "scaled_rows.h"
#include "typed_rows.h"

namespace nlnet {
namespace NLNET_SET {

extern const RemovalKernels removal = {
    load_row,  store_row,   stabilise<float>, stabilise<double>, follow<float>, follow<double>,
    scale_row, unscale_row, clip_row,         even_row,          restore_row,   blend_row,
    halve_row, enlarge_row, subtract_row,     widen_row};

}  // namespace NLNET_SET
}  // namespace nlnet
