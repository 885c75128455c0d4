// From a parameter block to an eye.
#include "eye.h"

namespace nlnet {
namespace {

// What the block of an eye begins with, little endian; docs/engine.md describes it.
struct EyeHead {
    uint64_t magic;
    uint32_t version, levels, outputs, reserved;
    uint32_t widths[kMostLevels], down[kMostLevels];
    uint64_t bytes;
};
static_assert(sizeof(EyeHead) == 64, "the layout of files");

constexpr uint64_t kMagic = 0x65796574656e6c6e;  // "nlneteye"
constexpr uint32_t kVersion = 1;

nlnet_status read_head(const void *block, size_t bytes, LayerSpecs *specs, int *outputs) {
    EyeHead head;
    LevelSizes sizes;
    if (block == nullptr || bytes < sizeof(head)) return NLNET_BAD_BLOCK;
    __builtin_memcpy(&head, block, sizeof(head));
    if (head.magic != kMagic) return NLNET_BAD_BLOCK;
    if (head.version != kVersion) return NLNET_BAD_VERSION;
    if (head.reserved != 0 || head.bytes != bytes || !width_fits(head.outputs) ||
        !read_sizes(head.levels, head.widths, head.down, nullptr, &sizes)) {
        return NLNET_BAD_BLOCK;
    }
    *outputs = int(head.outputs);
    *specs = eye_layers(sizes, *outputs);
    return sizeof(head) + specs->bytes(true) == bytes ? NLNET_OK : NLNET_BAD_BLOCK;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_eye_make(const void *block, size_t bytes, nlnet_set set, void *memory,
                            size_t *size, nlnet_eye **eye) {
    nlnet_eye made = {};
    const nlnet_status status = read_head(block, bytes, &made.specs, &made.outputs);
    if (status != NLNET_OK) return status;
    made.kernels = kernels_of(set == NLNET_BEST ? nlnet_best_set() : set);
    if (made.kernels == nullptr) return NLNET_NO_SUCH_SET;
    const char *arrays = static_cast<const char *>(block) + sizeof(EyeHead);
    if (memory != nullptr && !all_finite(arrays, true, int64_t(bytes - sizeof(EyeHead)) / 4)) {
        return NLNET_BAD_BLOCK;
    }
    return make_in(memory, size, eye, [&](Memory &pieces) {
        nlnet_eye *place = pieces.take<nlnet_eye>(1);
        made.layers = read_layers<float>(made.specs, arrays, true, pieces);
        if (place != nullptr) *place = made;
        return place;
    });
}
