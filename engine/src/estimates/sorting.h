// Sorting numbers by their digits (radix sort), and what their order tells.
#pragma once

#include "../memory.h"

namespace nlnet {
namespace {

// An unsigned number with the order of the double.
inline uint64_t key_of(double number) {
    int64_t bits;
    number += 0.0;  // -0 is 0
    __builtin_memcpy(&bits, &number, sizeof(bits));
    return uint64_t(bits) ^ (uint64_t(bits >> 63) | uint64_t(1) << 63);
}
inline double number_of(uint64_t key) {
    const uint64_t bits = key >> 63 ? key ^ uint64_t(1) << 63 : ~key;
    double number;
    __builtin_memcpy(&number, &bits, sizeof(number));
    return number;
}

// The bits of a float of at least 0: they have its order.
inline uint32_t bits_of(float number) {
    uint32_t bits;
    number += 0.0f;
    __builtin_memcpy(&bits, &number, sizeof(bits));
    return bits;
}

class Sorter {
  public:
    // For so many keys at most.
    void take_memory(int64_t most, Memory &memory) {
        keys = memory.take<uint64_t>(most);
        others_ = memory.take<uint64_t>(most);
        counts_ = memory.take<int64_t>(kDigits, kValues);
    }

    // Sort the first `count` of `keys`.
    void sort(int64_t count) {
        __builtin_memset(counts_, 0, kDigits * kValues * sizeof(int64_t));
        for (int64_t i = 0; i < count; i++) {
            for (int digit = 0; digit < kDigits; digit++) {
                counts_[digit * kValues + value_at(keys[i], digit)]++;
            }
        }
        for (int digit = 0; digit < kDigits; digit++) {
            int64_t *places = counts_ + digit * kValues;
            if (count > 0 && places[value_at(keys[0], digit)] == count) continue;  // all the same
            int64_t place = 0;
            for (int value = 0; value < kValues; value++) {
                const int64_t next = place + places[value];
                places[value] = place;
                place = next;
            }
            for (int64_t i = 0; i < count; i++) {
                others_[places[value_at(keys[i], digit)]++] = keys[i];
            }
            uint64_t *swapped = keys;
            keys = others_;
            others_ = swapped;
        }
    }

    uint64_t *keys;

  private:
    static constexpr int kDigits = 8, kValues = 256;
    static int value_at(uint64_t key, int digit) { return int(key >> (8 * digit)) & 255; }

    uint64_t *others_;
    int64_t *counts_;  // (digits, values)
};

// The number that a share of sorted numbers, at(0) to at(count - 1), is below: between two of them
// by a line.
template <typename At>
inline double quantile(int64_t count, double share, const At &at) {
    const double place = share * double(count - 1);
    const int64_t below = int64_t(place);
    const double low = at(below), high = at(smaller_of(below + 1, count - 1));
    return low + (high - low) * (place - double(below));
}

}  // namespace
}  // namespace nlnet
