// The covariance of patches that come and go.
#pragma once

#include "../memory.h"
#include "../network.h"
#include "eigenvalues.h"

namespace nlnet {
namespace {

constexpr int kBatches = 32;  // summed in float before they are added in double
constexpr int kTail = 12;     // one eigenvalue in so many is averaged

class Covariance {
  public:
    void take_memory(int patch, Memory &memory) {
        patch_ = patch;
        const int side = covariance_side(patch);
        for (Products &products : products_) {
            products.batch.patch = patch;
            products.patches = memory.take<float>(kPatchBatch, side);
            products.sums = memory.take<float>(side, side);
        }
        sums_ = memory.take<double>(pixels(), pixels());
        matrix_ = memory.take<double>(pixels(), pixels());
    }

    // Begin without any patch.
    void clear() {
        for (Products &products : products_) {
            products.batch.count = products.batches = 0;
            clear(products);
        }
        __builtin_memset(sums_, 0, size_t(pixels() * pixels()) * sizeof(double));
    }

    // Add a patch, or take it away again: its first pixel, rows `stride` apart, and its mean.
    void change(bool added, const NoiseKernels &kernels, const float *place, int64_t stride,
                float mean) {
        PatchBatch &batch = products_[added].batch;
        batch.stride = stride;
        batch.places[batch.count] = place;
        batch.means[batch.count] = mean;
        if (++batch.count == kPatchBatch) add_batch(added, kernels);
    }

    // To be called after the last patch.
    void end(const NoiseKernels &kernels) {
        for (int added = 0; added < 2; added++) {
            if (products_[added].batch.count > 0) add_batch(added, kernels);
        }
    }

    // The variance in the directions in which so many patches vary least.
    double smallest_variance(int64_t count) {
        for (int added = 0; added < 2; added++) flush(added);
        const int size = pixels(), averaged = (size - 1 + kTail - 1) / kTail;
        double trace = 0;
        for (int i = 0; i < size; i++) {
            for (int j = i; j < size; j++) {
                matrix_[i * size + j] = matrix_[j * size + i] = sums_[i * size + j] / double(count);
            }
            trace += matrix_[i * size + i];
        }
        const Tridiagonal reduced = tridiagonal(matrix_, size);
        double sum = 0;
        // The first belongs to the mean, which was taken out.
        for (int i = 1; i <= averaged; i++) sum += reduced.eigenvalue(i, trace);
        return sum > 0 ? sum / averaged : 0;  // by rounding, the trace may be below 0
    }

  private:
    struct Products {
        PatchBatch batch;
        int batches;  // in `sums`
        float *patches, *sums;
    };

    int pixels() const { return patch_ * patch_; }

    void clear(const Products &products) const {
        const int side = covariance_side(patch_);
        __builtin_memset(products.sums, 0, size_t(side * side) * sizeof(float));
    }

    void add_batch(int added, const NoiseKernels &kernels) {
        Products &products = products_[added];
        kernels.add_patches(products.batch, products.patches, products.sums);
        products.batch.count = 0;
        if (++products.batches == kBatches) flush(added);
    }

    void flush(int added) {
        Products &products = products_[added];
        const int side = covariance_side(patch_);
        for (int i = 0; i < pixels(); i++) {
            for (int j = i; j < pixels(); j++) {
                const double sum = double(products.sums[i * side + j]);
                sums_[i * pixels() + j] += added ? sum : -sum;
            }
        }
        products.batches = 0;
        clear(products);
    }

    int patch_;
    Products products_[2];  // of patches that are taken away, and of those that are added
    double *sums_;          // (pixels, pixels), from the diagonal on
    double *matrix_;        // (pixels, pixels)
};

}  // namespace
}  // namespace nlnet
