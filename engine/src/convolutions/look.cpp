// An eye looks at a batch of tiles: one task per tile, which passes through all layers row by row.
#include "look.h"

#include "../job.h"
#include "layer_rings.h"

namespace nlnet {
namespace {

constexpr int64_t kMostTile = 1024;                     // pixels of a side
constexpr int kSeenRows = 5;                            // of the image, for a row of features
constexpr int kFedRows = 2 * LayerSchedule::kTaskRows;  // of the image at a time

}  // namespace

// What a thread works in.
struct LookMemory {
    LayerSchedule *schedule;
    LayerRings<float> rings;
    float *working;  // (3, kSeenRows, width): rows of opponent planes, a ring buffer
    float *line;     // for the kernel
    float *result;   // a row of all maps

    LookMemory(const nlnet_eye &eye, const LayerSchedule &fresh, int64_t width, Memory &memory);
};

LookMemory::LookMemory(const nlnet_eye &eye, const LayerSchedule &fresh, int64_t width,
                       Memory &memory) {
    schedule = memory.take<LayerSchedule>(1);
    if (schedule != nullptr) *schedule = fresh;
    rings.make(eye.specs, eye.layers, fresh, width / 2, memory);
    working = memory.take<float>(3 * kSeenRows, width + kRoom);
    line = memory.take<float>(width + kSeenRows - 1);
    result = memory.take<float>(width / eye.specs.unit(), eye.outputs);
}

Look::Look(const nlnet_eye *eye, int channels, int64_t height, int64_t width)
    : eye_(eye),
      channels_(channels),
      height_(height),
      width_(width),
      layers_(eye->specs, height, kFedRows) {}

size_t Look::scratch() const {
    Memory counted(nullptr);
    LookMemory(*eye_, layers_, width_, counted);
    return counted.size();
}

float *Look::working_row(const LookMemory &memory, int plane, int64_t y) const {
    return memory.working + (plane * kSeenRows + y % kSeenRows) * (width_ + kRoom);
}

void Look::convert_row(const LookMemory &memory, const float *tile, int64_t y) const {
    const float *pixels[3] = {};
    float *planes[3] = {};
    for (int channel = 0; channel < channels_; channel++) {
        pixels[channel] = tile + (channel * height_ + y) * width_;
        planes[channel] = working_row(memory, channel, y);
    }
    eye_->kernels->pixel_float->to_working(channels_, pixels, 1, planes, width_);
}

// Rows of features, from the image's row `first` up to, not including, `last`.
void Look::feed(const LookMemory &memory, const float *tile, int64_t first, int64_t last) const {
    constexpr int around = kSeenRows / 2;
    for (int64_t y = first; y < last; y++) {
        const int64_t converted = y == 0 ? 0 : y + around;
        for (int64_t there = converted; there <= y + around && there < height_; there++) {
            convert_row(memory, tile, there);
        }
        FeatureRow row = {};
        row.planes = channels_;
        for (int plane = 0; plane < channels_; plane++) {
            for (int i = 0; i < kSeenRows; i++) {
                const int64_t there = larger_of(y + i - around, 0);
                row.rows[plane][i] = working_row(memory, plane, smaller_of(there, height_ - 1));
            }
        }
        row.width = width_;
        row.line = memory.line;
        row.target = memory.rings.input(y / 2) + y % 2 * 2;
        eye_->kernels->eye->features(row);
    }
}

// Row y of all maps, from pixels that hold them next to each other.
void Look::write(float *maps, int64_t y, const float *result) const {
    const int64_t unit = eye_->specs.unit(), width = width_ / unit;
    for (int map = 0; map < eye_->outputs; map++) {
        float *row = maps + (map * (height_ / unit) + y) * width;
        for (int64_t x = 0; x < width; x++) row[x] = result[x * eye_->outputs + map];
    }
}

void Look::look(const float *tile, float *maps, void *scratch) const {
    Memory pieces(scratch);
    const LookMemory memory(*eye_, layers_, width_, pieces);
    LayerSchedule &schedule = *memory.schedule;
    int64_t fed = 0;
    while (!schedule.done()) {
        LayerTask rows;
        if (!schedule.next(&rows)) {
            const int64_t last = smaller_of(smaller_of(fed + kFedRows, height_), schedule.room());
            feed(memory, tile, fed, last);
            schedule.feed(fed = last);
            continue;
        }
        for (int64_t y = rows.first; y < rows.last; y++) {
            memory.rings.convolve(*eye_->kernels->stage_float, rows.layer, y, memory.result);
            if (memory.rings.is_last(rows.layer)) write(maps, y, memory.result);
        }
        schedule.end(rows);
    }
}

namespace {

struct Looking : nlnet_job {
    Look look;
    nlnet_look_task task;
    int64_t tile_size, maps_size;

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        const Looking &own = *static_cast<const Looking *>(job);
        own.look.look(own.task.tiles + step.image * own.tile_size,
                      own.task.maps + step.image * own.maps_size, scratch);
        return true;
    }
};

nlnet_job *make(const nlnet_eye *eye, const nlnet_look_task &task, Memory &memory) {
    // To the schedule, looking at a tile is one task of matching.
    Plan plan = {};
    plan.batch = task.count;
    plan.height = plan.tile_rows = int(task.height);
    plan.width = plan.match_columns = int(task.width);
    plan.matches = true;
    plan.matching_share = 1;
    plan.sweeps = int(smaller_of(task.count, task.threads));
    const Look look(eye, task.channels, task.height, task.width);
    Looking *job = memory.take<Looking>(1);
    make_job(job, plan, LayerSchedule(), task.threads, look.scratch(), memory);
    if (job == nullptr) return nullptr;
    start_job(job);
    job->run = Looking::run_task;
    job->look = look;
    job->task = task;
    job->tile_size = task.channels * task.height * task.width;
    const int64_t unit = eye->specs.unit();
    job->maps_size = eye->outputs * (task.height / unit) * (task.width / unit);
    return job;
}

bool fits(const nlnet_eye &eye, int64_t side) {
    return side >= 1 && side <= kMostTile && side % eye.specs.unit() == 0;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_look(const nlnet_eye *eye, const nlnet_look_task *task, void *memory,
                        size_t *size, nlnet_job **job) {
    if (eye == nullptr || task == nullptr || task->count < 1 || !fits(*eye, task->height) ||
        !fits(*eye, task->width) || (task->channels != 1 && task->channels != 3) ||
        task->threads < 1 || task->threads > kMostThreads ||
        (memory != nullptr && (!task->tiles || !task->maps))) {
        return NLNET_BAD_ARGUMENT;
    }
    return make_in(memory, size, job, [&](Memory &pieces) { return make(eye, *task, pieces); });
}
