// Whole estimates through the C interface: noise that is known is found, by any number of threads.
#include "../src/estimates/decisions.h"

#include "eye_case.h"
#include "job_case.h"
#include "plain_cells.h"
#include "sample_case.h"

namespace check {
namespace {

struct Found {
    nlnet_status status;
    nlnet_found_noise noise;
    float luma;  // the first of the strengths
};

Found estimate(const nlnet_eye *eye, const samples::Sample &sample, int kind, nlnet_set set,
               int threads) {
    Found found = {};
    nlnet_estimate_task task = {};
    task.sample = sample.given;
    task.measures = sample.measures();
    task.kind = kind;
    task.set = set;
    task.threads = threads;
    task.found = &found.noise;
    size_t size = 0;
    found.status = nlnet_estimate_noise(eye, &task, nullptr, &size, nullptr);
    if (found.status != NLNET_OK) return found;
    const Array<char> memory(size);
    nlnet_job *job = nullptr;
    found.status = nlnet_estimate_noise(eye, &task, memory.data, &size, &job);
    if (found.status != NLNET_OK) return found;
    run_job(job, threads);
    if (found.noise.strengths != nullptr) found.luma = found.noise.strengths[0];
    found.noise.strengths = nullptr;  // the memory is gone
    return found;
}

// An eye whose maps are constant: its last layer has weights of 0.
plain::Eye constant_eye(const double *answers, Random *random) {
    const plain::Eye eye = plain::random_eye(plain::random_sizes(random), 24, random);
    const plain::Convolution &last = eye.layers.layers[eye.layers.count - 1];
    for (int64_t i = 0; i < last.weight_count(); i++) last.weights[i] = 0;
    for (int map = 0; map < nlnet::kEyeMaps; map++) last.biases[map] = answers[map];
    return eye;
}

void insisting(nlnet_set set, Random *random, Report &report) {
    const double sigma = 3 + 9 * random->uniform();
    const bool whole = random->below(2);
    const int type = random->below(2) ? NLNET_FLOAT32 : NLNET_UINT8;
    const samples::Sample white(random, type, random->below(2) ? 3 : 1, 1, whole ? 1 : 2, 1, 128,
                                128, {sigma, 0, false, false});
    const Found found = estimate(nullptr, white, NLNET_WHITE_NOISE, set, 2);
    report.expect(found.status == NLNET_OK && found.noise.kind == NLNET_WHITE_NOISE &&
                      fabs(found.noise.sigma / sigma - 1) < 0.15,
                  "white noise of %g: status %d, %g", sigma, found.status, found.noise.sigma);
    const double gain = 0.5 + random->uniform();
    const samples::Sample photons(random, NLNET_FLOAT32, 1, 1, 1, 1, 160, 256,
                                  {1, gain, true, false});
    const Found line = estimate(nullptr, photons, NLNET_PHOTON_NOISE, set, 2);
    report.expect(
        line.noise.kind == NLNET_PHOTON_NOISE && fabs(line.noise.photons[0].gain / gain - 1) < 0.3,
        "photon noise of gain %g: %g", gain, line.noise.photons[0].gain);
}

// What an eye sees that is sure of a kind is what is found, unless values tell more.
void kinds(nlnet_set set, Random *random, Report &report) {
    double answers[nlnet::kEyeMaps] = {};
    const int sure = int(random->below(4));
    const double strength = 4 + 20 * random->uniform();
    for (int map = 0; map < nlnet::kStrengthMaps; map++) answers[map] = log2(1 + strength);
    answers[nlnet::kLogits + sure] = 9;
    const plain::Eye values = constant_eye(answers, random);
    const eyes::Made made(values, set);
    const int channels = random->below(2) ? 3 : 1;
    const samples::Sample sample(random, NLNET_UINT8, channels, random->between(1, 2), 1, 1,
                                 random->between(40, 99), random->between(40, 99),
                                 {8, 0, false, false});
    const Found found = estimate(made.eye, sample, NLNET_NO_NOISE, set, 3);
    // Photon noise that does not grow with the brightness is white.
    const int wanted = sure == NLNET_PHOTON_NOISE ? NLNET_WHITE_NOISE : sure;
    report.expect(found.status == NLNET_OK && found.noise.kind == wanted && found.noise.looked == 1,
                  "kind %d of an eye that says %d, status %d", found.noise.kind, sure,
                  found.status);
    report.expect(found.noise.certainty > 0.9 && found.noise.odds[sure] > 0.99, "certainty %g",
                  found.noise.certainty);
    const nlnet_measures measures = sample.measures();
    const double unit = (measures.high - measures.low) / 255 * (channels == 3 ? sqrt(3.0) : 1);
    report.expect(plain::is_rounded(double(found.luma), strength * unit), "strength %g of %g",
                  double(found.luma), strength * unit);
    if (sure == NLNET_CAMERA_NOISE) {
        report.expect(fabs(found.noise.sigma / double(found.luma) - 1) < 1e-4, "sigma");
    }
    values.layers.release();
}

// The bits do not depend on the threads, whatever the eye says.
void threads(nlnet_set set, Random *random, Report &report) {
    const plain::Eye values =
        plain::random_eye(plain::random_sizes(random), 16 + 8 * int(random->below(2)), random);
    const eyes::Made made(values, set);
    const samples::Picture picture = {6, 0.5 * random->uniform(), random->below(2) != 0, false};
    const samples::Sample sample(random, int(random->below(8)), random->below(2) ? 3 : 1, 1,
                                 random->between(1, 2), random->between(1, 2),
                                 random->between(8, 60), random->between(8, 60), picture);
    const int kind = int(random->below(4));
    const Found one = estimate(made.eye, sample, kind, set, 1);
    const Found more = estimate(made.eye, sample, kind, set, 4);
    report.expect(one.status == NLNET_OK && !memcmp(&one.noise, &more.noise, sizeof(one.noise)) &&
                      one.luma == more.luma,
                  "threads change nothing, kind %d, status %d", kind, one.status);
    values.layers.release();
}

void refusing(nlnet_set set, Random *random, Report &report) {
    const samples::Sample flat(random, NLNET_FLOAT64, 1, 1, 1, 1, 20, 20, {0, 0, false, true});
    const samples::Sample small(random, NLNET_UINT8, 1, 1, 1, 1, 7, 20, {5, 0, false, false});
    report.expect(estimate(nullptr, small, NLNET_WHITE_NOISE, set, 1).status == NLNET_TOO_SMALL,
                  "7 rows are too few");
    report.expect(estimate(nullptr, flat, NLNET_CAMERA_NOISE, set, 1).status == NLNET_BAD_ARGUMENT,
                  "camera noise takes an eye");
    const samples::Sample constant(random, NLNET_UINT8, 1, 1, 1, 1, 9, 9, {0, 0, false, true});
    report.expect(
        estimate(nullptr, constant, NLNET_WHITE_NOISE, set, 1).noise.kind == NLNET_NO_NOISE,
        "one value has no noise");
}

}  // namespace

void check_found(const nlnet::Kernels &kernels, int rounds, Random random, Report &report) {
    const nlnet_set set = jobs::set_of(kernels);
    for (int round = 0; round < rounds; round++) {
        if (round % 4 == 0) insisting(set, &random, report);
        kinds(set, &random, report);
        threads(set, &random, report);
        refusing(set, &random, report);
    }
}

void time_found(const nlnet::Kernels &kernels) {
    Random random = {1};
    const plain::LevelSizes sizes = {4, {24, 32, 40, 48}, {1, 1, 1, 1}, {}};
    const plain::Eye values = plain::random_eye(sizes, 24, &random);
    const nlnet_set set = jobs::set_of(kernels);
    const eyes::Made made(values, set);
    const samples::Sample sample(&random, NLNET_UINT8, 1, 1, 1, 1, 321, 481, {9, 1, true, false});
    for (int kind = NLNET_WHITE_NOISE; kind <= NLNET_CAMERA_NOISE; kind++) {
        const char *names[] = {"", "white", "photons", "camera"};
        const double took = seconds([&] { estimate(made.eye, sample, kind, set, 1); }, 5);
        printf("%-8s estimate, %-10s 481x321     %8.3f ms\n", kernels.name, names[kind],
               took * 1e3);
    }
    values.layers.release();
}

}  // namespace check
