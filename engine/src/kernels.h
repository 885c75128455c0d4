// What each instruction set provides: the loops over pixels, as a table of functions.
//
// matching.cpp, pixels.cpp and stages.cpp are compiled once for each set (sets/*.h); everything
// that calls them is compiled once. A kernel works on one tile, or on one row, in the thread that
// calls it.
#pragma once

#include "../include/nlnet_engine.h"
#include "removal/row_kernels.h"
#include "shape.h"

namespace nlnet {

// Rows of a plane that is held whole or as a ring buffer: row y is where row y - capacity was.
template <typename T>
struct Rows {
    T *data;
    int64_t stride;  // elements from one row to the next
    int64_t capacity;

    NLNET_ALWAYS_INLINE T *row(int64_t y) const { return data + y % capacity * stride; }
};

// The offsets of a search window by rank: by length, equally long ones row by row.
struct Offsets {
    const int8_t (*offsets)[2];  // (window * window): dy, dx
    const int32_t (*pairs)[2];   // the ranks of each offset below the centre, or right of it in its
                                 // row, nearest first, and of its opposite: (window * window) / 2
};

// A tile whose groups are to be found: [top, bottom) x [left, right), at most kMatchColumns wide.
template <typename T>
struct MatchingTile {
    Rows<const T> image;  // the luminance
    int64_t height, width;
    int64_t top, bottom, left, right;
    int8_t *groups;  // of row `top`, column 0: (rows, width, K, 2)
};

// Learned values of a stage, ready for the kernels. Arrays have kRoom elements more than said.
template <typename T>
struct Stage {
    const T *filters;     // (F, P)
    const T *transposed;  // (P, F)
    const T *weights;     // (K)
    const T *cubics;      // (C, F, intervals, 4): psi between two nodes is a cubic in t, 0 to 1
    T origin, scale;      // a feature s is scale * s + origin intervals from the table's start
    T step_size;
};

// A tile of a stage: `rows` x `columns` pixels from (top, left) on, in one plane.
template <typename T>
struct StageTile {
    Rows<const T> estimate;  // x
    int64_t height, width;
    int64_t top, left;
    int rows, columns;
    const int8_t *groups;  // of row `top`, column 0: (rows, width, K, 2)
    T *part;               // the window around the tile, window_size(): what the tile adds to it
};

// Where the backward pass adds gradients of <e, sum of L_r^T psi(L_r x)>, the term that a stage
// subtracts. The gradient of the stage's input goes to the tile's `part`.
template <typename T>
struct StageSums {
    T *filters;  // (F, P)
    T *weights;  // (K)
    T *cubics;   // (F, intervals, 4), of the tile's channel
};

// What rows of tiles have added to their windows, in one plane; rows of tiles are a ring buffer.
template <typename T>
struct Parts {
    const T *windows;  // (capacity, columns of tiles, window)
    int capacity;
    int tile_rows;
    int64_t first_tile, last_tile;  // the rows of tiles that it holds now
};

template <typename T>
struct Box {
    bool limited;
    T low, high;
};

// One row of a convolution. Rows hold all channels of a pixel next to each other.
template <typename T>
struct ConvolvedRow {
    int lines, inner;     // rows of the kernel, and input elements of each
    const T *sources[3];  // where each line's input for pixel 0 begins; NULL outside the image
    int64_t step;         // elements from the input of one pixel to that of the next
    const T *weights;     // (lines, inner, outputs)
    const T *biases;      // (outputs)
    const T *addend;      // (pixels, outputs), or NULL
    bool rectified;
    int64_t pixels;
    int outputs;  // a multiple of 8
    T *target;    // (pixels, outputs)
};

// One row of a plane for the input of a convolutional network, torch's pixel_unshuffle by 2: two
// neighbouring columns, a pair, become two channels of one pixel.
template <typename T>
struct UnshuffledRow {
    const T *source;
    int64_t source_step;  // elements from one pair to the next
    T center;             // subtracted
    int64_t pairs;
    T *target;
    int64_t target_step;
};

// One row of a refined plane, from pairs:
// target = (1 - step_size) * estimate + step_size * noisy - change + center
template <typename T>
struct RefinedRow {
    const T *estimate, *noisy;
    int64_t input_step;
    const T *change;
    int64_t change_step;
    T step_size, center;
    int64_t pairs;
    T *target;  // (2 * pairs)
};

// One row of a tile for the input of an eye: the features of its pixels, as pairs of columns that
// are 4 * kFeatures elements apart.
struct FeatureRow {
    int planes;               // 1 gray, 3 opponent colors
    const float *rows[3][5];  // of each plane: two rows above, the row itself, two rows below
    int64_t width;            // even
    float *line;              // scratch: (width + 4)
    float *target;
};

constexpr int kPatchLines = 5;

// A row of patches of one plane, at every column.
struct PatchRow {
    const float *source;  // the first pixel of the first patch
    int64_t stride;       // elements from one row of the plane to the next
    int patch;            // side: 3, 5 or 7
    int64_t count;
    float *lines;  // scratch: (kPatchLines, count + patch - 1)
    // Results of each patch: mean, sum of squared central differences / 4, and how many pixels
    // differ from their right, and from their lower, neighbor.
    float *means, *textures, *beside, *below;
};

constexpr int kPatchBatch = 64;

// Patches of one plane, a batch at most, to be added to a covariance.
struct PatchBatch {
    const float *places[kPatchBatch];  // first pixels
    float means[kPatchBatch];          // subtracted
    int count, patch;
    int64_t stride;
};

// A block of 8x8 pixels: its mean and extremes, how many pixels equal their right neighbors, and
// what the squares of its DCT coefficients add up to over bands of frequencies (decisions.h).
struct Block {
    float mean, least, most, equal;
    float low, middle, high, highest;
};

// A row of blocks of one plane, kBlockStep pixels apart.
struct BlockRow {
    const float
        *source;     // the first pixel of the first block; readable by a vector beyond the last
    int64_t stride;  // elements from one row of the plane to the next
    int64_t count;
    float *lines;  // scratch: (kBlockLines, block_columns(count) + kRoom)
    Block *blocks;
};

constexpr int kBlockLines = 8 + 3;

NLNET_ALWAYS_INLINE constexpr int covariance_side(int patch) {
    return int(round_up(patch * patch, 8));
}

// The kernels whose results are the same to the bit for all sets.
template <typename T>
struct MatchingKernels {
    // Bytes of scratch memory for one tile.
    size_t (*scratch)(const Shape &, int tile_rows);
    void (*match)(const Shape &, const Offsets &, const MatchingTile<T> &, void *scratch);
};

template <typename T>
struct PixelKernels {
    // One row of gray or RGB pixels, `step` elements apart, to working planes.
    void (*to_working)(int channels, const T *const *pixels, ptrdiff_t step, T *const *planes,
                       int64_t width);
    void (*unshuffle)(const UnshuffledRow<T> &);
    void (*refine)(const RefinedRow<T> &);
};

struct EyeKernels {
    void (*features)(const FeatureRow &);
};

class Memory;
using AlignedPages = nlnet_align_task;
using KeptPages = nlnet_keep_task;
using MergedPages = nlnet_merge_task;

struct SeriesKernels {
    // Bytes of scratch memory, and the work.
    size_t (*align_scratch)(const AlignedPages &);
    void (*align)(const AlignedPages &, Memory &scratch);
    size_t (*merge_scratch)(const MergedPages &);
    void (*merge)(const MergedPages &, Memory &scratch);
    size_t (*keep_scratch)(const KeptPages &);
    void (*keep)(const KeptPages &, Memory &scratch);
};

// The kernels that may round differently.
template <typename T>
struct StageKernels {
    size_t (*spread_scratch)(const Shape &, int tile_rows);
    // part = sum over the tile's pixels r of L_r^T psi(L_r x)
    void (*spread)(const Shape &, const Stage<T> &, int channel, const StageTile<T> &,
                   void *scratch);
    size_t (*differentiate_scratch)(const Shape &, int tile_rows);
    // The backward pass: `cotangent` is e of u; part = sum of L_r^T (psi'(L_r x) L_r e).
    void (*differentiate)(const Shape &, const Stage<T> &, int channel, const StageTile<T> &,
                          const Rows<const T> &cotangent, const StageSums<T> &, void *scratch);
    // Row y of the plane that the windows add up to; `line` has width + 2 * radius elements.
    void (*fold)(const Shape &, const Parts<T> &, int64_t height, int64_t width, int64_t y, T *line,
                 T *row);
    // row = (1 - step) * estimate + step * noisy - row
    void (*descend)(const T *estimate, const T *noisy, T step, T *row, int64_t width);
    // P_C of one row of working planes, in place.
    void (*project)(int channels, T *const *planes, const Box<T> &, int64_t width);
    // The cotangent of u from that of P_C(u), in place.
    void (*project_backward)(int channels, const T *const *updates, T *const *cotangents,
                             const Box<T> &, int64_t width);
    // One row of working planes to gray or RGB pixels, `step` elements apart, inside the box.
    void (*from_working)(int channels, const T *const *planes, T *const *pixels, ptrdiff_t step,
                         const Box<T> &, int64_t width);
    // The sum of e * (y - x), in double precision and in one fixed order.
    double (*step_gradient)(const T *cotangent, const T *noisy, const T *estimate, int64_t width);
    void (*convolve)(const ConvolvedRow<T> &);
};

struct NoiseKernels {
    void (*survey)(const PatchRow &);
    // sums += the products of all pairs of a patch's pixels, those below the diagonal left out:
    // (side, side) for covariance_side(); `scratch` is of kPatchBatch * side elements.
    void (*add_patches)(const PatchBatch &, float *scratch, float *sums);
    void (*transform_blocks)(const BlockRow &);
};

struct Kernels {
    const char *name;
    const MatchingKernels<float> *match_float;
    const MatchingKernels<double> *match_double;
    const StageKernels<float> *stage_float;
    const StageKernels<double> *stage_double;
    const PixelKernels<float> *pixel_float;
    const PixelKernels<double> *pixel_double;
    const EyeKernels *eye;
    const SeriesKernels *series;
    const NoiseKernels *noise;
    const RemovalKernels *removal;
};

}  // namespace nlnet
