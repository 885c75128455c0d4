// Memory that the caller gives, handed out piece by piece; without it, only counted.
#pragma once

#include "../include/nlnet_engine.h"
#include "shape.h"

namespace nlnet {

class Memory {
  public:
    explicit Memory(void *start) : start_(static_cast<char *>(start)) {}

    // Memory for a product of counts of elements, and for a vector behind them, at a cache line;
    // NULL while counting.
    template <typename T, typename... Counts>
    __attribute__((always_inline)) T *take(Counts... counts) {
        size_t bytes = sizeof(T);
        const int64_t factors[] = {int64_t(counts)...};
        for (const int64_t factor : factors) {
            impossible_ |= factor < 0 || factor > int64_t(kMost) ||
                           __builtin_mul_overflow(bytes, size_t(factor), &bytes);
        }
        impossible_ |= bytes > kMost || size_ > kMost;
        if (impossible_) return nullptr;
        char *here = start_ == nullptr ? nullptr : start_ + size_;
        size_ += size_t(round_up(int64_t(bytes + kRoom * sizeof(T)), kCacheLine));
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

namespace {

// Count the memory that `make` takes, and if there is some, let it make its object there.
template <typename Object, typename Make>
nlnet_status make_in(void *memory, size_t *size, Object **object, Make make) {
    if (size == nullptr || (memory != nullptr && object == nullptr) ||
        uintptr_t(memory) % kCacheLine != 0) {
        return NLNET_BAD_ARGUMENT;
    }
    Memory counted(nullptr);
    make(counted);
    if (counted.impossible()) return NLNET_NO_MEMORY;
    if (memory == nullptr) {
        *size = counted.size();
        return NLNET_OK;
    }
    if (*size < counted.size()) return NLNET_NO_MEMORY;
    Memory pieces(memory);
    *object = make(pieces);
    return NLNET_OK;
}

}  // namespace
}  // namespace nlnet
