// Matching beside its definition, to the bit.

#include <float.h>

#include "check.h"

namespace check {
namespace {

using nlnet::MatchingKernels;
using nlnet::MatchingTile;
using nlnet::Shape;

// The offsets of a window by rank, and the pairs of opposite ones.
struct Window {
    Array<int8_t> offsets;
    Array<int32_t> pairs;

    explicit Window(int window) : offsets(2 * window * window), pairs(window * window) {
        const int reach = window / 2;
        Array<int> rank(window * window);
        int count = 0;
        for (int length = 0; length <= 2 * reach * reach; ++length) {
            for (int dy = -reach; dy <= reach; ++dy) {
                for (int dx = -reach; dx <= reach; ++dx) {
                    if (dy * dy + dx * dx != length) continue;
                    offsets[2 * count] = int8_t(dy);
                    offsets[2 * count + 1] = int8_t(dx);
                    rank[(dy + reach) * window + dx + reach] = count++;
                }
            }
        }
        int pair = 0;
        for (int i = 1; i < count; ++i) {
            const int dy = offsets[2 * i], dx = offsets[2 * i + 1];
            if (dy < 0 || (dy == 0 && dx < 0)) continue;
            pairs[pair++] = i;
            pairs[pair++] = rank[(reach - dy) * window + reach - dx];
        }
    }
    nlnet::Offsets view() const {
        return {reinterpret_cast<const int8_t (*)[2]>(offsets.data),
                reinterpret_cast<const int32_t (*)[2]>(pairs.data)};
    }
};

int64_t mirrored(int64_t index, int64_t length) {
    return index < 0 ? -1 - index : index >= length ? 2 * length - 1 - index : index;
}

// The sum of `count` terms in the engine's order: one half, the other, and the odd one.
float ordered_sum(const float *terms, int count) {
    if (count == 1) return terms[0];
    const int half = count / 2;
    const float even = ordered_sum(terms, half) + ordered_sum(terms + half, half);
    return count % 2 ? even + terms[count - 1] : even;
}

// An image of the type that a kernel takes, `capacity` rows of it in a ring buffer.
template <typename T>
struct Image {
    int64_t height, width;
    Array<T> pixels;

