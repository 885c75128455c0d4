// The steps that find out what the noise of an image is.
//
// The eye says which kind of noise it sees. White noise is then measured by the smallest
// eigenvalues of patches (white.h), and photon noise by flat blocks of every brightness
// (photons.h), which are more exact; that of cameras and films is what the eye sees.
#pragma once

#include "../convolutions/look.h"
#include "photons.h"
#include "pieces.h"
#include "seen.h"
#include "white.h"

namespace nlnet {
namespace {

// Values of a row at a time, on their way to scaled ones.
constexpr int64_t kSpan = 512;

struct Estimator {
    nlnet_estimate_task task;
    const nlnet_eye *eye;
    const NoiseKernels *kernels;
    SampleScale scale;
    ClipLimits limits;

    float *scaled;  // (tiles, channels, height, width)
    Sorter sorter;

    // If the eye looks:
    bool looks;
    Cells cells;
    Pieces pieces;
    Look look;
    float *answers;  // (tiles, pieces, maps, rows, columns)
    double *fitted;  // for the curve
    StrengthMaps maps;
    Seen seen;

    Block *blocks;  // (channels, tiles, rows, columns)
    BlockBins bins[3];
    WhiteTask white;
    WhiteEstimate *white_estimate;

    // Whether all values are the same.
    bool is_flat() const { return scale.unit == 0; }
    int64_t plane_count() const { return tiles() * channels(); }
    int64_t piece_count() const { return tiles() * pieces.of_tile(); }

    const nlnet_grid &grid() const { return task.sample.grid; }
    int channels() const { return task.sample.channels; }
    int64_t tiles() const { return tile_count(task.sample); }
    int64_t plane_size() const { return grid().height * grid().width; }
    float *tile(int64_t number) const { return scaled + number * channels() * plane_size(); }
    int64_t blocks_of_plane() const {
        return blocks_along(grid().height) * blocks_along(grid().width);
    }
    int64_t blocks_of_channel() const { return tiles() * blocks_of_plane(); }

    void make(const nlnet_eye *given, const nlnet_estimate_task &wanted, const Kernels &all,
              Memory &memory) {
        task = wanted;
        eye = given;
        kernels = all.noise;
        scale = SampleScale(task.measures);
        limits = ClipLimits(task.sample.extremes, scale);
        looks = task.kind == NLNET_NO_NOISE || task.kind == NLNET_CAMERA_NOISE;
        scaled = memory.take<float>(tiles(), channels(), plane_size());
        int64_t sorted = blocks_of_channel();
        if (looks) {
            cells.take_memory(grid(), tiles(), eye->specs.unit(), eye->outputs, memory);
            pieces = Pieces(cells, channels());
            look = Look(eye, channels(), pieces.height(), pieces.width());
            answers = memory.take<float>(piece_count(), eye->outputs, pieces.rows * pieces.columns);
            fitted = memory.take<double>(cells.count());
            maps.take_memory(task.sample, cells, memory);
            sorted = larger_of(sorted, cells.count());
        }
        sorter.take_memory(sorted, memory);
        blocks = memory.take<Block>(channels(), blocks_of_channel());
        white = {scaled,       tiles() * channels(), grid().height,
                 grid().width, limits.low,           limits.high};
        white_estimate = make_white(all, &white, memory);
    }

    // Bytes that a thread works in.
    size_t scratch() const {
        const int64_t lines = kBlockLines * (grid().width + kRoom);
        const size_t seen_piece =
            looks ? size_t(round_up(pieces.pixels() * 4, kCacheLine)) + look.scratch() : 0;
        return size_t(larger_of(lines * 4, int64_t(seen_piece)));
    }

    // Scale a tile, and measure its cells.
    void scale_tile(int64_t number) const {
        double values[kSpan];
        float *target = tile(number);
        for (int64_t row = 0; row < channels() * grid().height; row++) {
            for (int64_t x = 0; x < grid().width; x += kSpan) {
                const int64_t count = smaller_of(kSpan, grid().width - x);
                copy_values(task.sample.tiles[number], task.sample.type, row / grid().height,
                            row % grid().height, x, 1, count, values);
                for (int64_t i = 0; i < count; i++) {
                    *target++ = float(within(scale.of(values[i]), -kMostScaled, kMostScaled));
                }
            }
        }
        if (looks) cells.measure(number, tile(number), channels(), grid(), limits);
    }

    // Let the eye look at a piece.
    void look_at(int64_t number, void *scratch) const {
        float *piece = static_cast<float *>(scratch);
        char *rest = static_cast<char *>(scratch) + round_up(pieces.pixels() * 4, kCacheLine);
        pieces.cut(number % pieces.of_tile(), tile(number / pieces.of_tile()), grid(), piece);
        look.look(piece, answers + number * eye->outputs * pieces.rows * pieces.columns, rest);
    }

    // From what the eye says of pieces to what it sees of the image.
    void see() {
        for (int64_t number = 0; number < piece_count(); number++) {
            const int64_t size = eye->outputs * pieces.rows * pieces.columns;
            const int64_t of_tile = number / pieces.of_tile() * eye->outputs * cells.of_tile();
            pieces.place(number % pieces.of_tile(), answers + number * size, eye->outputs,
                         cells.answers + of_tile);
        }
        cells.weigh();
        StrengthCurve curve;
        curve.find(cells, sorter, fitted);
        maps.make(cells, curve);
        maps.to_image(channels(), scale.unit);
        cells.find_odds(seen.odds);
        seen.line = curve.line;
        seen.variation = curve.variation();
        seen.sigma = maps.mean(0);
        seen.half = maps.mean(1);
        seen.fine = task.measures.step < kFine * scale.unit;
    }

