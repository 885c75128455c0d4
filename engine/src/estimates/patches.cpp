// Loops over the patches and blocks of a plane, for the instruction set that is compiled for.
#include "../set_kernels.h"
#include "../stages/products.h"
#include "blocks.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// What the columns of a patch's rows add up to, then what the columns add up to.
template <int Size>
static void survey(const PatchRow &row) {
    const int64_t width = row.count + Size - 1, stride = row.stride;
    float *sums = row.lines, *across = sums + width, *down = across + width;
    float *beside = down + width, *below = beside + width;
    for (int64_t x = 0; x < width; x++) {
        const float *column = row.source + x;
        float sum = 0, squares = 0, differing = 0;
        for (int i = 0; i < Size; i++) sum += column[i * stride];
        for (int i = 0; i + 2 < Size; i++) {
            const float difference = column[(i + 2) * stride] - column[i * stride];
            squares += difference * difference;
        }
        for (int i = 0; i + 1 < Size; i++) {
            differing += column[i * stride] != column[(i + 1) * stride] ? 1.0f : 0.0f;
        }
        sums[x] = sum;
        down[x] = squares;
        below[x] = differing;
    }
    for (int64_t x = 0; x + 1 < width; x++) {
        const float *column = row.source + x;
        float differing = 0;
        for (int i = 0; i < Size; i++) {
            differing += column[i * stride] != column[i * stride + 1] ? 1.0f : 0.0f;
        }
        beside[x] = differing;
    }
    for (int64_t x = 0; x + 2 < width; x++) {
        const float *column = row.source + x;
        float squares = 0;
        for (int i = 0; i < Size; i++) {
            const float difference = column[i * stride + 2] - column[i * stride];
            squares += difference * difference;
        }
        across[x] = squares;
    }
    for (int64_t x = 0; x < row.count; x++) {
        float sum = 0, squares = 0, right = 0, lower = 0;
        for (int j = 0; j < Size; j++) {
            sum += sums[x + j];
            squares += down[x + j];
            lower += below[x + j];
        }
        for (int j = 0; j + 1 < Size; j++) right += beside[x + j];
        for (int j = 0; j + 2 < Size; j++) squares += across[x + j];
        row.means[x] = sum * (1.0f / (Size * Size));
        row.textures[x] = squares * 0.25f;
        row.beside[x] = right;
        row.below[x] = lower;
    }
}

template <int Size>
static void add_patches(const PatchBatch &batch, float *patches, float *sums) {
    constexpr int pixels = Size * Size, side = covariance_side(Size);
    for (int n = 0; n < batch.count; n++) {
        float *patch = patches + n * side;
        for (int i = 0; i < Size; i++) {
            __builtin_memcpy(patch + i * Size, batch.places[n] + i * batch.stride,
                             Size * sizeof(float));
        }
        for (int i = 0; i < pixels; i++) patch[i] -= batch.means[n];
        for (int i = pixels; i < side; i++) patch[i] = 0;
    }
    for (int row = 0; row < side; row += 8) {
        multiply<true>(Left<float>{patches + row, 1, side}, 8, patches + row, side, batch.count,
                       side - row, sums + row * side + row, side);
    }
}

static void survey_any(const PatchRow &row) {
    switch (row.patch) {
        case 7: return survey<7>(row);
        case 5: return survey<5>(row);
        default: return survey<3>(row);
    }
}

static void add_any_patches(const PatchBatch &batch, float *scratch, float *sums) {
    switch (batch.patch) {
        case 7: return add_patches<7>(batch, scratch, sums);
        case 5: return add_patches<5>(batch, scratch, sums);
        default: return add_patches<3>(batch, scratch, sums);
    }
}

}  // namespace

extern const NoiseKernels noise = {survey_any, add_any_patches, transform_blocks};

}  // namespace NLNET_SET
}  // namespace nlnet
