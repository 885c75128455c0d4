// What only one page shows, kept: it is taken back from what averaging has removed.
//
// What a page lost to the average is noise, whose strength is known. In squares of 32x32 pixels,
// cosine transformed, what stands out of it is no noise, such as texture that no neighbour has: it
// is added again. Neighbouring squares overlap by half, and are blended.
#pragma once

#include "../memory.h"
#include "../set_kernels.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

constexpr int kSquare = 32;
constexpr int kHalf = kSquare / 2;  // from one square to the next
constexpr int kCells = kSquare * kSquare;

// cos(pi i / 64), i from 0 to 32.
constexpr float kQuarter[kSquare + 1] = {
    1.00000000f, 0.99879546f, 0.99518473f, 0.98917651f, 0.98078528f, 0.97003125f, 0.95694034f,
    0.94154407f, 0.92387953f, 0.90398929f, 0.88192126f, 0.85772861f, 0.83146961f, 0.80320753f,
    0.77301045f, 0.74095113f, 0.70710678f, 0.67155895f, 0.63439328f, 0.59569930f, 0.55557023f,
    0.51410274f, 0.47139674f, 0.42755509f, 0.38268343f, 0.33688985f, 0.29028468f, 0.24298018f,
    0.19509032f, 0.14673047f, 0.09801714f, 0.04906767f, 0.0f};

// The same for i from 0 to 128.
static NLNET_ALWAYS_INLINE float cosine(int i) {
    if (i > 2 * kSquare) i = 4 * kSquare - i;
    return i > kSquare ? -kQuarter[2 * kSquare - i] : kQuarter[i];
}

// The cosine transform of 32 values, of norm 1.
struct Cosines {
    float rows[kSquare][kSquare];

    NLNET_ALWAYS_INLINE Cosines() {
        for (int k = 0; k < kSquare; ++k) {
            for (int i = 0; i < kSquare; ++i) {
                rows[k][i] =
                    cosine((2 * i + 1) * k % (4 * kSquare)) * (k == 0 ? 0.17677670f : 0.25f);
            }
        }
    }

    // Transform the columns of a square, or back; and exchange rows and columns.
    template <bool Back>
    NLNET_ALWAYS_INLINE void apply(const float *from, float *to) const {
        for (int k = 0; k < kSquare; ++k) {
            float sums[kSquare] = {};
            for (int i = 0; i < kSquare; ++i) {
                const float factor = Back ? rows[i][k] : rows[k][i];
                for (int x = 0; x < kSquare; ++x) sums[x] += factor * from[i * kSquare + x];
            }
            for (int x = 0; x < kSquare; ++x) to[x * kSquare + k] = sums[x];
        }
    }
};

// Weights of a square's rows or columns: sin^2(pi (i + 1/2) / 32).
static NLNET_ALWAYS_INLINE float blended(int i) {
    return 0.5f - 0.5f * cosine(2 * (2 * i + 1));
}

// The first row or column of a square: the last one is moved into the page.
static NLNET_ALWAYS_INLINE int64_t square_start(int64_t number, int64_t length) {
    const int64_t start = number * kHalf, last = length > kSquare ? length - kSquare : 0;
    return start < last ? start : last;
}

static NLNET_ALWAYS_INLINE int64_t square_count(int64_t length) {
    return length > kSquare ? (length - kSquare + kHalf - 1) / kHalf + 1 : 1;
}

// The sum of the weights at every place of a side.
static void sum_weights(int64_t length, float *sums) {
    for (int64_t i = 0; i < length; ++i) sums[i] = 0;
    for (int64_t number = 0; number < square_count(length); ++number) {
        const int64_t start = square_start(number, length);
        for (int i = 0; i < kSquare && start + i < length; ++i) sums[start + i] += blended(i);
    }
}

struct KeptRows {
    float *kept;          // (rows, width)
    float *down, *right;  // sums of weights, of rows and columns
};

static NLNET_ALWAYS_INLINE KeptRows lay_out(const KeptPages &pages, Memory &memory) {
    KeptRows made = {};
    made.kept = memory.take<float>(pages.last - pages.first, pages.width);
    made.down = memory.take<float>(pages.height);
    made.right = memory.take<float>(pages.width);
    return made;
}

// Find what stands out in a square, and whether anything does. Places beyond the page are zero.
static bool stands_out(const KeptPages &pages, const Cosines &cosines, const float *noisy,
                       const float *merged, int64_t top, int64_t left, float *square) {
    float half[kCells];
    for (int i = 0; i < kCells; ++i) {
        const int64_t y = top + i / kSquare, x = left + i % kSquare, at = y * pages.width + x;
        const bool inside = y < pages.height && x < pages.width && pages.removed[at] > 1e-3f;
        square[i] = inside ? (noisy[at] - merged[at]) / pages.removed[at] : 0;
    }
    cosines.apply<false>(square, half);
    cosines.apply<false>(half, square);
    bool any = false;
    for (int i = 0; i < kCells; ++i) {
        const bool large = square[i] > pages.least || square[i] < -pages.least;
        square[i] = large ? square[i] : 0;
        any |= large;
    }
    if (!any) return false;
    cosines.apply<true>(square, half);
    cosines.apply<true>(half, square);
    return true;
}

static void keep(const KeptPages &pages, Memory &memory) {
    const KeptRows made = lay_out(pages, memory);
    const int64_t plane = pages.height * pages.width, width = pages.width;
    const Cosines cosines;
    sum_weights(pages.height, made.down);
    sum_weights(width, made.right);
    for (int channel = 0; channel < pages.channels; ++channel) {
        const float *noisy = pages.noisy + channel * plane;
        const float *merged = pages.merged + channel * plane;
        float *kept = pages.kept + channel * plane;
        for (int64_t i = 0; i < (pages.last - pages.first) * width; ++i) made.kept[i] = 0;
        for (int64_t row = 0; row < square_count(pages.height); ++row) {
            const int64_t top = square_start(row, pages.height);
            if (top >= pages.last || top + kSquare <= pages.first) continue;
            for (int64_t column = 0; column < square_count(width); ++column) {
                const int64_t left = square_start(column, width);
                float square[kCells];
                if (!stands_out(pages, cosines, noisy, merged, top, left, square)) continue;
                for (int i = 0; i < kCells; ++i) {
                    const int64_t y = top + i / kSquare, x = left + i % kSquare;
                    if (y < pages.first || y >= pages.last || x >= width) continue;
                    made.kept[(y - pages.first) * width + x] +=
                        blended(i / kSquare) * blended(i % kSquare) * square[i];
                }
            }
        }
        for (int64_t y = pages.first; y < pages.last; ++y) {
            for (int64_t x = 0; x < width; ++x) {
                const int64_t at = y * width + x;
                const float weight = made.down[y] * made.right[x];
                kept[at] = merged[at] +
                           made.kept[(y - pages.first) * width + x] / weight * pages.removed[at];
            }
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
