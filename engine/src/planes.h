// Planes of an image: held whole in the caller's memory, or some rows of them in a ring buffer.
#pragma once

#include "kernels.h"

namespace nlnet {
namespace {

template <typename T>
struct Planes {
    T *data;
    int64_t width;     // elements from one row to the next
    int64_t capacity;  // rows of a plane

    Rows<T> plane(int channel) const {
        return {data + channel * capacity * width, width, capacity};
    }
    Rows<const T> read(int channel) const {
        return {data + channel * capacity * width, width, capacity};
    }
    T *row(int channel, int64_t y) const { return plane(channel).row(y); }
};

// Row y of all channels, as kernels take them.
template <typename T>
struct RowOf {
    T *channels[3];

    RowOf(const Planes<T> &planes, int count, int64_t y) : channels{} {
        for (int channel = 0; channel < count; channel++)
            channels[channel] = planes.row(channel, y);
    }
};

}  // namespace
}  // namespace nlnet
