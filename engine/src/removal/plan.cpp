#include "plan.h"

#include "../network.h"

namespace nlnet {
namespace {

constexpr double kSure = 0.9;
constexpr int64_t kMostCells = 4096;  // of a side of a map
constexpr int64_t kMostSide = INT32_MAX;
constexpr int64_t kLeastSide = 16;  // images are halved as long as their shorter side keeps that

const float *strengths_of(const nlnet_noise &noise, int plane, int scale) {
    return noise.strengths + (plane * NLNET_SCALES + scale) * noise.rows * noise.columns;
}

bool is_share(double value, double most) {
    return value >= 0 && value <= most;
}

bool strengths_sound(const nlnet_noise &noise) {
    if (noise.strengths == nullptr || noise.rows < 1 || noise.rows > kMostCells ||
        noise.columns < 1 || noise.columns > kMostCells || !is_share(noise.certainty, 1)) {
        return false;
    }
    const int64_t count = 2 * NLNET_SCALES * noise.rows * noise.columns;
    for (int64_t i = 0; i < count; i++) {
        // So small that twice its square is finite.
        if (!(noise.strengths[i] >= 0 && noise.strengths[i] < 1e18f)) return false;
    }
    return true;
}

bool place_sound(const nlnet_removal_task &task) {
    if (task.place == nullptr) return true;
    const nlnet_place &place = *task.place;
    return task.noise.kind == NLNET_CAMERA && place.scale >= 0 && place.scale < NLNET_SCALES &&
           place.height <= kMostSide && place.width <= kMostSide && place.top >= 0 &&
           place.left >= 0 && place.top <= place.height - task.height &&
           place.left <= place.width - task.width &&
           (place.change == nullptr || (task.height >= 2 && task.width >= 2));
}

int scales_of(const nlnet_removal_task &task) {
    if (task.noise.kind != NLNET_CAMERA || task.place != nullptr) return 1;
    int wanted = 1;
    for (int scale = 1; scale < NLNET_SCALES; scale++) {
        for (int plane = 0; plane < (task.channels == 1 ? 1 : 2); plane++) {
            const float *strengths = strengths_of(task.noise, plane, scale);
            for (int64_t i = 0; i < task.noise.rows * task.noise.columns; i++) {
                if (strengths[i] > 0) wanted = scale + 1;
            }
        }
    }
    int count = 1;
    for (int64_t side = smaller_of(task.height, task.width) / 2; count < wanted; side /= 2) {
        if (side < kLeastSide) break;
        count++;
    }
    return count;
}

}  // namespace

bool is_sound(const nlnet_noise &noise, int channels) {
    switch (noise.kind) {
        case NLNET_WHITE: return noise.sigma > 0 && is_finite(noise.sigma);
        case NLNET_CAMERA: return strengths_sound(noise);
        case NLNET_DEPENDENT: break;
        default: return false;
    }
    if (noise.levels == nullptr || (noise.level_count != 1 && noise.level_count != channels)) {
        return false;
    }
    for (int i = 0; i < noise.level_count; i++) {
        if (!is_sound(noise.levels[i])) return false;
    }
    return true;
}

bool is_sound(const nlnet_removal_task *task) {
    return task != nullptr && (task->channels == 1 || task->channels == 3) && task->height > 0 &&
           task->height <= kMostSide && task->width > 0 && task->width <= kMostSide &&
           is_sound(task->noise, task->channels) && is_share(task->luma, 2) &&
           is_share(task->chroma, 2) && task->span > 0 && is_finite(task->span) &&
           is_finite(task->black) && task->low == task->low && task->high == task->high &&
           place_sound(*task);
}

Shares used_shares(const nlnet_noise &noise, double luma, double chroma) {
    // What may be texture is removed by the share that is probably noise: the least expected error.
    const bool doubtful = noise.kind == NLNET_CAMERA && noise.certainty < kSure;
    const double sure = doubtful ? noise.certainty / kSure : 1;
    return {(luma < 1 ? luma : 1) * sure, (chroma < 1 ? chroma : 1) * sure};
}

RemovalPlan::RemovalPlan(const nlnet_removal_task &task) : scales(scales_of(task)) {
    coarse = task.place != nullptr && task.place->scale > 0;
    for (int number = 0; number < scales; number++) {
        plan_scale(task, number, task.height >> number, task.width >> number);
    }
}

void RemovalPlan::plan_scale(const nlnet_removal_task &task, int number, int64_t height,
                             int64_t width) {
    const nlnet_noise &noise = task.noise;
    const double luma = task.luma > 1 ? task.luma : 1, chroma = task.chroma > 1 ? task.chroma : 1;
    const int planes = task.channels == 1 ? 1 : 2;
    ScalePlan &plan = all[number];
    plan = {height, width, 0, false, {}, {height, width, 0, 0, width}};
    if (noise.kind != NLNET_CAMERA) {
        const double sigma = noise.kind == NLNET_WHITE ? noise.sigma : 1;
        plan.sigma = sigma * luma;
        plan.evened = planes == 2 && luma != chroma;
        constant[0] = float(sigma * luma);
        constant[1] = float(sigma * chroma);
        plan.strengths = {{&constant[0], &constant[1]}, {1, 1}, planes, 1, 1};
    } else {
        const int scale = number + (task.place == nullptr ? 0 : task.place->scale);
        plan.evened = true;
        plan.strengths = {{strengths_of(noise, 0, scale), strengths_of(noise, 1, scale)},
                          {float(luma), float(chroma)},
                          planes,
                          noise.rows,
                          noise.columns};
        if (task.place != nullptr) {
            const nlnet_place &place = *task.place;
            plan.region = {place.height, place.width, place.top, place.left, width};
        }
    }
    if (plan.evened) plan.sigma = plan.strengths.reference();
}

}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_removal_sigmas(const nlnet_removal_task *task, int32_t *scales,
                                  double sigmas[NLNET_SCALES]) {
    if (!is_sound(task) || scales == nullptr || sigmas == nullptr) return NLNET_BAD_ARGUMENT;
    const RemovalPlan plan(*task);
    *scales = plan.scales;
    for (int number = 0; number < NLNET_SCALES; number++) {
        sigmas[number] = number < plan.scales ? plan.all[number].sigma * 255 / task->span : 0;
    }
    return NLNET_OK;
}

double nlnet_sure(void) {
    return kSure;
}

nlnet_status nlnet_shares(const nlnet_noise *noise, const double strength[2], double shares[2]) {
    if (noise == nullptr || strength == nullptr || shares == nullptr || !is_share(strength[0], 2) ||
        !is_share(strength[1], 2)) {
        return NLNET_BAD_ARGUMENT;
    }
    const Shares used = used_shares(*noise, strength[0], strength[1]);
    shares[0] = used.luma;
    shares[1] = used.chroma;
    return NLNET_OK;
}
