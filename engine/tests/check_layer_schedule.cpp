// The schedule of layers alone, in any order of tasks: all that a task reads is there from
// its beginning to its end, no ring buffer is overwritten too early, and nothing gets stuck.
#include "rings.h"

using namespace nlnet;

namespace {

constexpr int kMostRunning = 6;

struct Simulation {
    int64_t height, portion;  // of the image, and what comes of it at once
    LayerSchedule schedule;
    check::LayerStore store;
    LayerTask running[kMostRunning];
    int running_count;
    int64_t fed, feeding;  // rows of the image that are there, and that will be
    bool ok;

    bool begin() {
        LayerTask &task = running[running_count];
        if (!schedule.next(&task)) return false;
        const LayerProgress &layer = schedule.layer(task.layer);
        ok = ok && task.first == layer.done && task.first < task.last &&
             task.last <= layer.height && task.last - task.first <= LayerSchedule::kTaskRows;
        store.write(schedule, task, false);
        ok = ok && store.has_all(schedule, task);
        running_count++;
        return true;
    }
    void end(int number) {
        const LayerTask task = running[number];
        running[number] = running[--running_count];
        ok = ok && store.has_all(schedule, task);
        store.write(schedule, task, true);
        schedule.end(task);
    }
    bool begin_feeding(check::Random *random) {
        int64_t most = fed + portion < height ? fed + portion : height;
        if (schedule.room() < most) most = schedule.room();
        if (feeding > fed || most <= fed) return false;
        feeding = random->between(fed + 1, most);
        store.feed(schedule, fed, feeding, false);
        return true;
    }
    void end_feeding() {
        ok = ok && store.has_mirrored(schedule, fed, feeding);
        store.feed(schedule, fed, feeding, true);
        schedule.feed(feeding);
        fed = feeding;
    }
    // Begin or end something; false if there is nothing.
    bool step(int threads, check::Random *random) {
        if (random->below(2)) {
            if (random->below(2) && begin_feeding(random)) return true;
            if (running_count < threads && begin()) return true;
        }
        const int under_way = running_count + (feeding > fed);
        if (under_way == 0) return begin() || begin_feeding(random);
        const int number = int(random->below(uint32_t(under_way)));
        if (number < running_count) {
            end(number);
        } else {
            end_feeding();
        }
        return true;
    }
};

// A refinement's, or an eye's.
LayerSpecs random_layers(check::Random *random) {
    const LevelSizes sizes = check::random_sizes(random->below(4) ? 3 : kMostBlocks, random);
    return random->below(3) ? refinement_layers(sizes, random->below(2) ? 3 : 1)
                            : eye_layers(sizes, 8);
}

void simulate(check::Random *random, check::Report &report) {
    static Simulation now;  // big, and used again and again
    now.height = 1 + int64_t(random->below(random->below(2) ? 600 : 40));
    now.portion = 1 + int64_t(random->below(random->below(2) ? 100 : 4));
    now.schedule = LayerSchedule(random_layers(random), now.height, now.portion);
    now.store.make(now.schedule, now.height);
    now.running_count = 0;
    now.fed = now.feeding = 0;
    now.ok = true;
    const int threads = 1 + int(random->below(kMostRunning));
    double share = 0;
    bool stuck = false;
    while (now.ok && !stuck && !now.schedule.done()) {
        stuck = !now.step(threads, random);
        now.ok = now.ok && now.schedule.share_done() >= share && now.schedule.share_done() <= 1;
        share = now.schedule.share_done();
    }
    now.ok = now.ok && now.fed <= now.height;
    report.expect(now.ok && !stuck, "height %d, %d layers, %d threads: %s", int(now.height),
                  now.schedule.count(), threads, stuck ? "stuck" : "a row was not there");
    now.store.release(now.schedule);
}

}  // namespace

void check::check_layer_schedule(const Kernels &, int rounds, Random random, Report &report) {
    for (int round = 0; round < 4 * rounds; round++) simulate(&random, report);
}
