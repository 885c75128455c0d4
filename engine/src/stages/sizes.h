// Sizes that the loops over patches know when they are compiled, or look up when they run.
#pragma once

#include "../kernels.h"
#include "../vectors.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// A patch's side and a group's members; 0 stands for any, given at run time.
template <int Patch, int Group>
struct Sizes {
    int patch_side, group_members, window_reach;

    explicit Sizes(const Shape &shape)
        : patch_side(shape.patch), group_members(shape.group), window_reach(shape.reach()) {}

    static constexpr bool known = Patch != 0;
    static constexpr int members = Group;
    static constexpr int patch_rows = Patch ? Patch : 1;  // for arrays that only known sizes use
    NLNET_INLINE int patch() const { return Patch ? Patch : patch_side; }
    NLNET_INLINE int group() const { return Group ? Group : group_members; }
    NLNET_INLINE int pixels() const { return patch() * patch(); }
    // A multiple of 8, since (p - 1) * (p + 1) is one for every odd p.
    NLNET_INLINE int filters() const { return pixels() - 1; }
    NLNET_INLINE int reach() const { return window_reach; }
};

// Elements of a patch's row that are taken together.
constexpr int kRow = 8;

// N elements in as few vectors as the set allows.
template <typename T, int N>
struct Pack {
    static constexpr int lanes = N < kLanes<T> ? N : kLanes<T>;
    static constexpr int count = N / lanes;
    typedef Vector<T, lanes> V;

    V part[count];

    static NLNET_INLINE Pack zero() {
        Pack pack;
        repeat<count>([&](int i) NLNET_BODY { pack.part[i] = V{}; });
        return pack;
    }
    static NLNET_INLINE Pack read(const T *from) {
        Pack pack;
        repeat<count>([&](int i) NLNET_BODY { pack.part[i] = load<V>(from + i * lanes); });
        return pack;
    }
    NLNET_INLINE void write(T *to) const {
        repeat<count>([&](int i) NLNET_BODY { store(part[i], to + i * lanes); });
    }
    // this + factor * other
    NLNET_INLINE Pack plus(V factor, const Pack &other) const {
        Pack pack;
        repeat<count>([&](int i) NLNET_BODY { pack.part[i] = part[i] + factor * other.part[i]; });
        return pack;
    }
    NLNET_INLINE Pack plus(const Pack &left, const Pack &right) const {
        Pack pack;
        repeat<count>([&](int i)
                          NLNET_BODY { pack.part[i] = part[i] + left.part[i] * right.part[i]; });
        return pack;
    }
    // Zero from element `first` on, whatever is there, NaN too.
    NLNET_INLINE Pack clear_from(int first) const {
        typedef decltype(part[0] < part[0]) Mask;
        Mask number = {};
        for (int lane = 0; lane < lanes; lane++) number[lane] = lane;
        Pack pack;
        repeat<count>(
            [&](int i) NLNET_BODY { pack.part[i] = number < first - i * lanes ? part[i] : V{}; });
        return pack;
    }
    // The sum of all elements: halves are added until one is left.
    NLNET_INLINE T sum() const {
        V total = part[0];
        repeat<count - 1>([&](int i) NLNET_BODY { total += part[i + 1]; });
        if constexpr (lanes == 8)
            total += __builtin_shufflevector(total, total, 4, 5, 6, 7, 0, 1, 2, 3);
        if constexpr (lanes == 8)
            total += __builtin_shufflevector(total, total, 2, 3, 0, 1, 6, 7, 4, 5);
        if constexpr (lanes == 4) total += __builtin_shufflevector(total, total, 2, 3, 0, 1);
        return total[0] + total[1];
    }
};

template <typename T>
using Row = Pack<T, kRow>;

// The places of a group's member from the pixel's own, in elements of a window.
NLNET_INLINE int64_t member_place(const int8_t *member, int64_t stride) {
    return member[0] * stride + member[1];
}

}  // namespace
}  // namespace NLNET_SET
}  // namespace nlnet
