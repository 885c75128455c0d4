// Memory that the caller gives, handed out piece by piece; without it, only counted.
#pragma once

#include "shape.h"

namespace nlnet {

class Memory {
  public:
    explicit Memory(void *start) : start_(static_cast<char *>(start)) {}

    // Memory for `count` elements, at a cache line; NULL while counting.
    template <typename T>
    T *take(int64_t count) {
        size_t bytes = 0, end = 0;
        impossible_ |= count < 0 || __builtin_mul_overflow(size_t(count), sizeof(T), &bytes) ||
                       bytes > kMost || __builtin_add_overflow(size_, bytes, &end) || end > kMost;
        if (impossible_) return nullptr;
        char *here = start_ == nullptr ? nullptr : start_ + size_;
        size_ = size_t(round_up(int64_t(end), kCacheLine));
        return reinterpret_cast<T *>(here);
    }

    size_t size() const { return size_; }
    // More than the machine can address.
    bool impossible() const { return impossible_; }

  private:
    static constexpr size_t kMost = SIZE_MAX / 4;

    char *start_;
    size_t size_ = 0;
    bool impossible_ = false;
};

}  // namespace nlnet
