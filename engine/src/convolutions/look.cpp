// An eye looks at a batch of tiles: one task per tile, which passes through all layers row by row.
#include "../job.h"
#include "eye.h"
#include "layer_rings.h"

namespace nlnet {
namespace {

constexpr int64_t kMostTile = 1024;                     // pixels of a side
constexpr int kSeenRows = 5;                            // of the image, for a row of features
constexpr int kFedRows = 2 * LayerSchedule::kTaskRows;  // of the image at a time

// What a thread works in.
struct LookMemory {
    LayerSchedule *schedule;
    LayerRings<float> rings;
    float *working;  // (3, kSeenRows, width): rows of opponent planes, a ring buffer
    float *line;     // for the kernel
    float *result;   // a row of all maps

    LookMemory(const nlnet_eye &eye, const LayerSchedule &fresh, int64_t width, Memory &memory) {
        schedule = memory.take<LayerSchedule>(1);
        if (schedule != nullptr) *schedule = fresh;
        rings.make(eye.specs, eye.layers, fresh, width / 2, memory);
        working = memory.take<float>(3 * kSeenRows, width + kRoom);
        line = memory.take<float>(width + kSeenRows - 1);
        result = memory.take<float>(width / eye.specs.unit(), eye.outputs);
    }
};

struct Looking : nlnet_job {
    const nlnet_eye *eye;
    nlnet_look_task task;
    LayerSchedule layers;  // of a tile that nobody has looked at yet

    float *working_row(const LookMemory &memory, int plane, int64_t y) const {
        return memory.working + (plane * kSeenRows + y % kSeenRows) * (task.width + kRoom);
    }

    void convert_row(const LookMemory &memory, int64_t image, int64_t y) const {
        const float *pixels[3] = {};
        float *planes[3] = {};
        for (int channel = 0; channel < task.channels; channel++) {
            const int64_t row = (image * task.channels + channel) * task.height + y;
            pixels[channel] = task.tiles + row * task.width;
            planes[channel] = working_row(memory, channel, y);
        }
        eye->kernels->pixel_float->to_working(task.channels, pixels, 1, planes, task.width);
    }

    // Rows of features, from the image's row `first` up to, not including, `last`.
    void feed(const LookMemory &memory, int64_t image, int64_t first, int64_t last) const {
        constexpr int around = kSeenRows / 2;
        for (int64_t y = first; y < last; y++) {
            const int64_t converted = y == 0 ? 0 : y + around;
            for (int64_t there = converted; there <= y + around && there < task.height; there++) {
                convert_row(memory, image, there);
            }
            FeatureRow row = {};
            row.planes = task.channels;
            for (int plane = 0; plane < task.channels; plane++) {
                for (int i = 0; i < kSeenRows; i++) {
                    const int64_t there = larger_of(y + i - around, 0);
                    row.rows[plane][i] =
                        working_row(memory, plane, smaller_of(there, task.height - 1));
                }
            }
            row.width = task.width;
            row.line = memory.line;
            row.target = memory.rings.input(y / 2) + y % 2 * 2;
            eye->kernels->eye->features(row);
        }
    }

    // Row y of all maps, from pixels that hold them next to each other.
    void write(int64_t image, int64_t y, const float *result) const {
        const int64_t unit = eye->specs.unit(), width = task.width / unit;
        for (int map = 0; map < eye->outputs; map++) {
            const int64_t row = (image * eye->outputs + map) * (task.height / unit) + y;
            for (int64_t x = 0; x < width; x++) {
                task.maps[row * width + x] = result[x * eye->outputs + map];
            }
        }
    }

    void look(int64_t image, void *scratch) const {
        Memory pieces(scratch);
        const LookMemory memory(*eye, layers, task.width, pieces);
        LayerSchedule &schedule = *memory.schedule;
        int64_t fed = 0;
        while (!schedule.done()) {
            LayerTask rows;
            if (!schedule.next(&rows)) {
                const int64_t last =
                    smaller_of(smaller_of(fed + kFedRows, task.height), schedule.room());
                feed(memory, image, fed, last);
                schedule.feed(fed = last);
                continue;
            }
            for (int64_t y = rows.first; y < rows.last; y++) {
                memory.rings.convolve(*eye->kernels->stage_float, rows.layer, y, memory.result);
                if (memory.rings.is_last(rows.layer)) write(image, y, memory.result);
            }
            schedule.end(rows);
        }
    }

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        static_cast<const Looking *>(job)->look(step.image, scratch);
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
    const LayerSchedule layers(eye->specs, task.height, kFedRows);
    Memory counted(nullptr);
    LookMemory(*eye, layers, task.width, counted);
    Looking *job = memory.take<Looking>(1);
    make_job(job, plan, LayerSchedule(), task.threads, counted.size(), memory);
    if (job == nullptr) return nullptr;
    job->run = Looking::run_task;
    job->eye = eye;
    job->task = task;
    job->layers = layers;
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
