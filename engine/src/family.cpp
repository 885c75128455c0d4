// From the block of a family, whose values are given at several sigmas, to that of the network for
// one sigma.
//
// All values of the stages are linear in log sigma between those that are given, and filters are
// brought back to unit norm. Of a refinement, input and output are scaled, and biases and the step
// size are linear in log sigma.
#include "convolutions/refinement.h"
#include "network_block.h"

namespace nlnet {
namespace {

constexpr uint32_t kMostSets = 1000;
// The input of a refinement is divided by twice the sum of sigma and this, which keeps edges and
// noise of any strength at values of about 1.
constexpr double kImageOffset = 10;

// The natural logarithm of a positive number: that of a power of two and of what is left, by a
// series, to about one unit in the last place.
double logarithm(double number) {
    uint64_t bits;
    __builtin_memcpy(&bits, &number, sizeof(bits));
    int64_t power = int64_t(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double mantissa;
    __builtin_memcpy(&mantissa, &bits, sizeof(mantissa));
    if (mantissa > 1.4142135623730951) {
        mantissa /= 2;
        power++;
    }
    const double part = (mantissa - 1) / (mantissa + 1), square = part * part;
    double sum = 0;
    for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
    return double(power) * 0.69314718055994531 + 2 * part * sum;
}

struct FamilyBlock {
    Head head;
    Shape shape;
    bool single;
    const char *sigmas, *stages;  // (sets) and (sets, stages)
    const char *refinement;       // NULL: there is none
    RefinementHead refinement_head;
    LayerSpecs layers;

    double sigma(uint32_t set) const { return value_at(sigmas, false, set); }
    size_t set_bytes() const { return size_t(bytes_of_stages(shape, single)); }

    nlnet_status read(const void *block, size_t bytes) {
        const nlnet_status status = read_head(block, bytes, &head, &shape);
        if (status != NLNET_OK) return status;
        if (head.sets < 2 || head.sets > kMostSets || !(head.sigma > 0) || !is_finite(head.sigma)) {
            return NLNET_BAD_BLOCK;
        }
        single = head.element == 0;
        const uint64_t start = sizeof(Head) + head.sets * sizeof(double);
        uint64_t end = start + head.sets * bytes_of_stages(shape, single);
        if (bytes < end) return NLNET_BAD_BLOCK;
        sigmas = static_cast<const char *>(block) + sizeof(Head);
        stages = sigmas + head.sets * sizeof(double);
        refinement = nullptr;
        if ((head.flags & kRefined) != 0) {
            refinement = static_cast<const char *>(block) + size_t(end);
            if (!read_refinement_head(refinement, bytes - size_t(end), shape.channels,
                                      &refinement_head, &layers)) {
                return NLNET_BAD_BLOCK;
            }
            end += sizeof(RefinementHead) + sizeof(double) + functions_bytes();
        }
        return end == bytes && is_sound() ? NLNET_OK : NLNET_BAD_BLOCK;
    }

    // Bytes of the layers, with the slopes of biases that vary.
    uint64_t functions_bytes() const {
        uint64_t bytes = layers.bytes(single);
        for (int i = 0; i < layers.count; i++) {
            if (layers.specs[i].varies()) bytes += after(0, layers.specs[i].bias_count(), single);
        }
        return bytes;
    }

    bool is_sound() const {
        for (uint32_t set = 0; set < head.sets; set++) {
            if (!(sigma(set) > (set == 0 ? 0 : sigma(set - 1))) || !is_finite(sigma(set)) ||
                !stages_finite(stages + set * set_bytes(), shape, single)) {
                return false;
            }
        }
        if (refinement == nullptr) return true;
        const char *slope = refinement + sizeof(RefinementHead), *arrays = slope + sizeof(double);
        return is_finite(refinement_head.step_size) && is_finite(refinement_head.center) &&
               all_finite(slope, false, 1) &&
               all_finite(arrays, single, int64_t(functions_bytes()) / (single ? 4 : 8));
    }

    size_t made_bytes() const {
        const size_t more =
            refinement == nullptr ? 0 : sizeof(RefinementHead) + layers.bytes(single);
        return sizeof(Head) + set_bytes() + more;
    }
};

// Two sets of the values, and the share of the second.
struct Between {
    const char *low, *high;
    double share;
};

// Writes the block of one network.
struct Writer {
    const FamilyBlock &family;
    char *made;

    void put(size_t at, double value) const {
        const float rounded = float(value);
        if (family.single) {
            __builtin_memcpy(made + at, &rounded, sizeof(rounded));
        } else {
            __builtin_memcpy(made + at, &value, sizeof(value));
        }
    }
    void put(size_t array, int64_t index, double value) const {
        put(array + size_t(index) * (family.single ? 4 : 8), value);
    }
    static double at(const Between &sets, size_t array, int64_t index, bool single) {
        const double low = value_at(sets.low + array, single, index);
        return low + sets.share * (value_at(sets.high + array, single, index) - low);
    }

    void write_stage(const Between &sets, size_t from, size_t to) const {
        const Shape &shape = family.shape;
        const bool single = family.single;
        const StagePlace place = place_of(shape, from, single);
        const double step_size = at(sets, from, 0, false);
        __builtin_memcpy(made + to + from, &step_size, sizeof(step_size));
        for (int filter = 0; filter < shape.filters(); filter++) {
            const int64_t start = int64_t(filter) * shape.pixels();
            double norm = 0;
            for (int64_t i = start; i < start + shape.pixels(); i++) {
                const double value = at(sets, place.filters, i, single);
                norm += value * value;
            }
            norm = __builtin_sqrt(norm);
            for (int64_t i = start; i < start + shape.pixels(); i++) {
                const double value = at(sets, place.filters, i, single);
                put(to + place.filters, i, norm > 0 ? value / norm : value);
            }
        }
        for (int64_t i = 0; i < shape.group; i++) {
            put(to + place.weights, i, at(sets, place.weights, i, single));
        }
        const int64_t coefficients = int64_t(shape.channels) * shape.filters() * shape.rbf_count;
        for (int64_t i = 0; i < coefficients; i++) {
            put(to + place.coefficients, i, at(sets, place.coefficients, i, single));
        }
    }

    void write_refinement(double sigma, size_t to) const {
        const bool single = family.single;
        const double reference = family.head.sigma, place = logarithm(sigma / reference);
        const char *from = family.refinement + sizeof(RefinementHead);
        RefinementHead head = family.refinement_head;
        head.step_size += place * value_at(from, false, 0);
        head.center *= reference / sigma;
        __builtin_memcpy(made + to, &head, sizeof(head));
        to += sizeof(head);
        from += sizeof(double);
        const double image = sigma / reference / (2 * (sigma + kImageOffset));
        const double change = reference / 2;
        for (int number = 0; number < family.layers.count; number++) {
            const LayerSpec &layer = family.layers.specs[number];
            const bool last = number + 1 == family.layers.count;
            const double factor = number == 0 ? image : last ? change : 1;
            for (int64_t i = 0; i < layer.weight_count(); i++) {
                put(to, i, value_at(from, single, i) * factor);
            }
            from += after(0, layer.weight_count(), single);
            to = after(to, layer.weight_count(), single);
            const char *slopes = from + after(0, layer.bias_count(), single);
            for (int64_t i = 0; i < layer.bias_count(); i++) {
                double bias = value_at(from, single, i);
                if (layer.varies()) bias += place * value_at(slopes, single, i);
                put(to, i, last ? bias * change : bias);
            }
            from = slopes + (layer.varies() ? after(0, layer.bias_count(), single) : 0);
            to = after(to, layer.bias_count(), single);
        }
    }

    void write(double asked) const {
        const uint32_t last = family.head.sets - 1;
        const double low = family.sigma(0), high = family.sigma(last);
        const double sigma = asked < low ? low : asked > high ? high : asked;
        uint32_t set = 0;
        while (set + 1 < last && family.sigma(set + 1) <= sigma) set++;
        const double share = logarithm(sigma / family.sigma(set)) /
                             logarithm(family.sigma(set + 1) / family.sigma(set));
        const char *below = family.stages + set * family.set_bytes();
        const Between sets = {below, below + family.set_bytes(), share};
        Head head = family.head;
        head.sets = 1;
        head.bytes = family.made_bytes();
        __builtin_memset(made, 0, family.made_bytes());
        __builtin_memcpy(made, &head, sizeof(head));
        const size_t stage = place_of(family.shape, 0, family.single).end;
        for (int number = 0; number < family.shape.stages; number++) {
            write_stage(sets, size_t(number) * stage, sizeof(Head));
        }
        if (family.refinement != nullptr) {
            write_refinement(sigma, sizeof(Head) + family.set_bytes());
        }
    }
};

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_family_at(const void *block, size_t bytes, double sigma, void *made,
                             size_t *size) {
    if (size == nullptr || !(sigma > 0) || !is_finite(sigma)) return NLNET_BAD_ARGUMENT;
    FamilyBlock family;
    const nlnet_status status = family.read(block, bytes);
    if (status != NLNET_OK) return status;
    if (made != nullptr && *size < family.made_bytes()) return NLNET_NO_MEMORY;
    *size = family.made_bytes();
    if (made != nullptr) Writer{family, static_cast<char *>(made)}.write(sigma);
    return NLNET_OK;
}
