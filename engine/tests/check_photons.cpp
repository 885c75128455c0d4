// Blocks beside a plain DCT, and lines of photon noise through blocks of known noise.
#include "../src/estimates/photons.h"

#include "check.h"

namespace check {
namespace {

constexpr double kPi = 3.14159265358979323846;

double cosine(int frequency, int place) {
    const double scale = frequency == 0 ? sqrt(1.0 / 8) : sqrt(2.0 / 8);
    return scale * cos(kPi * (place + 0.5) * frequency / 8);
}

nlnet::Block plain_block(const float *pixels, int64_t stride) {
    nlnet::Block block = {0, pixels[0], pixels[0], 0, 0, 0, 0, 0};
    double mean = 0, low = 0, middle = 0, high = 0, highest = 0;
    for (int i = 0; i < 64; i++) {
        const float pixel = pixels[i / 8 * stride + i % 8];
        mean += double(pixel) / 64;
        block.least = pixel < block.least ? pixel : block.least;
        block.most = pixel > block.most ? pixel : block.most;
        if (i % 8 < 7) block.equal += pixel == pixels[i / 8 * stride + i % 8 + 1] ? 1.0f : 0.0f;
    }
    for (int u = 0; u < 8; u++) {
        for (int v = 0; v < 8; v++) {
            double sum = 0;
            for (int i = 0; i < 64; i++) {
                sum += double(pixels[i / 8 * stride + i % 8]) * cosine(u, i / 8) * cosine(v, i % 8);
            }
            if (u + v >= 1 && u + v <= 8) low += sum * sum;
            if (u + v >= 6 && u + v <= 8) middle += sum * sum;
            if (u + v >= 9) high += sum * sum;
            if (u + v >= 11) highest += sum * sum;
        }
    }
    block.mean = float(mean);
    block.low = float(low);
    block.middle = float(middle);
    block.high = float(high);
    block.highest = float(highest);
    return block;
}

void blocks(const nlnet::NoiseKernels &kernels, Random *random, Report &report) {
    const int64_t width = random->between(8, 90), count = nlnet::blocks_along(width);
    const Array<float> pixels(size_t(8 * width + nlnet::kRoom));
    for (int64_t i = 0; i < 8 * width; i++) {
        pixels[i] = random->below(4) ? float(200 * random->uniform()) : 50.0f;
    }
    const Array<float> lines(size_t(nlnet::kBlockLines * (width + nlnet::kRoom)));
    const Array<nlnet::Block> found = Array<nlnet::Block>(size_t(count));
    kernels.transform_blocks({pixels.data, width, count, lines.data, found.data});
    double apart = 0;
    bool exact = true;
    for (int64_t i = 0; i < count; i++) {
        const nlnet::Block wanted = plain_block(pixels.data + 3 * i, width);
        const nlnet::Block &block = found[i];
        exact = exact && block.least == wanted.least && block.most == wanted.most &&
                block.equal == wanted.equal;
        const float pairs[][2] = {{block.mean, wanted.mean},
                                  {block.low, wanted.low},
                                  {block.middle, wanted.middle},
                                  {block.high, wanted.high},
                                  {block.highest, wanted.highest}};
        for (const auto &pair : pairs) {
            const double off = fabs(double(pair[0]) - double(pair[1])) / (1 + double(pair[1]));
            if (!(off <= apart)) apart = off;
        }
    }
    report.expect(exact, "extremes and equal neighbors of %d blocks", int(count));
    report.expect(apart < 1e-4, "%d blocks: %.3g apart", int(count), apart);
}

// A line of known gain through bins, some of which are texture.
void line(Random *random, Report &report) {
    const double gain = 0.1 + random->uniform(), read = 5 * random->uniform();
    nlnet::BlockBins bins = {};
    bins.count = int(random->between(6, nlnet::kBlockBins));
    for (int i = 0; i < bins.count; i++) {
        const double intensity = 10 + 200.0 * i / bins.count;
        const double variance = gain * intensity + read * read;
        bins.bins[i] = {intensity, i % 5 == 4 ? 4 * variance : variance, 500, 1};
    }
    nlnet_photons level = {};
    const bool found = nlnet::fit_photons(bins, 0, true, &level);
    report.expect(found && fabs(level.gain / gain - 1) < 0.1, "gain %g of %g, %d bins", level.gain,
                  gain, bins.count);
    report.expect(!nlnet::fit_photons(nlnet::BlockBins(), 0, true, &level), "no bin, no noise");
    bins.count = 1;
    report.expect(
        nlnet::fit_photons(bins, -5, false, &level) && level.black == -5 && level.read == 0,
        "one brightness: all is of photons");
}

// A line that is 0 a little above black is one from black; one that is clearly elsewhere is not.
void black(Random *random, Report &report) {
    const double gain = 0.5 + random->uniform();
    const double places[] = {0.3, 60.0};
    for (const double apart : places) {
        nlnet::BlockBins bins = {};
        bins.count = 12;
        for (int i = 0; i < bins.count; i++) {
            const double intensity = apart + 40 + 4 * i;
            bins.bins[i] = {intensity, gain * (intensity - apart), 100, 1};
        }
        nlnet_photons level = {};
        const bool found = nlnet::fit_photons(bins, 0, true, &level);
        const double wanted = apart < 1 ? 0 : apart;
        report.expect(found && fabs(level.black - wanted) < 1e-3 * gain, "black at %g for %g",
                      level.black, apart);
        nlnet::fit_photons(bins, 0, false, &level);
        report.expect(fabs(level.black - apart) < 1e-3, "black anywhere at %g", level.black);
    }
}

// The bins hold what a plain search for the calmest blocks of each finds.
void binning(Random *random, Report &report) {
    const int64_t count = random->between(1, 900);
    const Array<nlnet::Block> all = Array<nlnet::Block>(size_t(count));
    nlnet::Memory counted(nullptr);
    nlnet::Sorter sorter;
    sorter.take_memory(count, counted);
    const Array<char> memory(counted.size());
    nlnet::Memory pieces(memory.data);
    sorter.take_memory(count, pieces);
    double darkest = 1e9, brightest = -1e9;
    for (int64_t i = 0; i < count; i++) {
        const float power = float(random->uniform());
        const bool left_out = random->below(20) == 0;
        const float mean = left_out ? nlnet::kLeftOutBlock : float(random->uniform() * 90 - 20);
        all[i] = {mean, 0, 0, 0, power, 22 * power, 21 * power, 10 * power};
        if (left_out) continue;
        darkest = double(mean) < darkest ? double(mean) : darkest;
        brightest = double(mean) > brightest ? double(mean) : brightest;
    }
    const nlnet::BlockBins found = nlnet::find_bins(all.data, count, sorter);
    int number = 0;
    bool same = true;
    for (int bin = 0; bin < nlnet::kBlockBins; bin++) {
        const Array<double> powers = Array<double>(size_t(count));
        int64_t members = 0;
        for (int64_t i = 0; i < count; i++) {
            if (all[i].mean == nlnet::kLeftOutBlock) continue;
            const double share = sqrt((double(all[i].mean) - darkest) / (brightest - darkest));
            const double place = share * nlnet::kBlockBins;
            const int own = int(place < nlnet::kBlockBins ? place : nlnet::kBlockBins - 1);
            if (own == bin) powers[members++] = double(all[i].low);
        }
        if (members < nlnet::kLeastBlocks) continue;
        qsort(powers.data, size_t(members), sizeof(double), [](const void *a, const void *b) {
            const double left = *static_cast<const double *>(a);
            const double right = *static_cast<const double *>(b);
            return left < right ? -1 : int(left > right);
        });
        const int64_t calm = members / 10 > 20 ? members / 10 : 20;
        double sum = 0;
        for (int64_t i = 0; i < calm; i++) sum += powers[i] / double(calm);
        same = same && number < found.count && fabs(found.bins[number].variance / sum - 1) < 0.05;
        number++;
    }
    report.expect(same && number == found.count, "%d bins of %d blocks, not %d", found.count,
                  int(count), number);
}

}  // namespace

void check_photons(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    for (int round = 0; round < rounds; round++) {
        blocks(*kernels.noise, &random, report);
        line(&random, report);
        black(&random, report);
        binning(&random, report);
    }
}

}  // namespace check
