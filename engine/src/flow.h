// Which layer of a refinement is ready: its rows follow those of the last stage down the image.
//
// As with the stages, rows that nobody needs any more make room in ring buffers, the later a layer
// the sooner its tasks come, and nothing here looks at pixels or is safe for threads. Rows are
// those of a layer's own level; a row of the input is two rows of the image.
#pragma once

#include "refinement.h"

namespace nlnet {

// How far a layer, or the input, has come down its rows.
struct LayerRows {
    Place place;
    int64_t height, capacity;  // rows in all, and in its ring buffer
    int64_t done;
    bool busy;
};

// Rows of one layer.
struct LayerTask {
    int layer;
    int64_t first, last;
};

class Flow {
  public:
    Flow() = default;
    // `fed` rows of the image may come at once.
    Flow(const RefinementShape &shape, int channels, int64_t image_height, int64_t fed);

    bool exists() const { return count_ > 0; }
    // A task that is ready, if any.
    bool next(LayerTask *task);
    void end(const LayerTask &task);
    // How many rows of the image there may be, and that there are so many now.
    int64_t room() const;
    void feed(int64_t rows);
    bool done() const { return layers_[count_ - 1].done == layers_[count_ - 1].height; }
    double share_done() const;

    int count() const { return count_; }
    const LayerRows &layer(int number) const { return number == kInput ? input_ : layers_[number]; }

    static constexpr int kTaskRows = 4;  // rows of a task at most

  private:
    // The rows that a layer could have, given those before it.
    int64_t possible(const LayerRows &layer) const;
    // The first row of a layer, or of the input, that another one still needs.
    int64_t needed_from(int number) const;
    // Let rows pass through, one at a time, to see how many each ring buffer must hold.
    void measure();

    // More than a ring buffer must hold, so that threads seldom wait for each other.
    static constexpr int kSpare = 4;

    int count_ = 0;
    int unit_ = 1;
    int64_t image_height_ = 0;
    LayerRows input_ = {};
    LayerRows layers_[kMostLayers] = {};
};

}  // namespace nlnet
