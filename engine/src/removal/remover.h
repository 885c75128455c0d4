// One scale of removal: rows of the image to what a network sees, and its rows back to a result.
#pragma once

#include "image.h"
#include "plan.h"

namespace nlnet {
namespace {

// Rows that one thread works with: one reads while another one writes.
struct RowsScratch {
    float *lines[4];   // of maps
    float *before[3];  // of the image
    float *line;       // of what was changed
    float *pyramid;

    void make(int64_t width, Memory &memory) {
        for (float *&row : lines) row = memory.take<float>(width);
        for (float *&row : before) row = memory.take<float>(width);
        line = memory.take<float>(width);
        pyramid = memory.take<float>(pyramid_scratch(width));
    }
};

struct Remover {
    const RemovalKernels *kernels;
    int channels, scale;  // how many times the image is halved
    int64_t height, width;
    Pyramid pyramid;
    Change coarser;                 // what was changed at the next scale
    const Stabiliser *stabilisers;  // one for each channel; NULL: none
    const Evening *evening;         // NULL: the noise is even
    float factor, black;            // a network sees value * factor - black
    bool clipped;                   // to the box
    float low, high;
    Shares shares;  // that are taken of the result

    // Row y of the image, with what was changed at smaller scales.
    void corrected(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        for (int channel = 0; channel < channels; channel++) {
            pyramid.row(channel, scale, y, rows[channel], scratch.pyramid);
            if (coarser.planes != nullptr) {
                coarser.add(*kernels, channel, y, width, scratch.line, rows[channel]);
            }
        }
    }

    // Row y for the network; false if a value is not finite.
    bool prepare(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        stabilised(y, rows, scratch);
        if (evening != nullptr) {
            evening->even(*kernels, channels, rows, y, width, scratch.lines);
        }
        bool finite = true;
        for (int channel = 0; channel < channels; channel++) {
            finite = kernels->scale(rows[channel], width, factor, black) && finite;
        }
        return finite;
    }

    // Row y of the network's result in units of the image.
    void restore(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        for (int channel = 0; channel < channels; channel++) {
            kernels->unscale(rows[channel], width, factor, black);
        }
        if (evening != nullptr) {
            if (evening->has_shares()) stabilised(y, scratch.before, scratch);
            evening->restore(*kernels, channels, rows, scratch.before, y, width, scratch.lines);
        }
        for (int channel = 0; channel < channels; channel++) {
            float *row = rows[channel];
            if (stabilisers != nullptr) {
                stabilisers[channel].turn(*kernels, true, width, row, row);
            }
            if (clipped) kernels->clip(row, width, low, high);
        }
    }

    // Take shares of a row of the result, and the rest of the image.
    void blend(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        if (shares.luma == 1 && shares.chroma == 1) return;
        image(y, scratch.before, scratch);
        const float luma = float(shares.luma), chroma = float(shares.chroma);
        kernels->blend(channels, scratch.before, rows, luma, channels == 1 ? luma : chroma, width);
    }

    // What a row of the result has changed in the image.
    void changed(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        image(y, scratch.before, scratch);
        for (int channel = 0; channel < channels; channel++) {
            kernels->subtract(scratch.before[channel], width, rows[channel]);
        }
    }

  private:
    void image(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        for (int channel = 0; channel < channels; channel++) {
            pyramid.row(channel, scale, y, rows[channel], scratch.pyramid);
        }
    }

    void stabilised(int64_t y, float *const *rows, const RowsScratch &scratch) const {
        corrected(y, rows, scratch);
        for (int channel = 0; stabilisers != nullptr && channel < channels; channel++) {
            stabilisers[channel].turn(*kernels, false, width, rows[channel], rows[channel]);
        }
    }
};

}  // namespace
}  // namespace nlnet
