#include "layers.h"

namespace nlnet {
namespace {

// Layers in the order in which they are listed.
struct List {
    LayerSpecs all;

    int last() const { return all.count - 1; }
    int add(LayerKind kind, int source, int addend, int level, int in_channels, int out_channels) {
        all.specs[all.count] = {kind, false, source, addend, level, in_channels, out_channels};
        return all.count++;
    }
    void add_blocks(int count, int level, int width) {
        for (int block = 0; block < count; block++) {
            const int before = last();
            const int first = add(LayerKind::kSame, before, kNone, level, width, width);
            all.specs[first].rectified = true;
            add(LayerKind::kSame, first, before, level, width, width);
        }
    }
    // The first layer and the way down; `ends` are the last layers of the levels.
    void add_way_down(const LevelSizes &sizes, int in_channels, int *ends) {
        all.levels = sizes.levels;
        add(LayerKind::kSame, kInput, kNone, 0, in_channels, sizes.widths[0]);
        for (int level = 0; level < sizes.levels; level++) {
            const int width = sizes.widths[level];
            if (level > 0) {
                add(LayerKind::kHalve, last(), kNone, level, sizes.widths[level - 1], width);
            }
            add_blocks(sizes.down[level], level, width);
            ends[level] = last();
        }
    }
    void add_way_up(const LevelSizes &sizes, const int *ends) {
        for (int level = sizes.levels - 2; level >= 0; level--) {
            const int width = sizes.widths[level];
            add(LayerKind::kDouble, last(), ends[level], level, sizes.widths[level + 1], width);
            add_blocks(sizes.up[level], level, width);
        }
    }
    // The last layer; nothing else uses the output of the one before.
    void add_tail(int addend, int out_channels) {
        LayerSpec &before = all.specs[last()];
        before.rectified = true;
        add(LayerKind::kSame, last(), addend, before.level, before.out_channels, out_channels);
    }
};

}  // namespace

size_t LayerSpecs::bytes(bool single) const {
    size_t end = 0;
    for (int number = 0; number < count; number++) {
        end = after(end, specs[number].weight_count(), single);
        end = after(end, specs[number].bias_count(), single);
    }
    return end;
}

LayerSpecs refinement_layers(const LevelSizes &sizes, int channels) {
    List list = {};
    if (sizes.levels == 0) return list.all;
    int ends[kMostLevels];
    list.add_way_down(sizes, refinement_inputs(channels), ends);
    list.add_way_up(sizes, ends);
    list.add_tail(kInput, refinement_outputs(channels));
    return list.all;
}

LayerSpecs eye_layers(const LevelSizes &sizes, int outputs) {
    List list = {};
    int ends[kMostLevels];
    list.add_way_down(sizes, 4 * kFeatures, ends);
    list.add_tail(kNone, outputs);
    return list.all;
}

bool width_fits(uint32_t width) {
    return width >= 8 && width <= kMostWidth && width % 8 == 0;
}

bool read_sizes(uint32_t levels, const uint32_t *widths, const uint32_t *down, const uint32_t *up,
                LevelSizes *sizes) {
    if (levels < 1 || levels > kMostLevels) return false;
    *sizes = {};
    sizes->levels = int(levels);
    for (uint32_t level = 0; level < kMostLevels; level++) {
        const bool used = level < levels, lowest = level + 1 >= levels;
        const uint32_t blocks_up = up == nullptr ? 0 : up[level];
        if (used ? !width_fits(widths[level]) : widths[level] != 0) return false;
        if (down[level] > (used ? kMostBlocks : 0)) return false;
        if (blocks_up > (lowest ? 0 : kMostBlocks)) return false;
        sizes->widths[level] = int(widths[level]);
        sizes->down[level] = int(down[level]);
        sizes->up[level] = int(blocks_up);
    }
    return true;
}

}  // namespace nlnet
