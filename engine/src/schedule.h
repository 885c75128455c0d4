// Which task is ready: the order in which images pass through matching and the stages.
//
// Rows of tiles go down the image like items on a conveyor: read, matched, then through one pass
// after the other. A pass is a stage, forward or backward. It spreads a row of tiles as soon as its
// input is there around it, and finishes rows of its output as soon as all tiles that add to them
// are spread. There are no barriers. Tasks of later passes come first, so that rows that nobody
// needs any more make room in their ring buffers.
//
// Nothing here looks at pixels, and nothing is safe for threads: the job holds a lock around it.
#pragma once

#include "convolutions/layer_schedule.h"
#include "memory.h"

namespace nlnet {

enum class Step : int8_t { kRead, kMatch, kSpread, kFinish, kReduce, kRefine };

struct Task {
    Step step;
    int sweep;  // which of the images under way
    int pass;
    int64_t image;                  // of the batch
    int64_t row;                    // of tiles
    int64_t first, last;            // rows of the image, or columns of tiles
    int64_t first_tile, last_tile;  // rows of tiles whose windows a finish adds up
    LayerTask layer;
};

// What is to be done with every image, and what is held of it meanwhile.
struct Plan {
    int64_t batch, height, width;
    int tile_rows, margin;
    int passes;
    bool reads;             // rows have to be fetched before they are used
    bool all_need_read;     // every pass needs them, not only the first
    bool matches;           // the groups have to be found
    bool reduces;           // sums over all images follow, one task per pass
    int sweeps;             // images under way at once
    int chunk;              // tiles of one spreading task
    int match_columns;      // of one matching task
    double matching_share;  // of the time, for progress

    int64_t tile_row_count() const { return (height + tile_rows - 1) / tile_rows; }
    int64_t tile_columns() const { return (width + kTileColumns - 1) / kTileColumns; }
    int64_t chunks() const { return (tile_columns() + chunk - 1) / chunk; }
    int64_t match_tiles() const { return (width + match_columns - 1) / match_columns; }

    // Rows of tiles that a pass must be ahead of the next one.
    int64_t lead() const { return (2 * margin + tile_rows - 1) / tile_rows; }
    // Rows of tiles whose windows, or whose groups, a ring buffer holds.
    int64_t parts_capacity() const {
        // In a narrow image few tiles are ready at once: the next row need not wait for a finish.
        const int spare = tile_columns() <= kNarrow ? 1 : 0;
        return smaller_of(lead() + 1 + spare, tile_row_count());
    }
    int64_t groups_capacity() const {
        return smaller_of(lead() * (passes - 1) + kAhead + 2, tile_row_count());
    }
    // Rows that a ring buffer holds of what is read, or of the planes between two passes.
    int64_t read_capacity() const {
        if (!all_need_read) return pass_capacity();
        return smaller_of((lead() * (passes - 1) + kAhead + 3) * tile_rows + 2 * margin, height);
    }
    int64_t pass_capacity() const { return smaller_of(3 * tile_rows + 2 * margin, height); }

    // Rows of tiles that may be matched before the first pass begins them.
    static constexpr int kAhead = 2;
    static constexpr int kNarrow = 16;

    // Rows that are read, or finished, in one task at most.
    int64_t most_rows() const { return smaller_of(tile_rows + margin, height); }
};

// How far one pass has come down its image.
struct Pass {
    int64_t spread;                      // rows of tiles
    int64_t begun_chunks, ended_chunks;  // of the next one
    int64_t finished;                    // rows of the image
    bool finishing;
};

// One image on its way.
struct Sweep {
    int64_t image;  // of the batch; -1: none is left
    int64_t read;   // rows of the image
    bool reading;
    int64_t match_row, match_tile;  // what is matched next
    int64_t matched;                // rows of tiles whose groups are complete
    int64_t *ended_tiles;           // (rows of tiles in flight): matched tiles of each
    Pass *passes;
};

class Schedule {
  public:
    // Take memory and begin with the first images. A refinement is for one image.
    void make(const Plan &plan, const LayerSchedule &refinement, Memory &memory);
    // A task that is ready, if any.
    bool next(Task *task);
    // Note that a task has ended.
    void end(const Task &task);
    bool done() const;
    double share_done() const;
    const LayerSchedule &refinement() const { return refinement_; }

  private:
    void begin_image(Sweep &sweep);
    bool next_of(int number, Task *task);
    bool next_finish(Sweep &sweep, Task *task, int number);
    bool next_spread(Sweep &sweep, Task *task, int number);
    bool next_match(Sweep &sweep, Task *task);
    bool next_read(Sweep &sweep, Task *task);
    void end_match(Sweep &sweep, const Task &task);
    bool image_done(const Sweep &sweep) const;
    double image_share(const Sweep &sweep) const;
    // The row of the image below all that a row of tiles and its margin cover.
    int64_t rows_needed(int64_t tile_row) const;
    // The first row of its input that a pass still needs.
    int64_t needs_from(const Sweep &sweep, int number) const;
    // The first row of what is read that anybody still needs.
    int64_t read_needs_from(const Sweep &sweep) const;

    static constexpr int kInFlight = Plan::kAhead + 2;  // rows of tiles that are matched at once

    Plan plan_;
    Sweep *sweeps_;
    int64_t begun_images_, ended_images_;
    int begun_reductions_, ended_reductions_;
    LayerSchedule refinement_;
};

}  // namespace nlnet
