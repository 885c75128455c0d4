// The patches of planes: where they are, what their means are and how strong their texture is.
#pragma once

#include "decisions.h"
#include "white.h"

namespace nlnet {
namespace {

constexpr int kLargestPatch = 7;
constexpr int kWanted = 600;  // patches for each of a patch's pixels; else patches are smaller
constexpr int64_t kMostPatches = 160000;  // large images are sampled on a grid
constexpr float kLeftOut = __builtin_inff();

// Patches are on a grid in every plane.
struct PatchGrid {
    const WhiteTask *task;
    int patch;  // side
    int64_t step, count;

    PatchGrid(const WhiteTask *wanted, int side, int64_t apart)
        : task(wanted),
          patch(side),
          step(apart),
          count(wanted->count * along(wanted->height) * along(wanted->width)) {}

    int pixels() const { return patch * patch; }
    int64_t along(int64_t length) const { return length < patch ? 0 : (length - patch) / step + 1; }

    // Call visit(first pixel, number of the first patch, patches) for every row of patches.
    template <typename Visit>
    void each_row(const Visit &visit) const {
        const int64_t rows = along(task->height), columns = along(task->width);
        int64_t number = 0;
        for (int64_t plane = 0; plane < task->count; plane++) {
            const float *row = task->planes + plane * task->height * task->width;
            for (int64_t i = 0; i < rows; i++, number += columns) {
                visit(row + i * step * task->width, number, columns);
            }
        }
    }
};

// Patches large enough to tell noise from texture, and small enough to have many.
inline PatchGrid choose_grid(const WhiteTask *task) {
    PatchGrid grid(task, kLargestPatch, 1);
    while (grid.patch > 3 && grid.count < kWanted * grid.pixels()) {
        grid = PatchGrid(task, grid.patch - 2, 1);
    }
    while (grid.count > kMostPatches) grid = PatchGrid(task, grid.patch, grid.step + 1);
    return grid;
}

// Of each patch; the texture of those that are left out is kLeftOut.
struct Survey {
    float *textures, *means;
    uint8_t *constant;
    PatchRow row;

    void take_memory(const PatchGrid &grid, Memory &memory) {
        const int64_t width = grid.task->width;
        textures = memory.take<float>(grid.count);
        means = memory.take<float>(grid.count);
        constant = memory.take<uint8_t>(grid.count);
        row = {};
        row.patch = grid.patch;
        row.lines = memory.take<float>(kPatchLines, width);
        row.means = memory.take<float>(width);
        row.textures = memory.take<float>(width);
        row.beside = memory.take<float>(width);
        row.below = memory.take<float>(width);
    }

    void make(const NoiseKernels &kernels, const PatchGrid &grid) {
        int64_t others = 0;
        double differing = 0;
        row.stride = grid.task->width;
        row.count = grid.task->width - grid.patch + 1;
        grid.each_row([&](const float *source, int64_t first, int64_t columns) {
            row.source = source;
            kernels.survey(row);
            for (int64_t i = 0; i < columns; i++) {
                const int64_t x = i * grid.step;
                textures[first + i] = row.textures[x];
                means[first + i] = row.means[x];
                constant[first + i] = row.beside[x] + row.below[x] == 0;
                others += !constant[first + i];
                differing += double(row.beside[x]);
            }
        });
        // Constant patches carry no information on noise. In a drawing they stay: there, they say
        // that there is none.
        const double neighbors = double(others * grid.patch * (grid.patch - 1));
        if (others == 0 || differing < (1 - kDrawn) * neighbors) return;
        for (int64_t i = 0; i < grid.count; i++) {
            if (constant[i]) textures[i] = kLeftOut;
        }
    }
};

}  // namespace
}  // namespace nlnet
