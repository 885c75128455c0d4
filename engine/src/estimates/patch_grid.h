// The patches of planes: where they are, what their means are and how strong their texture is.
#pragma once

#include "../memory.h"
#include "../network.h"

namespace nlnet {
namespace {

constexpr int kLargestPatch = 7;
constexpr int kWanted = 600;  // patches for each of a patch's pixels; else patches are smaller
constexpr int64_t kMostPatches = 160000;  // large images are sampled on a grid
constexpr double kDrawn = 0.5;            // share of equal neighbors, outside of constant patches
constexpr float kLeftOut = __builtin_inff();

// Patches are on a grid in every plane.
struct PatchGrid {
    const nlnet_white_task *task;
    int patch;  // side
    int64_t step, count;

    PatchGrid(const nlnet_white_task *wanted, int side, int64_t apart)
        : task(wanted), patch(side), step(apart), count(0) {
        for (int64_t i = 0; i < task->count; i++) {
            count += along(task->planes[i].height) * along(task->planes[i].width);
        }
    }

    int pixels() const { return patch * patch; }
    int64_t along(int64_t length) const { return length < patch ? 0 : (length - patch) / step + 1; }

    // Call visit(plane, y, number of the first patch, patches) for every row of patches.
    template <typename Visit>
    void each_row(const Visit &visit) const {
        int64_t number = 0;
        for (int64_t i = 0; i < task->count; i++) {
            const nlnet_plane &plane = task->planes[i];
            const int64_t rows = grid_rows(plane), columns = along(plane.width);
            for (int64_t row = 0; row < rows; row++, number += columns) {
                visit(plane, row * step, number, columns);
            }
        }
    }
    bool is_last_row(const nlnet_plane &plane, int64_t y) const {
        return y / step + 1 == grid_rows(plane);
    }

  private:
    int64_t grid_rows(const nlnet_plane &plane) const {
        return plane.width < patch ? 0 : along(plane.height);
    }
};

// Patches large enough to tell noise from texture, and small enough to have many.
inline PatchGrid choose_grid(const nlnet_white_task *task) {
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
        int64_t width = 0;
        for (int64_t i = 0; i < grid.task->count; i++) {
            width = larger_of(width, grid.task->planes[i].width);
        }
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
        grid.each_row([&](const nlnet_plane &plane, int64_t y, int64_t first, int64_t columns) {
            row.source = plane.data + y * plane.width;
            row.stride = plane.width;
            row.count = plane.width - grid.patch + 1;
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
