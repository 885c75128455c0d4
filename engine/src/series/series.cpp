// Pages that show nearly the same: a table of functions, the same to the bit for all sets.
#include "align.h"
#include "keep.h"
#include "merge.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Bytes that a task works in; SIZE_MAX if there cannot be as many.
template <typename Task>
size_t scratch_of(const Task &task) {
    Memory counted(nullptr);
    lay_out(task, counted);
    return counted.impossible() ? SIZE_MAX : counted.size();
}

}  // namespace

extern const SeriesKernels series = {
    scratch_of<AlignedPages>, align, scratch_of<MergedPages>, merge, scratch_of<KeptPages>, keep};

}  // namespace NLNET_SET
}  // namespace nlnet
