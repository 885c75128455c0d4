// What removal does with an image: at how many scales, and with noise of which strength at each.
#pragma once

#include "evening.h"
#include "stabiliser.h"

namespace nlnet {

bool is_sound(const nlnet_noise &noise, int channels);
bool is_sound(const nlnet_removal_task *task);

// The shares of what networks remove that are taken from the image.
struct Shares {
    double luma, chroma;
};
Shares used_shares(const nlnet_noise &noise, double luma, double chroma);

struct ScalePlan {
    int64_t height, width;
    double sigma;  // of the noise that the network sees, in units of the image; 0: no noise
    bool evened;   // its strength varies, or is another in luma than in chroma
    Strengths strengths;
    Region region;
};

struct RemovalPlan {
    explicit RemovalPlan(const nlnet_removal_task &task);

    int scales;  // at which noise is removed; a part of an image has one
    ScalePlan all[NLNET_SCALES];
    bool coarse;        // a part at a smaller scale than the full size
    float constant[2];  // strengths of noise that is the same everywhere

    // The plan points to itself.
    RemovalPlan(const RemovalPlan &) = delete;
    RemovalPlan &operator=(const RemovalPlan &) = delete;

  private:
    void plan_scale(const nlnet_removal_task &task, int number, int64_t height, int64_t width);
};

}  // namespace nlnet
