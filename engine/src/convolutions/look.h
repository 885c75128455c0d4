// One tile on its way through all layers of an eye.
#pragma once

#include "eye.h"
#include "layer_schedule.h"

namespace nlnet {

struct LookMemory;

// How tiles of one size are looked at.
class Look {
  public:
    Look() = default;
    Look(const nlnet_eye *eye, int channels, int64_t height, int64_t width);

    // Bytes of scratch memory for one tile.
    size_t scratch() const;
    // Look at a tile, (channels, height, width), and give its maps.
    void look(const float *tile, float *maps, void *scratch) const;

  private:
    float *working_row(const LookMemory &memory, int plane, int64_t y) const;
    void convert_row(const LookMemory &memory, const float *tile, int64_t y) const;
    void feed(const LookMemory &memory, const float *tile, int64_t first, int64_t last) const;
    void write(float *maps, int64_t y, const float *result) const;

    const nlnet_eye *eye_;
    int channels_;
    int64_t height_, width_;
    LayerSchedule layers_;  // of a tile that nobody has looked at yet
};

}  // namespace nlnet
