// Which layer is ready: rows pass through all layers of a network while others are still to come.
//
// A layer computes rows as soon as its source has those that they need. Later layers go first, so
// that rows that nobody needs any more make room in ring buffers. Nothing here looks at pixels, and
// nothing is safe for threads. Rows are those of a layer's own level; a row of the input is two
// rows of the image.
#pragma once

#include "layers.h"

namespace nlnet {

// How far a layer, or the input, has come down its rows.
struct LayerProgress {
    LayerSpec spec;
    int64_t height, capacity;  // rows in all, and in its ring buffer
    int64_t done;
    bool busy;
};

// Rows of one layer.
struct LayerTask {
    int layer;
    int64_t first, last;
};

class LayerSchedule {
  public:
    LayerSchedule() = default;
    // `fed` rows of the image may come at once.
    LayerSchedule(const LayerSpecs &specs, int64_t image_height, int64_t fed);

    bool exists() const { return count_ > 0; }
    // A task that is ready, if any.
    bool next(LayerTask *task);
    void end(const LayerTask &task);
    // Rows of the image, counted from its top, that there is room for.
    int64_t room() const;
    // Note that so many rows of the image are there.
    void feed(int64_t rows);
    bool done() const { return layers_[count_ - 1].done == layers_[count_ - 1].height; }
    double share_done() const;

    int count() const { return count_; }
    const LayerProgress &layer(int number) const {
        return number == kInput ? input_ : layers_[number];
    }

    static constexpr int kTaskRows = 4;  // rows of a task at most

  private:
    // Rows of a layer that can be computed from the rows that its source and addend have.
    int64_t rows_possible(const LayerProgress &layer) const;
    // The first row of a layer, or of the input, that another one still needs.
    int64_t needed_from(int number) const;
    // Let rows pass through, one at a time, to see how many each ring buffer must hold.
    void measure();

    // More than a ring buffer must hold, so that threads seldom wait for each other.
    static constexpr int kSpare = 4;

    int count_ = 0;
    int unit_ = 1;
    int64_t image_height_ = 0;
    LayerProgress input_ = {};
    LayerProgress layers_[kMostLayers] = {};
};

}  // namespace nlnet
