// The DCT of blocks of 8x8 pixels, as the power of bands of frequencies.
#pragma once

#include "../kernels.h"
#include "../vectors.h"
#include "decisions.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

typedef Vector<float, kBlockSide> Coefficients;
typedef Vector<float, kLanes<float>> Columns;
typedef Vector<int32_t, kLanes<float>> ColumnBits;

// Cosines of the orthonormal DCT of 8 numbers: row i has coefficient i.
static constexpr float kDct[kBlockSide][kBlockSide] = {
    {0.35355339059f, 0.35355339059f, 0.35355339059f, 0.35355339059f, 0.35355339059f, 0.35355339059f,
     0.35355339059f, 0.35355339059f},
    {0.49039264020f, 0.41573480615f, 0.27778511651f, 0.09754516101f, -0.09754516101f,
     -0.27778511651f, -0.41573480615f, -0.49039264020f},
    {0.46193976626f, 0.19134171618f, -0.19134171618f, -0.46193976626f, -0.46193976626f,
     -0.19134171618f, 0.19134171618f, 0.46193976626f},
    {0.41573480615f, -0.09754516101f, -0.49039264020f, -0.27778511651f, 0.27778511651f,
     0.49039264020f, 0.09754516101f, -0.41573480615f},
    {0.35355339059f, -0.35355339059f, -0.35355339059f, 0.35355339059f, 0.35355339059f,
     -0.35355339059f, -0.35355339059f, 0.35355339059f},
    {0.27778511651f, -0.49039264020f, 0.09754516101f, 0.41573480615f, -0.41573480615f,
     -0.09754516101f, 0.49039264020f, -0.27778511651f},
    {0.19134171618f, -0.46193976626f, 0.46193976626f, -0.19134171618f, -0.19134171618f,
     0.46193976626f, -0.46193976626f, 0.19134171618f},
    {0.09754516101f, -0.27778511651f, 0.41573480615f, -0.49039264020f, 0.49039264020f,
     -0.41573480615f, 0.27778511651f, -0.09754516101f},
};

// Whether a sum of two frequencies is in a band: 1 or 0 for the sums 0 to 14, and one more.
struct Band {
    float has[2 * kBlockSide];

    constexpr Band(int from, int to) : has() {
        for (int sum = 0; sum < 2 * kBlockSide; sum++) has[sum] = sum >= from && sum <= to;
    }
};
static constexpr Band kLow(kLowFrom, kLowTo), kMiddle(kMiddleFrom, kMiddleTo);
static constexpr Band kHigh(kHighFrom, 14), kHighest(kHighestFrom, 14);

static NLNET_INLINE float sum_of(const Coefficients &values) {
    float numbers[kBlockSide], sum = 0;
    store(values, numbers);
    for (int i = 0; i < kBlockSide; i++) sum += numbers[i];
    return sum;
}

// Transform columns of 8 pixels: 8 lines of coefficients, then of each column the least and the
// largest pixel, and how many equal their right neighbors.
static void transform_columns(const BlockRow &row, int64_t width, int64_t apart) {
    for (int64_t x = 0; x < width; x += kLanes<float>) {
        Columns pixels[kBlockSide];
        Columns least = load<Columns>(row.source + x), most = least;
        ColumnBits equal = {};
        repeat<kBlockSide>([&](int i) NLNET_BODY {
            pixels[i] = load<Columns>(row.source + i * row.stride + x);
            least = smaller(least, pixels[i]);
            most = larger(most, pixels[i]);
            equal -= pixels[i] == load<Columns>(row.source + i * row.stride + x + 1);
        });
        for (int u = 0; u < kBlockSide; u++) {
            Columns sum = kDct[u][0] * pixels[0];
            repeat<kBlockSide - 1>([&](int i)
                                       NLNET_BODY { sum += kDct[u][i + 1] * pixels[i + 1]; });
            store(sum, row.lines + u * apart + x);
        }
        store(least, row.lines + 8 * apart + x);
        store(most, row.lines + 9 * apart + x);
        store(__builtin_convertvector(equal, Columns), row.lines + 10 * apart + x);
    }
}

static void transform_blocks(const BlockRow &row) {
    const int64_t width = (row.count - 1) * kBlockStep + kBlockSide, apart = width + kRoom;
    transform_columns(row, width, apart);
    Coefficients across[kBlockSide];  // what each pixel of a row of 8 gives to all coefficients
    for (int i = 0; i < kBlockSide; i++) {
        for (int v = 0; v < kBlockSide; v++) across[i][v] = kDct[v][i];
    }
    for (int64_t number = 0; number < row.count; number++) {
        const float *lines = row.lines + number * kBlockStep;
        Coefficients low = {}, middle = {}, high = {}, highest = {};
        Block &block = row.blocks[number];
        for (int u = 0; u < kBlockSide; u++) {
            const float *line = lines + u * apart;
            Coefficients sum = line[0] * across[0];
            repeat<kBlockSide - 1>([&](int i) NLNET_BODY { sum += line[i + 1] * across[i + 1]; });
            const Coefficients power = sum * sum;
            low += power * load<Coefficients>(kLow.has + u);
            middle += power * load<Coefficients>(kMiddle.has + u);
            high += power * load<Coefficients>(kHigh.has + u);
            highest += power * load<Coefficients>(kHighest.has + u);
            if (u == 0) block.mean = sum[0] * (1.0f / kBlockSide);
        }
        block.low = sum_of(low);
        block.middle = sum_of(middle);
        block.high = sum_of(high);
        block.highest = sum_of(highest);
        const float *least = lines + 8 * apart, *most = lines + 9 * apart;
        const float *equal = lines + 10 * apart;
        block.least = least[0];
        block.most = most[0];
        block.equal = 0;
        for (int i = 0; i < kBlockSide; i++) {
            block.least = least[i] < block.least ? least[i] : block.least;
            block.most = most[i] > block.most ? most[i] : block.most;
            if (i + 1 < kBlockSide) block.equal += equal[i];
        }
    }
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
