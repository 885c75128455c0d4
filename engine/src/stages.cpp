// The loops of a stage, for the instruction set that is compiled for: a table of functions.
#include "set_kernels.h"
#include "stages/color.h"
#include "stages/fold.h"
#include "stages/tile.h"
#include "stages/update.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

// Call a function with the sizes that the shape asks for: compiled in, or any.
template <typename Call>
static NLNET_INLINE auto with_sizes(const Shape &shape, const Call &call) {
    if (shape.group == 8 && shape.patch == 5) return call(Sizes<5, 8>(shape));
    if (shape.group == 8 && shape.patch == 7) return call(Sizes<7, 8>(shape));
    return call(Sizes<0, 0>(shape));
}

template <template <typename, typename> class Arrays, typename T>
static size_t scratch_for(const Shape &shape, int tile_rows) {
    return with_sizes(shape, [&](auto sizes) NLNET_BODY {
        Scratch<T> counted{nullptr, 0};
        Arrays<T, decltype(sizes)>(shape, tile_rows, counted);
        return counted.used;
    });
}

template <typename T>
static void spread_any(const Shape &shape, const Stage<T> &stage, int channel,
                       const StageTile<T> &tile, void *scratch) {
    with_sizes(shape, [&](const auto &sizes)
                          NLNET_BODY { spread(sizes, shape, stage, channel, tile, scratch); });
}

template <typename T>
static void differentiate_any(const Shape &shape, const Stage<T> &stage, int channel,
                              const StageTile<T> &tile, const Rows<const T> &cotangent,
                              const StageSums<T> &sums, void *scratch) {
    with_sizes(shape, [&](const auto &sizes) NLNET_BODY {
        differentiate(sizes, shape, stage, channel, tile, cotangent, sums, scratch);
    });
}

template <typename T>
constexpr StageKernels<T> stage_kernels(void (*convolve)(const ConvolvedRow<T> &)) {
    return {scratch_for<SpreadArrays, T>,
            spread_any<T>,
            scratch_for<DifferentiateArrays, T>,
            differentiate_any<T>,
            fold<T>,
            descend<T>,
            project<T>,
            project_backward<T>,
            from_working<T>,
            step_gradient<T>,
            convolve};
}

}  // namespace

void convolve_float(const ConvolvedRow<float> &row);
void convolve_double(const ConvolvedRow<double> &row);

extern const StageKernels<float> stage_float = stage_kernels<float>(convolve_float);
extern const StageKernels<double> stage_double = stage_kernels<double>(convolve_double);

}  // namespace NLNET_SET
}  // namespace nlnet
