// Reading a parameter block; docs/engine.md describes it.
#pragma once

#include "shape.h"

namespace nlnet {

inline bool is_finite(double value) {
    return value - value == 0;
}

// A value of the block, of whichever element type.
inline double value_at(const char *array, bool single, int64_t index) {
    if (single) {
        float value;
        __builtin_memcpy(&value, array + index * 4, 4);
        return value;
    }
    double value;
    __builtin_memcpy(&value, array + index * 8, 8);
    return value;
}

inline bool all_finite(const char *array, bool single, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!is_finite(value_at(array, single, i))) return false;
    }
    return true;
}

// Where an array ends that starts at `from`, padded to 8 bytes.
inline size_t after(size_t from, int64_t count, bool single) {
    return from + size_t(round_up(count * (single ? 4 : 8), 8));
}

}  // namespace nlnet
