#include "schedule.h"

namespace nlnet {
namespace {

constexpr double kRefinementShare = 0.7;  // of the time, for progress

}  // namespace

void Schedule::make(const Plan &plan, const LayerSchedule &refinement, Memory &memory) {
    Sweep *sweeps = memory.take<Sweep>(plan.sweeps);
    for (int number = 0; number < plan.sweeps; number++) {
        Pass *passes = memory.take<Pass>(plan.passes);
        int64_t *ended_tiles = memory.take<int64_t>(kInFlight);
        if (ended_tiles == nullptr) continue;  // counting
        sweeps[number].passes = passes;
        sweeps[number].ended_tiles = ended_tiles;
    }
    if (sweeps == nullptr) return;
    plan_ = plan;
    refinement_ = refinement;
    sweeps_ = sweeps;
    begun_images_ = ended_images_ = 0;
    begun_reductions_ = ended_reductions_ = 0;
    for (int number = 0; number < plan.sweeps; number++) begin_image(sweeps[number]);
}

void Schedule::begin_image(Sweep &sweep) {
    sweep.image = begun_images_ < plan_.batch ? begun_images_++ : -1;
    sweep.read = plan_.reads ? 0 : plan_.height;
    sweep.reading = false;
    sweep.match_row = sweep.match_tile = 0;
    sweep.matched = plan_.matches ? 0 : plan_.tile_row_count();
    for (int slot = 0; slot < kInFlight; slot++) sweep.ended_tiles[slot] = 0;
    for (int number = 0; number < plan_.passes; number++) sweep.passes[number] = {};
}

bool Schedule::next(Task *task) {
    for (int number = 0; number < plan_.sweeps; number++) {
        if (sweeps_[number].image >= 0 && next_of(number, task)) return true;
    }
    if (plan_.reduces && ended_images_ == plan_.batch && begun_reductions_ < plan_.passes) {
        *task = {};
        task->step = Step::kReduce;
        task->pass = begun_reductions_++;
        return true;
    }
    return false;
}

bool Schedule::next_of(int number, Task *task) {
    Sweep &sweep = sweeps_[number];
    *task = {};
    task->sweep = number;
    task->image = sweep.image;
    if (refinement_.next(&task->layer)) {
        task->step = Step::kRefine;
        return true;
    }
    for (int pass = plan_.passes - 1; pass >= 0; pass--) {
        if (next_finish(sweep, task, pass) || next_spread(sweep, task, pass)) return true;
    }
    return next_match(sweep, task) || next_read(sweep, task);
}

// Rows of a pass's output that no tile will add to any more, as far as there is room for them.
bool Schedule::next_finish(Sweep &sweep, Task *task, int number) {
    Pass &pass = sweep.passes[number];
    if (pass.finishing) return false;
    int64_t last = pass.spread * plan_.tile_rows - plan_.margin;
    if (pass.spread == plan_.tile_row_count()) last = plan_.height;
    if (number + 1 < plan_.passes) {
        last = smaller_of(last, needs_from(sweep, number + 1) + plan_.pass_capacity());
    } else if (refinement_.exists()) {
        last = smaller_of(last, refinement_.room());
    }
    last = smaller_of(last, pass.finished + plan_.most_rows());
    if (last <= pass.finished) return false;
    task->step = Step::kFinish;
    task->pass = number;
    task->first = pass.finished;
    task->last = last;
    task->first_tile = larger_of(0, (pass.finished - plan_.margin) / plan_.tile_rows);
    task->last_tile = pass.spread;
    pass.finishing = true;
    return true;
}

// The next tiles of a pass's next row, if their input and their groups are there.
bool Schedule::next_spread(Sweep &sweep, Task *task, int number) {
    Pass &pass = sweep.passes[number];
    const int64_t row = pass.spread;
    if (pass.begun_chunks == plan_.chunks() || row == plan_.tile_row_count()) return false;
    if (pass.begun_chunks == 0) {
        const int64_t oldest = larger_of(0, (pass.finished - plan_.margin) / plan_.tile_rows);
        const int64_t there = number == 0 ? sweep.read : sweep.passes[number - 1].finished;
        if (row - oldest >= plan_.parts_capacity() || there < rows_needed(row) ||
            sweep.matched <= row) {
            return false;
        }
    }
    task->step = Step::kSpread;
    task->pass = number;
    task->row = row;
    task->first = pass.begun_chunks * plan_.chunk;
    task->last = smaller_of(task->first + plan_.chunk, plan_.tile_columns());
    pass.begun_chunks++;
    return true;
}

bool Schedule::next_match(Sweep &sweep, Task *task) {
    const int64_t row = sweep.match_row;
    if (!plan_.matches || row == plan_.tile_row_count()) return false;
    if (sweep.match_tile == 0) {
        if (sweep.read < rows_needed(row) || row - sweep.matched >= kInFlight) return false;
        if (plan_.passes > 0) {
            const int64_t released = sweep.passes[plan_.passes - 1].spread;
            if (row > sweep.passes[0].spread + Plan::kAhead ||
                row - released >= plan_.groups_capacity()) {
                return false;
            }
        }
    }
    task->step = Step::kMatch;
    task->row = row;
    task->first = sweep.match_tile * plan_.match_columns;
    task->last = smaller_of(task->first + plan_.match_columns, plan_.width);
    if (++sweep.match_tile == plan_.match_tiles()) {
        sweep.match_tile = 0;
        sweep.match_row++;
    }
    return true;
}

// The rows that the next row of tiles lacks, if there is room for them.
bool Schedule::next_read(Sweep &sweep, Task *task) {
    if (sweep.reading || sweep.read == plan_.height) return false;  // and so where nothing is read
    const int64_t row = plan_.matches ? sweep.match_row : sweep.passes[0].spread;
    const int64_t last = rows_needed(smaller_of(row, plan_.tile_row_count() - 1));
    if (last <= sweep.read || last - read_needs_from(sweep) > plan_.read_capacity()) return false;
    task->step = Step::kRead;
    task->first = sweep.read;
    task->last = last;
    sweep.reading = true;
    return true;
}

void Schedule::end(const Task &task) {
    if (task.step == Step::kReduce) {
        ended_reductions_++;
        return;
    }
    Sweep &sweep = sweeps_[task.sweep];
    Pass &pass = sweep.passes[task.pass];
    switch (task.step) {
        case Step::kRead:
            sweep.read = task.last;
            sweep.reading = false;
            break;
        case Step::kMatch: end_match(sweep, task); break;
        case Step::kSpread:
            if (++pass.ended_chunks == plan_.chunks()) {
                pass.begun_chunks = pass.ended_chunks = 0;
                pass.spread++;
            }
            break;
        case Step::kRefine: refinement_.end(task.layer); break;
        default:
            pass.finished = task.last;
            pass.finishing = false;
            if (task.pass + 1 == plan_.passes) refinement_.feed(task.last);
    }
    if (image_done(sweep)) {
        ended_images_++;
        begin_image(sweep);
    }
}

// Rows of tiles are complete in order, whichever of those in flight ends first.
void Schedule::end_match(Sweep &sweep, const Task &task) {
    sweep.ended_tiles[task.row % kInFlight]++;
    int64_t *ended = &sweep.ended_tiles[sweep.matched % kInFlight];
    while (*ended == plan_.match_tiles()) {
        *ended = 0;
        sweep.matched++;
        ended = &sweep.ended_tiles[sweep.matched % kInFlight];
    }
}

bool Schedule::image_done(const Sweep &sweep) const {
    if (plan_.passes == 0) return sweep.matched == plan_.tile_row_count();
    if (refinement_.exists()) return refinement_.done();
    return sweep.passes[plan_.passes - 1].finished == plan_.height;
}

bool Schedule::done() const {
    return ended_images_ == plan_.batch && (!plan_.reduces || ended_reductions_ == plan_.passes);
}

double Schedule::share_done() const {
    if (plan_.batch == 0) return double(ended_reductions_) / plan_.passes;
    double images = double(ended_images_);
    for (int number = 0; number < plan_.sweeps; number++) {
        if (sweeps_[number].image >= 0) images += image_share(sweeps_[number]);
    }
    return images / double(plan_.batch);
}

double Schedule::image_share(const Sweep &sweep) const {
    const double rows = double(plan_.tile_row_count());
    double spread = 0;
    for (int number = 0; number < plan_.passes; number++) {
        spread += double(sweep.passes[number].spread);
    }
    const double matched = double(sweep.matched) / rows * plan_.matching_share;
    if (plan_.passes == 0) return matched;
    const double stages = matched + spread / (rows * plan_.passes) * (1 - plan_.matching_share);
    if (!refinement_.exists()) return stages;
    return stages * (1 - kRefinementShare) + refinement_.share_done() * kRefinementShare;
}

int64_t Schedule::rows_needed(int64_t tile_row) const {
    return smaller_of((tile_row + 1) * plan_.tile_rows + plan_.margin, plan_.height);
}

int64_t Schedule::needs_from(const Sweep &sweep, int number) const {
    const Pass &pass = sweep.passes[number];
    const int64_t above = pass.spread * plan_.tile_rows - plan_.margin;
    return larger_of(0, smaller_of(above, pass.finished));
}

int64_t Schedule::read_needs_from(const Sweep &sweep) const {
    // None has come less far than the last.
    const int64_t first = needs_from(sweep, plan_.all_need_read ? plan_.passes - 1 : 0);
    if (!plan_.matches) return first;
    return smaller_of(first, larger_of(0, sweep.matched * plan_.tile_rows - plan_.margin));
}

}  // namespace nlnet
