// Pages that show nearly the same: a table of functions, the same to the bit for all sets.
#include "align.h"
#include "keep.h"
#include "merge.h"

namespace nlnet {
namespace NLNET_SET {

extern const SeriesKernels series = {align_scratch, align,        merge_scratch,
                                     merge,         keep_scratch, keep};

}  // namespace NLNET_SET
}  // namespace nlnet