    Image(int64_t rows, int64_t columns)
        : height(rows), width(columns), pixels(size_t(rows * columns)) {}
    float at(int64_t y, int64_t x) const {
        return float(pixels[mirrored(y, height) * width + mirrored(x, width)]);
    }
};

// The squared distance of the patches around two pixels.
template <typename T>
float distance(const Image<T> &image, int patch, int64_t y, int64_t x, int64_t dy, int64_t dx) {
    float columns[64], terms[64];
    for (int j = 0; j < patch; ++j) {
        for (int i = 0; i < patch; ++i) {
            const int64_t row = y + i - patch / 2, column = x + j - patch / 2;
            const float difference = image.at(row, column) - image.at(row + dy, column + dx);
            terms[i] = difference * difference;
        }
        columns[j] = ordered_sum(terms, patch);
    }
    return ordered_sum(columns, patch);
}

// The group of one pixel: by distance, then by rank, found by inserting one after the other.
template <typename T>
void plain_group(const Image<T> &image, const Shape &shape, const Window &window, int64_t y,
                 int64_t x, float *best, int8_t *group) {
    memset(group, 0, size_t(2 * shape.group));
    int found = 1;
    for (int rank = 1; rank < shape.window * shape.window; ++rank) {
        const int dy = window.offsets[2 * rank], dx = window.offsets[2 * rank + 1];
        if (y + dy < 0 || y + dy >= image.height || x + dx < 0 || x + dx >= image.width) continue;
        const float near = distance(image, shape.patch, y, x, dy, dx);
        if (!(near < FLT_MAX)) continue;
        int place = found;
        while (place > 1 && near < best[place - 1]) --place;
        if (place == shape.group) continue;
        if (found < shape.group) ++found;
        for (int i = found - 1; i > place; --i) {
            best[i] = best[i - 1];
            memcpy(group + 2 * i, group + 2 * i - 2, 2);
        }
        best[place] = near;
        group[2 * place] = int8_t(dy);
        group[2 * place + 1] = int8_t(dx);
    }
}

enum Content { kNoise, kFewLevels, kConstant, kSmooth, kTiny, kRounded, kHuge, kContents };

template <typename T>
void fill(Image<T> &image, int content, Random &random) {
    for (int64_t y = 0; y < image.height; ++y) {
        for (int64_t x = 0; x < image.width; ++x) {
            T &pixel = image.pixels[y * image.width + x];
            switch (content) {
                case kNoise: pixel = T(255 * random.uniform()); break;
                case kFewLevels: pixel = T(random.between(0, 2)); break;
                case kConstant: pixel = T(127.3); break;
                case kSmooth: pixel = T(3 * x + 2 * y + random.uniform()); break;
                // Equal but for the order in which sums are rounded.
                case kRounded: pixel = T(0.1) * T(random.between(1, 3)); break;
                case kTiny: pixel = T(1e-21 * random.uniform()); break;  // denormal distances
                default: pixel = T((random.uniform() - 0.5) * (random.between(0, 9) ? 1e19 : 1e38));
            }
        }
    }
}

// Find the groups of a whole image, tile by tile, from a ring buffer of its rows.
template <typename T>
void match_tiles(const MatchingKernels<T> &kernels, const Image<T> &image, const Shape &shape,
                 const Window &window, int tile_rows, int tile_columns, int8_t *groups) {
    const int64_t margin = shape.margin(), ring = tile_rows + 2 * margin;
    const int64_t capacity = ring < image.height ? ring : image.height;
    Array<T> rows(size_t(capacity * image.width));
    Array<char> scratch(kernels.scratch(shape, tile_rows));
    int64_t copied = 0;
    for (int64_t top = 0; top < image.height; top += tile_rows) {
        MatchingTile<T> tile;
        tile.image = {rows.data, image.width, capacity};
        tile.height = image.height;
        tile.width = image.width;
        tile.top = top;
        tile.bottom = top + tile_rows < image.height ? top + tile_rows : image.height;
        tile.groups = groups + top * image.width * shape.group * 2;
        for (; copied < tile.bottom + margin && copied < image.height; ++copied) {
            memcpy(rows.data + copied % capacity * image.width,
                   image.pixels.data + copied * image.width, size_t(image.width) * sizeof(T));
        }
        for (tile.left = 0; tile.left < image.width; tile.left = tile.right) {
            const int64_t end = tile.left + tile_columns;
            tile.right = end < image.width ? end : image.width;
            kernels.match(shape, window.view(), tile, scratch.data);
        }
    }
}

Shape random_shape(Random &random) {
    Shape shape = {1, 5, random.between(0, 1) ? 5 : 7, 8, 31, 63, 100};
    if (random.between(0, 1)) return shape;
    shape.window = int(2 * random.between(1, 12) + 1);
    if (random.between(0, 1)) shape.patch = int(2 * random.between(1, 6) + 1);
    shape.group = random.between(0, 3) ? int(random.between(1, 20)) : 8;
    // The extremes are slow together.
    switch (random.between(0, 19)) {
        case 0: shape.window = 67; break;
        case 1: shape.patch = 63; break;
        case 2:
            shape.window = 7;
            shape.group = 49;
            break;
        default: break;
    }
    return shape;
}

template <typename T>
void check_groups(const MatchingKernels<T> &kernels, const char *type, int rounds, Random random,
                  Report &report) {
    for (int round = 0; round < rounds; ++round) {
        Shape shape = random_shape(random);
        const int seen = shape.window / 2 + 1;
        Image<T> image(shape.patch + random.between(0, 30),
                       shape.patch + random.between(0, random.between(0, 3) ? 40 : 160));
        // A corner must see as many candidates as a group has.
        const int64_t least =
            (image.height < seen ? image.height : seen) * (image.width < seen ? image.width : seen);
        if (shape.group > least) shape.group = int(least);
        const int content = int(random.between(0, kContents - 1));
        fill(image, content, random);
        const int tile_rows = int(random.between(1, image.height + 5));
        const int most = nlnet::kMatchColumns;
        const int tile_columns = random.between(0, 1) ? most : int(random.between(1, most));
        const Window window(shape.window);
        const int64_t size = image.height * image.width * shape.group * 2;
        Array<int8_t> groups{size_t(size)};
        match_tiles(kernels, image, shape, window, tile_rows, tile_columns, groups.data);
        Array<float> best{size_t(shape.group)};
        Array<int8_t> group{size_t(2 * shape.group)};
        bool equal = true;
        // The definition is slow: where a pixel takes long, look at some of them.
        const int64_t pixels = image.height * image.width;
        const int64_t work = pixels * shape.window * shape.window * shape.pixels();
        const int64_t step = 1 + work / 20000000;
        for (int64_t pixel = random.between(0, step - 1); pixel < pixels; pixel += step) {
            plain_group(image, shape, window, pixel / image.width, pixel % image.width, best.data,
                        group.data);
            equal = equal && !memcmp(group.data, groups.data + pixel * 2 * shape.group,
                                     size_t(2 * shape.group));
        }
        report.expect(equal,
                      "groups of %dx%d pixels (%s, content %d): patch %d, group %d, window %d, "
                      "tiles of %dx%d",
                      int(image.width), int(image.height), type, content, shape.patch, shape.group,
                      shape.window, tile_columns, tile_rows);
    }
}

}  // namespace

void check_matching(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    check_groups(*kernels.match_float, "float", rounds, random, report);
    check_groups(*kernels.match_double, "double", rounds / 3, random, report);
}

void time_matching(const nlnet::Kernels &kernels) {
    const Window window(31);
    Image<float> image(321, 481);
    Random random = {1};
    fill(image, kSmooth, random);
    for (int64_t i = 0; i < image.height * image.width; ++i) {
        image.pixels[i] = float(128 + 50 * sin(double(i % image.width) / 20)) +
                          float(100 * (random.uniform() + random.uniform() - 1));
    }
    const int patches[] = {5, 7, 9};
    for (int patch : patches) {
        const Shape shape = {1, 5, patch, 8, 31, 63, 100};
        Array<int8_t> groups(size_t(image.height * image.width * 8 * 2));
        const double time = seconds(
            [&] {
                match_tiles(*kernels.match_float, image, shape, window, 65, nlnet::kMatchColumns,
                            groups.data);
            },
            5);
        printf("%-8s match, patch %d: %.1f ms for 481x321\n", kernels.name, patch, time * 1e3);
    }
}

}  // namespace check
