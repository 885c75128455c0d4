// Making noise even whose strength varies over an image, or is another in luma than in chroma.
//
// The networks remove noise of one strength, the reference. Where the noise of a place is sigma,
// the image is multiplied by reference / sigma before a network sees it, and divided again after
// it.
#pragma once

#include "coarse_map.h"

namespace nlnet {

// Strengths of noise, one map or two: of gray, or of luma and chroma.
struct Strengths {
    const float *maps[2];
    float factors[2];  // that they are multiplied with
    int planes;
    int64_t rows, columns;

    int64_t cells() const { return rows * columns; }
    float at(int plane, int64_t cell) const { return maps[plane][cell] * factors[plane]; }

    // Standard deviation of the noise that the networks see; 0 if there is none.
    double reference() const {
        double typical[2] = {0, 0};
        for (int plane = 0; plane < planes; plane++) {
            double sum = 0;
            for (int64_t cell = 0; cell < cells(); cell++) {
                const float strength = at(plane, cell);
                sum += double(strength * strength);
            }
            typical[plane] = __builtin_sqrt(sum / double(cells()));
        }
        return typical[0] > 0.5 * typical[1] ? typical[0] : 0.5 * typical[1];
    }
};

class Evening {
  public:
    // Take memory for the maps. `center` is the value of gray that stays as it is: where factors
    // vary, values near it are bent least.
    void make(const Strengths &strengths, double reference, double center, const Region &region,
              Memory &memory) {
        planes_ = strengths.planes;
        cells_ = strengths.cells();
        center_ = float(center);
        map_.make(strengths.rows, strengths.columns, region, memory);
        gains_ = memory.take<float>(planes_, cells_);
        shares_ = memory.take<float>(planes_, cells_);
        if (shares_ == nullptr) return;
        has_shares_ = false;
        const float least[2] = {float(reference) * kWeakest, float(reference) * kLeastChroma};
        for (int plane = 0; plane < planes_; plane++) {
            for (int64_t cell = 0; cell < cells_; cell++) {
                const float strength = strengths.at(plane, cell);
                const float counted = strength < least[plane] ? least[plane] : strength;
                const int64_t at = plane * cells_ + cell;
                gains_[at] = float(reference) / counted;
                shares_[at] = strength / counted;
                has_shares_ = has_shares_ || shares_[at] != 1;
            }
        }
    }

    // Whether the rows before they were even are needed to restore them.
    bool has_shares() const { return has_shares_; }

    // `lines` are two rows of scratch memory.
    void even(const RemovalKernels &kernels, int channels, float *const *rows, int64_t y,
              int64_t width, float *const *lines) const {
        widen(kernels, gains_, y, lines);
        kernels.even(channels, rows, lines, center_, width);
    }

    // `lines` are four rows of scratch memory.
    void restore(const RemovalKernels &kernels, int channels, float *const *rows,
                 const float *const *before, int64_t y, int64_t width, float *const *lines) const {
        widen(kernels, gains_, y, lines);
        if (has_shares_) widen(kernels, shares_, y, lines + 2);
        kernels.restore(channels, rows, lines, has_shares_ ? lines + 2 : nullptr, before, center_,
                        width);
    }

  private:
    void widen(const RemovalKernels &kernels, const float *maps, int64_t y,
               float *const *lines) const {
        for (int plane = 0; plane < planes_; plane++) {
            map_.row(kernels, maps + plane * cells_, y, lines[plane]);
        }
    }

    // Share of the reference that noise counts as at least; where there is less of it, the result
    // is blended with the image instead, for a network would take faint detail there for noise.
    static constexpr float kWeakest = 0.35f, kLeastChroma = 0.25f;

    int planes_;
    int64_t cells_;
    float center_;
    bool has_shares_;
    float *gains_, *shares_;
    CoarseMap map_;
};

}  // namespace nlnet
