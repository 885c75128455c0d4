// The job that removes noise: one scale after the other, the smallest first.
//
// Camera noise is removed from coarse to fine. At half the size, the noise of neighboring pixels is
// less alike, and blotches are as small as grain. There the networks for white noise remove them;
// what they changed is enlarged and added to the full image, whose noise has lost its low
// frequencies then; the same network removes the rest. The idea is that of M. Lebrun, M. Colom,
// J.-M. Morel, "The Noise Clinic: a blind image denoising algorithm", Image Processing On Line
// (2015).
#pragma once

#include "../sweep.h"
#include "remover.h"

namespace nlnet {
namespace {

constexpr int kBand = 32;               // rows that are copied at a time, where there is no noise
constexpr double kCoarserShare = 0.25;  // of the work: a quarter of the pixels, and so on

struct Removal : Denoising<float> {
    nlnet_removal_task asked;
    nlnet_place place;
    const nlnet_network *networks[NLNET_SCALES];
    int scales, scale;  // in all, and the one that is under way
    Stabiliser stabilisers[3];
    Evening evenings[NLNET_SCALES];
    Remover removers[NLNET_SCALES];
    float *changes[NLNET_SCALES];  // (C, H, W) of each scale but the first
    RowsScratch reading, writing;
    void *region;          // memory for one scale after the other
    float *noisy, *clean;  // whole planes, or a band, for what does not run here

    const Remover &remover() const { return removers[scale]; }

    RowOf<float> row_of(float *planes, int64_t count, int64_t number) const {
        return {Planes<float>{planes, remover().width, count}, remover().channels, number};
    }

    bool read_rows(int64_t first, int64_t count, float *planes) {
        bool finite = true;
        for (int64_t i = 0; i < count; i++) {
            const RowOf<float> row = row_of(planes, count, i);
            finite = remover().prepare(first + i, row.channels, reading) && finite;
        }
        if (!finite) __atomic_store_n(&failure, NLNET_TOO_LARGE, __ATOMIC_RELAXED);
        return finite;
    }

    // Rows of the scale's result: what has changed there, or pixels for the caller.
    bool write_rows(int64_t first, int64_t count, float *planes, bool restored) {
        const TypedPixels target = {asked.denoised};
        const int64_t width = remover().width;
        for (int64_t i = 0; i < count; i++) {
            const int64_t y = first + i;
            const RowOf<float> row = row_of(planes, count, i);
            if (!restored) remover().restore(y, row.channels, writing);
            if (scale > 0) {
                remover().changed(y, row.channels, writing);
            } else {
                remover().blend(y, row.channels, writing);
            }
            for (int channel = 0; channel < remover().channels; channel++) {
                const float *from = row.channels[channel];
                if (scale > 0) {
                    float *plane = changes[scale] + channel * remover().height * width;
                    __builtin_memcpy(plane + y * width, from, size_t(width) * sizeof(float));
                } else if (asked.denoised.rows.data != nullptr) {
                    remover().kernels->store(nlnet_type(asked.denoised.type), from, width,
                                             target.row(channel, y), target.step());
                }
            }
        }
        const nlnet_rows &to = asked.denoised.rows;
        return scale > 0 || to.data != nullptr || to.rows(to.context, first, count, planes) == 0;
    }

    static int read_callback(void *context, int64_t first, int64_t count, void *planes) {
        return !static_cast<Removal *>(context)->read_rows(first, count,
                                                           static_cast<float *>(planes));
    }
    static int write_callback(void *context, int64_t first, int64_t count, void *planes) {
        return !static_cast<Removal *>(context)->write_rows(first, count,
                                                            static_cast<float *>(planes), false);
    }

    // The whole scale in one task: where there is no noise, or its network runs elsewhere.
    static bool run_whole(nlnet_job *job, const Task &, void *) {
        Removal &self = *static_cast<Removal *>(job);
        const Remover &remover = self.remover();
        if (self.networks[self.scale] != nullptr) {
            const nlnet_denoise_task inner = self.inner_task();
            return self.read_rows(0, remover.height, self.noisy) &&
                   self.asked.elsewhere(self.asked.context, self.scale, remover.height,
                                        remover.width, self.noisy, self.clean, inner.low,
                                        inner.high) == 0 &&
                   self.write_rows(0, remover.height, self.clean, false);
        }
        for (int64_t first = 0; first < remover.height; first += kBand) {
            const int64_t count = smaller_of(kBand, remover.height - first);
            for (int64_t i = 0; i < count; i++) {
                const RowOf<float> row = self.row_of(self.noisy, count, i);
                remover.corrected(first + i, row.channels, self.writing);
            }
            if (!self.write_rows(first, count, self.noisy, true)) return false;
        }
        return true;
    }

    // What the network does at this scale, in its units.
    nlnet_denoise_task inner_task() {
        const Remover &remover = this->remover();
        nlnet_denoise_task inner = {};
        inner.height = remover.height;
        inner.width = remover.width;
        inner.noisy.rows = read_callback;
        inner.denoised.rows = write_callback;
        inner.noisy.context = inner.denoised.context = this;
        inner.low = 1;
        // A network that sees values at another scale than the image's has no box.
        if (remover.clipped && remover.evening == nullptr && remover.stabilisers == nullptr) {
            inner.low = asked.low * double(remover.factor) - double(remover.black);
            inner.high = asked.high * double(remover.factor) - double(remover.black);
        }
        inner.threads = asked.threads;
        inner.tile_rows = asked.tile_rows;
        return inner;
    }

    // Begin a scale; with no job there, count the memory that it takes.
    static void make_scale(Removal *job, const nlnet_denoise_task &inner,
                           const nlnet_network *network, bool refines, bool elsewhere, int channels,
                           Memory &memory) {
        if (network != nullptr && !elsewhere) {
            make_denoising<float>(job, network, inner, refines, memory);
            return;
        }
        Plan plan = {};
        plan.passes = 1;
        plan.reduces = true;
        make_job(job, plan, LayerSchedule(), inner.threads, 0, memory);
        const int64_t rows = network == nullptr ? kBand : inner.height;
        float *from = memory.take<float>(channels, rows, inner.width);
        float *to = network == nullptr ? nullptr : memory.take<float>(channels, rows, inner.width);
        if (job == nullptr) return;
        job->run = run_whole;
        job->noisy = from;
        job->clean = to;
    }

    void begin_scale() {
        Memory memory(region);
        make_scale(this, inner_task(), networks[scale], scale == 0 && !place.scale,
                   asked.elsewhere != nullptr, asked.channels, memory);
        advance = [](nlnet_job *job) {
            Removal &self = *static_cast<Removal *>(job);
            if (self.scale == 0) return false;
            self.scale--;
            self.begin_scale();
            return true;
        };
        // A quarter of the work is that of all smaller scales.
        double below = 1;
        for (int i = 0; i < scale; i++) below *= kCoarserShare;
        share = scale + 1 < scales ? below * (1 - kCoarserShare) : below;
        start = below - share;
    }
};

}  // namespace
}  // namespace nlnet
