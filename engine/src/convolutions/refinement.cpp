#include "refinement.h"

namespace nlnet {
namespace {

// Not a member: the symbols of members that are templates are weak.
template <typename T>
const Refinement<T> *make_refinement(const RefinementBlock &block, Memory &memory) {
    Refinement<T> *made = memory.take<Refinement<T>>(1);
    const Layer<T> *layers = read_layers<T>(block.specs, block.arrays, block.single, memory);
    if (made != nullptr) *made = {block.specs, layers, T(block.step_size), T(block.center)};
    return made;
}

}  // namespace

bool read_refinement_head(const char *start, size_t available, int channels, RefinementHead *head,
                          LayerSpecs *specs) {
    LevelSizes sizes;
    if (available < sizeof(*head)) return false;
    __builtin_memcpy(head, start, sizeof(*head));
    if (head->reserved != 0 ||
        !read_sizes(head->levels, head->widths, head->down, head->up, &sizes)) {
        return false;
    }
    *specs = refinement_layers(sizes, channels);
    return true;
}

bool RefinementBlock::read(const char *start, size_t available, int channels, bool is_single) {
    RefinementHead head;
    if (!read_refinement_head(start, available, channels, &head, &specs)) return false;
    arrays = start + sizeof(head);
    single = is_single;
    step_size = head.step_size;
    center = head.center;
    bytes = sizeof(head) + specs.bytes(single);
    return bytes <= available;
}

bool RefinementBlock::is_finite() const {
    if (arrays == nullptr) return true;
    const int64_t values = int64_t(bytes - sizeof(RefinementHead)) / (single ? 4 : 8);
    return nlnet::is_finite(step_size) && nlnet::is_finite(center) &&
           all_finite(arrays, single, values);
}

const void *RefinementBlock::make(bool of_float, Memory &memory) const {
    if (of_float) return make_refinement<float>(*this, memory);
    return make_refinement<double>(*this, memory);
}

}  // namespace nlnet
