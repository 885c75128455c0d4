// The loops of a stage, for the instruction set that is compiled for: a table of functions.
#include "set_kernels.h"
#include "stages/color.h"
#include "stages/convolve.h"
#include "stages/fold.h"
#include "stages/tile.h"
#include "stages/update.h"

namespace nlnet {
namespace NLNET_SET {
namespace {

typedef Sizes<5, 8> Small;
typedef Sizes<7, 8> Medium;
typedef Sizes<0, 0> Any;

// Call `function<T, S>` for the sizes S that the shape asks for.
#define NLNET_BY_SIZES(shape, call)                                        \
    do {                                                                   \
        if ((shape).group == 8 && (shape).patch == 5) return call(Small);  \
        if ((shape).group == 8 && (shape).patch == 7) return call(Medium); \
        return call(Any);                                                  \
    } while (0)

template <typename T>
struct BySizes {
    static size_t spread_scratch(const Shape &shape, int tile_rows) {
#define NLNET_CALL(S) scratch_bytes<SpreadMemory, T, S>(shape, tile_rows)
        NLNET_BY_SIZES(shape, NLNET_CALL);
#undef NLNET_CALL
    }
    static void spread(const Shape &shape, const Stage<T> &stage, int channel,
                       const StageTile<T> &tile, void *scratch) {
#define NLNET_CALL(S) NLNET_SET::spread<T, S>(shape, stage, channel, tile, scratch)
        NLNET_BY_SIZES(shape, NLNET_CALL);
#undef NLNET_CALL
    }
    static size_t differentiate_scratch(const Shape &shape, int tile_rows) {
#define NLNET_CALL(S) scratch_bytes<DifferentiateMemory, T, S>(shape, tile_rows)
        NLNET_BY_SIZES(shape, NLNET_CALL);
#undef NLNET_CALL
    }
    static void differentiate(const Shape &shape, const Stage<T> &stage, int channel,
                              const StageTile<T> &tile, const Rows<const T> &cotangent,
                              const StageSums<T> &sums, void *scratch) {
#define NLNET_CALL(S) \
    NLNET_SET::differentiate<T, S>(shape, stage, channel, tile, cotangent, sums, scratch)
        NLNET_BY_SIZES(shape, NLNET_CALL);
#undef NLNET_CALL
    }
};

template <typename T>
constexpr StageKernels<T> stage_kernels() {
    return {BySizes<T>::spread_scratch,
            BySizes<T>::spread,
            BySizes<T>::differentiate_scratch,
            BySizes<T>::differentiate,
            fold<T>,
            descend<T>,
            project<T>,
            project_backward<T>,
            from_working<T>,
            step_gradient<T>,
            convolve<T>};
}

}  // namespace

extern const StageKernels<float> stage_float = stage_kernels<float>();
extern const StageKernels<double> stage_double = stage_kernels<double>();

}  // namespace NLNET_SET
}  // namespace nlnet
