// What is looked at of an image to find its noise: which tiles, and what their values fill.
#include "sample.h"

#include "../arithmetic.h"
#include "../block.h"
#include "decisions.h"
#include "sorting.h"

namespace nlnet {
namespace {

constexpr int64_t kMostSide = int64_t(1) << 31;     // of an image
constexpr int64_t kMostTiles = 4096;                // of a sample, every channel by itself
constexpr int64_t kMostSampled = int64_t(1) << 30;  // pixels of a sample
constexpr int64_t kChunk = 1024;  // values of a row at a time: they stay in the cache

bool has_sides(int64_t height, int64_t width) {
    return height >= 1 && height <= kMostSide && width >= 1 && width <= kMostSide;
}

bool is_type(int32_t type) {
    return type >= NLNET_UINT8 && type <= NLNET_FLOAT64;
}

template <typename T>
void copy_numbers(const char *from, ptrdiff_t stride, int64_t count, double *values) {
    if (stride == ptrdiff_t(sizeof(T))) {
        for (int64_t i = 0; i < count; i++) {
            T value;
            __builtin_memcpy(&value, from + i * ptrdiff_t(sizeof(T)), sizeof(T));
            values[i] = double(value);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        T value;
        __builtin_memcpy(&value, from + i * stride, sizeof(T));
        values[i] = double(value);
    }
}

// Least and largest of some values, by eight at once.
void find_ends(const double *values, int64_t count, double *low, double *high) {
    double lows[8], highs[8];
    for (int lane = 0; lane < 8; lane++) lows[lane] = highs[lane] = values[0];
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int lane = 0; lane < 8; lane++) {
            const double value = values[i + lane];
            lows[lane] = value < lows[lane] ? value : lows[lane];
            highs[lane] = value > highs[lane] ? value : highs[lane];
        }
    }
    for (; i < count; i++) {
        lows[0] = smaller_number(lows[0], values[i]);
        highs[0] = larger_number(highs[0], values[i]);
    }
    for (int lane = 1; lane < 8; lane++) {
        lows[0] = smaller_number(lows[0], lows[lane]);
        highs[0] = larger_number(highs[0], highs[lane]);
    }
    *low = lows[0];
    *high = highs[0];
}

int64_t count_equal(const double *values, int64_t count, double wanted) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += values[i] == wanted;
    return found;
}

void add_values(const double *values, int64_t count, nlnet_extremes *extremes) {
    double low, high;
    find_ends(values, count, &low, &high);
    if (extremes->count == 0 || low < extremes->low) {
        extremes->low = low;
        extremes->low_count = 0;
    }
    if (extremes->count == 0 || high > extremes->high) {
        extremes->high = high;
        extremes->high_count = 0;
    }
    if (low == extremes->low) extremes->low_count += count_equal(values, count, low);
    if (high == extremes->high) extremes->high_count += count_equal(values, count, high);
    extremes->count += count;
}

}  // namespace

void copy_values(const nlnet_planes &planes, int32_t type, int64_t channel, int64_t row,
                 int64_t first, int64_t step, int64_t count, double *values) {
    const char *from = static_cast<const char *>(planes.data) + channel * planes.channel_stride +
                       row * planes.row_stride + first * planes.column_stride;
    const ptrdiff_t stride = ptrdiff_t(step) * planes.column_stride;
    switch (type) {
        case NLNET_INT8: return copy_numbers<int8_t>(from, stride, count, values);
        case NLNET_UINT8: return copy_numbers<uint8_t>(from, stride, count, values);
        case NLNET_INT16: return copy_numbers<int16_t>(from, stride, count, values);
        case NLNET_UINT16: return copy_numbers<uint16_t>(from, stride, count, values);
        case NLNET_INT32: return copy_numbers<int32_t>(from, stride, count, values);
        case NLNET_UINT32: return copy_numbers<uint32_t>(from, stride, count, values);
        case NLNET_FLOAT32: return copy_numbers<float>(from, stride, count, values);
        default: return copy_numbers<double>(from, stride, count, values);
    }
}

namespace {

// Every how many rows and columns a value is sorted, to find what the values fill.
struct Thinning {
    int64_t step, count;

    explicit Thinning(const nlnet_sample &sample);
};

Thinning::Thinning(const nlnet_sample &sample) {
    const nlnet_grid &grid = sample.grid;
    const int64_t planes = tile_count(sample) * sample.channels;
    const double size = double(planes) * double(grid.height) * double(grid.width);
    step = 1;
    while (double(step) * double(step) * double(kMostValues) < size) step++;
    count = planes * ((grid.height + step - 1) / step) * ((grid.width + step - 1) / step);
}

nlnet_measures measure_values(const nlnet_sample &sample, const Thinning &thinning, Sorter &sorter,
                              double *row) {
    int64_t count = 0;
    double sum = 0;
    const int64_t columns = (sample.grid.width + thinning.step - 1) / thinning.step;
    for (int64_t tile = 0; tile < tile_count(sample); tile++) {
        const nlnet_planes &planes = sample.tiles[tile];
        for (int64_t channel = 0; channel < sample.channels; channel++) {
            for (int64_t y = 0; y < planes.height; y += thinning.step) {
                copy_values(planes, sample.type, channel, y, 0, thinning.step, columns, row);
                for (int64_t x = 0; x < columns; x++) {
                    sorter.keys[count++] = key_of(row[x]);
                    sum += row[x];
                }
            }
        }
    }
    sorter.sort(count);
    const auto at = [&](int64_t place) { return number_of(sorter.keys[place]); };
    nlnet_measures fill = {sample.extremes.low, sample.extremes.high, 0, sum / double(count)};
    const int64_t outside = int64_t(kOutside * double(count));
    const double low = at(outside), high = at(count - 1 - outside);
    if (low != high) {
        const double beyond = kBeyond * (high - low);
        fill.low = larger_number(low - beyond, sample.extremes.low);
        fill.high = smaller_number(high + beyond, sample.extremes.high);
    }
    for (int64_t i = 1; i < count; i++) {
        const double step = at(i) - at(i - 1);
        if (step > 0 && (fill.step == 0 || step < fill.step)) fill.step = step;
    }
    return fill;
}

}  // namespace

