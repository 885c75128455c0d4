// The schedule alone, in any order of tasks: every row of what a task reads is there from its
// beginning to its end, no ring buffer is overwritten too early, and nothing gets stuck.
#include "../src/schedule.h"

#include "rings.h"

using check::Ring;
using namespace nlnet;

namespace {

constexpr int kMostRunning = 6;

// What one sweep holds.
struct Store {
    Ring read, groups, between[8], parts[8];
};

struct Simulation {
    Plan plan;
    Schedule schedule;
    Store *stores;
    check::LayerStore refined;  // if there is a refinement, which follows the last pass
    Task running[kMostRunning];
    int running_count;
    bool ok;

    int64_t bottom(int64_t row) const {
        const int64_t end = (row + 1) * plan.tile_rows;
        return end < plan.height ? end : plan.height;
    }
    int64_t below(int64_t row) const {
        const int64_t end = bottom(row) + plan.margin;
        return end < plan.height ? end : plan.height;
    }
    bool feeds(const Task &task) const {
        return task.pass + 1 == plan.passes && schedule.refinement().exists();
    }
    bool has_input(const Task &task, int64_t first, int64_t last) const {
        const Store &store = stores[task.sweep];
        if (task.pass > 0) return store.between[task.pass - 1].has(task.image, first, last);
        return !plan.reads || store.read.has(task.image, first, last);
    }
    bool has_all(const Task &task) const {
        const Store &store = stores[task.sweep];
        const int64_t top = task.row * plan.tile_rows - plan.margin;
        switch (task.step) {
            case Step::kMatch:
                return !plan.reads || store.read.has(task.image, top, below(task.row));
            case Step::kSpread:
                return has_input(task, top, below(task.row)) &&
                       (!plan.matches || store.groups.has(task.image, task.row, task.row + 1));
            case Step::kFinish:
                return has_input(task, task.first, task.last) &&
                       (!plan.all_need_read || store.read.has(task.image, task.first, task.last)) &&
                       store.parts[task.pass].has(task.image, task.first_tile, task.last_tile) &&
                       covered(task) && (!feeds(task) || has_mirrored(task));
            case Step::kRefine: return refined.has_all(schedule.refinement(), task.layer);
            default: return true;
        }
    }
    bool has_mirrored(const Task &task) const {
        return refined.has_mirrored(schedule.refinement(), task.first, task.last);
    }
    // The rows of tiles whose windows cover the finished rows are all among those named.
    bool covered(const Task &task) const {
        for (int64_t row = 0; row < plan.tile_row_count(); row++) {
            const bool covers = row * plan.tile_rows - plan.margin < task.last &&
                                bottom(row) + plan.margin > task.first;
            if (covers && (row < task.first_tile || row >= task.last_tile)) return false;
        }
        return true;
    }
    void write(const Task &task, bool there) {
        Store &store = stores[task.sweep];
        switch (task.step) {
            case Step::kRead: store.read.set(task.image, task.first, task.last, there); break;
            case Step::kMatch:
                if (plan.passes > 0 && (there || task.first == 0)) {
                    store.groups.set(task.image, task.row, task.row + 1, there);
                }
                break;
            case Step::kSpread:
                if (there || task.first == 0) {
                    store.parts[task.pass].set(task.image, task.row, task.row + 1, there);
                }
                break;
            case Step::kFinish:
                if (task.pass + 1 < plan.passes) {
                    store.between[task.pass].set(task.image, task.first, task.last, there);
                } else if (feeds(task)) {
                    refined.feed(schedule.refinement(), task.first, task.last, there);
                }
                break;
            case Step::kRefine: refined.write(schedule.refinement(), task.layer, there); break;
            default: break;
        }
    }
    void begin(const Task &task) {
        write(task, false);
        ok = ok && has_all(task);
        running[running_count++] = task;
    }
    void end(int number) {
        const Task task = running[number];
        running[number] = running[--running_count];
        ok = ok && has_all(task);
        write(task, true);
        schedule.end(task);
    }
};

Plan random_plan(check::Random *random) {
    Plan plan = {};
    plan.batch = 1 + int64_t(random->below(random->below(2) ? 4 : 1));
    plan.height = 5 + int64_t(random->below(random->below(2) ? 400 : 40));
    plan.width = 5 + int64_t(random->below(600));
    plan.tile_rows = 8 + int(random->below(65));
    if (plan.tile_rows > plan.height) plan.tile_rows = int(plan.height);
    plan.margin = 2 + int(random->below(40));
    plan.passes = int(random->below(7));
    // As jobs are: matching alone, denoising, the forward and the backward pass.
    plan.reads = plan.passes > 0 && random->below(2);
    plan.matches = plan.passes == 0 || (plan.reads && random->below(2));
    plan.all_need_read = plan.reads && plan.matches;
    plan.reduces = plan.reads && !plan.matches;
    plan.sweeps = 1 + int(random->below(3));
    if (plan.sweeps > plan.batch) plan.sweeps = int(plan.batch);
    plan.chunk = 1 + int(random->below(4));
    plan.match_columns = kMatchColumns;
    plan.matching_share = plan.passes == 0 ? 1 : 0.5;
    return plan;
}

// A refinement for about half of the plans that denoise one image.
LayerSchedule random_layers(const Plan &plan, check::Random *random) {
    if (plan.batch != 1 || !plan.all_need_read || random->below(2)) return LayerSchedule();
    const LayerSpecs specs = refinement_layers(check::random_sizes(2, random), 1);
    return LayerSchedule(specs, plan.height, plan.most_rows());
}

void simulate(check::Random *random, check::Report &report) {
    static Simulation now;  // big, and used again and again
    now.plan = random_plan(random);
    const LayerSchedule layers = random_layers(now.plan, random);
    Memory counted(nullptr);
    Schedule().make(now.plan, layers, counted);
    void *memory = malloc(counted.size() + kCacheLine);
    Memory pieces(reinterpret_cast<void *>(
        round_up(int64_t(reinterpret_cast<uintptr_t>(memory)), kCacheLine)));
    now.schedule.make(now.plan, layers, pieces);
    if (layers.exists()) now.refined.make(layers, now.plan.height);
    now.stores = static_cast<Store *>(malloc(size_t(now.plan.sweeps) * sizeof(Store)));
    for (int number = 0; number < now.plan.sweeps; number++) {
        Store &store = now.stores[number];
        store.read.make(now.plan.read_capacity());
        store.groups.make(now.plan.groups_capacity() > 0 ? now.plan.groups_capacity() : 1);
        for (int pass = 0; pass < now.plan.passes; pass++) {
            store.between[pass].make(now.plan.pass_capacity());
            store.parts[pass].make(now.plan.parts_capacity());
        }
    }
    now.running_count = 0;
    now.ok = true;
    const int threads = 1 + int(random->below(kMostRunning));
    double share = 0;
    bool stuck = false;
    while (now.ok && !now.schedule.done() && !stuck) {
        Task task;
        const bool more = now.running_count < threads && random->below(3) != 0;
        if (more && now.schedule.next(&task)) {
            now.begin(task);
        } else if (now.running_count > 0) {
            now.end(int(random->below(uint32_t(now.running_count))));
        } else {
            stuck = !now.schedule.next(&task);
            if (!stuck) now.begin(task);
        }
        const double share_now = now.schedule.share_done();
        now.ok = now.ok && share_now >= share - 1e-12 && share_now <= 1 + 1e-12;
        share = share_now;
    }
    const bool good = now.ok && !stuck;
    report.expect(
        good, "height %lld tile_rows %d margin %d passes %d reads %d matches %d layers %d: %s",
        (long long)now.plan.height, now.plan.tile_rows, now.plan.margin, now.plan.passes,
        now.plan.reads, now.plan.matches, layers.count(), stuck ? "stuck" : "a row was not there");
    if (layers.exists()) now.refined.release(layers);
    for (int number = 0; number < now.plan.sweeps; number++) {
        Store &store = now.stores[number];
        free(store.read.rows);
        free(store.groups.rows);
        for (int pass = 0; pass < now.plan.passes; pass++) {
            free(store.between[pass].rows);
            free(store.parts[pass].rows);
        }
    }
    free(now.stores);
    free(memory);
}

}  // namespace

void check::check_schedule(const Kernels &, int rounds, Random random, Report &report) {
    for (int round = 0; round < 10 * rounds; round++) simulate(&random, report);
}