    // Whether blocks can tell more than the eye.
    bool wants_blocks() const {
        if (is_flat()) return false;
        if (task.kind == NLNET_PHOTON_NOISE) return true;
        return task.kind == NLNET_NO_NOISE && seen.kind() == NLNET_WHITE_NOISE &&
               (seen.may_be_photons() || seen.varies());
    }

    // Cut a plane into blocks, and transform them.
    void cut_blocks(int64_t number, void *scratch) const {
        const int64_t channel = number / tiles(), place = number % tiles();
        Block *target = blocks + number * blocks_of_plane();
        BlockRow row = {};
        row.stride = grid().width;
        row.count = blocks_along(grid().width);
        row.lines = static_cast<float *>(scratch);
        for (int64_t i = 0; i < blocks_along(grid().height); i++) {
            row.source = tile(place) + channel * plane_size() + i * kBlockStep * grid().width;
            row.blocks = target + i * row.count;
            kernels->transform_blocks(row);
        }
        // A pixel without photons was not clipped, so that there is no lower limit.
        leave_blocks_out(target, blocks_of_plane(), limits.high);
    }

    const Block *blocks_of(int channel) const { return blocks + channel * blocks_of_channel(); }

    void find_all_bins() {
        for (int channel = 0; channel < channels(); channel++) {
            bins[channel] = find_bins(blocks_of(channel), blocks_of_channel(), sorter);
        }
    }

    // Find photon noise, whatever the noise looks like. If nobody insists on it, it must grow both
    // to the eye and in the flat blocks of a channel: texture that is bright or dark misleads
    // either, but seldom both.
    bool find_photons(nlnet_found_noise *found) {
        const bool insists = task.kind == NLNET_PHOTON_NOISE;
        if (!insists && !seen.may_be_photons()) return false;
        const double least = task.sample.extremes.low;
        const double black = scale.of(smaller_number(least, 0));
        bool any = insists;
        for (int channel = 0; channel < channels(); channel++) {
            nlnet_photons level;
            if (!fit_photons(bins[channel], black, least >= 0, &level)) return false;
            any = any || grows(blocks_of(channel), blocks_of_channel(), bins[channel],
                               line_of(level), seen.line, seen.looks_like_photons(), sorter);
            found->photons[channel] = in_image(level, scale, least);
        }
        return any;
    }

    bool varies_in_blocks() const {
        for (int channel = 0; channel < channels(); channel++) {
            if (depends_on_brightness(bins[channel])) return true;
        }
        return false;
    }

    // Noise of a kind, if it is there.
    void set_white(nlnet_found_noise *found) {
        found->sigma = scale.unit * white_sigma(white_estimate);
        found->kind = found->sigma > 0 ? NLNET_WHITE_NOISE : NLNET_NO_NOISE;
    }
    void set_camera(nlnet_found_noise *found) const {
        found->sigma = seen.sigma;
        found->kind = seen.sigma > 0 ? NLNET_CAMERA_NOISE : NLNET_NO_NOISE;
    }

    // Set noise of the kind that the eye sees, measured by what measures it most exactly.
    void set_seen(nlnet_found_noise *found) {
        if (seen.kind() == NLNET_CAMERA_NOISE) {
            set_camera(found);
        } else if (seen.kind() == NLNET_WHITE_NOISE) {
            if (wants_blocks()) find_all_bins();
            if (find_photons(found)) {
                found->kind = NLNET_PHOTON_NOISE;
            } else if (seen.varies() && varies_in_blocks()) {
                set_camera(found);
            }
            if (found->kind == NLNET_NO_NOISE) set_white(found);
        }
        const bool too_little =
            found->kind != NLNET_PHOTON_NOISE && found->sigma < kTooLittle * task.measures.step;
        if (found->kind == NLNET_NO_NOISE || too_little) {
            found->kind = NLNET_NO_NOISE;
            found->sigma = seen.sigma;
        }
        found->certainty = seen.certainty();
    }

    // Say what was found.
    void conclude() {
        nlnet_found_noise found = {};
        found.certainty = 1;
        if (looks && !is_flat()) {
            found.looked = 1;
            found.strengths = maps.strengths;
            found.rows = maps.rows;
            found.columns = maps.columns;
            __builtin_memcpy(found.odds, seen.odds, sizeof(found.odds));
            found.slope = seen.line.slope;
            found.foot = seen.line.foot;
            found.variation = seen.variation;
        }
        if (!is_flat()) {
            switch (task.kind) {
                case NLNET_WHITE_NOISE: set_white(&found); break;
                case NLNET_PHOTON_NOISE:
                    find_all_bins();
                    if (find_photons(&found)) {
                        found.kind = NLNET_PHOTON_NOISE;
                    } else {
                        set_white(&found);
                    }
                    break;
                case NLNET_CAMERA_NOISE: set_camera(&found); break;
                default: set_seen(&found); break;
            }
        }
        *task.found = found;
    }
};

}  // namespace
}  // namespace nlnet