bool is_sound(const nlnet_sample *sample, bool with_values) {
    if (sample == nullptr || (sample->channels != 1 && sample->channels != 3) ||
        !is_type(sample->type) || !has_sides(sample->grid.height, sample->grid.width)) {
        return false;
    }
    int64_t tiles = sample->channels;
    const int64_t counts[] = {sample->pages, sample->grid.rows, sample->grid.columns};
    for (const int64_t count : counts) {
        if (count < 1 || count > kMostTiles || (tiles *= count) > kMostTiles) return false;
    }
    if (sample->grid.height > kMostSampled / tiles / sample->grid.width) return false;
    if (!with_values) return true;
    if (sample->tiles == nullptr) return false;
    for (int64_t i = 0; i < tile_count(*sample); i++) {
        const nlnet_planes &tile = sample->tiles[i];
        if (tile.channels != sample->channels || tile.height != sample->grid.height ||
            tile.width != sample->grid.width || tile.data == nullptr) {
            return false;
        }
    }
    const nlnet_extremes &extremes = sample->extremes;
    return is_finite(extremes.low) && is_finite(extremes.high) && extremes.low <= extremes.high &&
           extremes.count > 0;
}

}  // namespace nlnet

using namespace nlnet;

int64_t nlnet_sample_pages(int64_t count, int64_t *pages) {
    const int64_t chosen = smaller_of(larger_of(count, 0), NLNET_SAMPLE_PAGES);
    for (int64_t i = 0; i < chosen; i++) {
        pages[i] = chosen == count ? i : (2 * i * (count - 1) / (chosen - 1) + 1) / 2;
    }
    return chosen;
}

nlnet_status nlnet_sample_grid(int64_t height, int64_t width, int64_t pages, nlnet_grid *grid) {
    if (!has_sides(height, width) || pages < 1 || grid == nullptr) return NLNET_BAD_ARGUMENT;
    const double budget = double(kMostPixels) / double(pages);
    *grid = {1, 1, height, width};
    if (double(height) * double(width) <= budget) return NLNET_OK;
    const bool enough = budget >= double(kLeastTiles * kTileSide * kTileSide);
    const int64_t side = enough ? kTileSide : kTileSide / 2;
    const double tiles = larger_number(budget / double(side * side), 1);
    // As many rows and columns of tiles as the image's shape asks for.
    const double rows = square_root(tiles * double(height) / double(width)) + 0.5;
    grid->rows = larger_of(1, smaller_of(int64_t(smaller_number(rows, tiles)), height / side));
    const int64_t columns = int64_t(tiles / double(grid->rows));
    grid->columns = larger_of(1, smaller_of(columns, width / side));
    grid->height = smaller_of(side, height);
    grid->width = smaller_of(side, width);
    return NLNET_OK;
}

int64_t nlnet_tile_start(int64_t number, int64_t count, int64_t side, int64_t tile) {
    return count < 2 ? 0 : number * (side - tile) / (count - 1);
}

nlnet_status nlnet_find_extremes(const nlnet_planes *planes, nlnet_type type,
                                 nlnet_extremes *extremes) {
    if (planes == nullptr || extremes == nullptr || !is_type(type) || planes->channels < 1 ||
        !has_sides(planes->height, planes->width) || planes->data == nullptr) {
        return NLNET_BAD_ARGUMENT;
    }
    const DefaultArithmetic arithmetic;
    double values[kChunk];
    for (int64_t channel = 0; channel < planes->channels; channel++) {
        for (int64_t y = 0; y < planes->height; y++) {
            for (int64_t x = 0; x < planes->width; x += kChunk) {
                const int64_t count = smaller_of(kChunk, planes->width - x);
                copy_values(*planes, type, channel, y, x, 1, count, values);
                add_values(values, count, extremes);
            }
        }
    }
    return NLNET_OK;
}

nlnet_status nlnet_measure_sample(const nlnet_sample *sample, void *memory, size_t *size,
                                  nlnet_measures *fill) {
    if (!is_sound(sample, memory != nullptr) || (memory != nullptr && fill == nullptr)) {
        return NLNET_BAD_ARGUMENT;
    }
    const Thinning thinning(*sample);
    Sorter sorter;
    double *row = nullptr;
    const nlnet_status status = make_in(memory, size, &fill, [&](Memory &pieces) {
        sorter.take_memory(thinning.count, pieces);
        row = pieces.take<double>(sample->grid.width);
        return fill;
    });
    if (status == NLNET_OK && memory != nullptr) {
        const DefaultArithmetic arithmetic;
        *fill = measure_values(*sample, thinning, sorter, row);
    }
    return status;
}
