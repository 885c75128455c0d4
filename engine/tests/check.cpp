// Check, or time, the kernels of every instruction set that this machine has.
//
//     check [--time] [--threads] [--set NAME] [--seed NUMBER] [--rounds NUMBER]
//
// With --threads only the parts that run jobs in several threads: a thread sanitizer has nothing to
// find in the others.

#include "check.h"

#include "../src/network.h"

namespace {

struct Part {
    const char *name;
    void (*check)(const nlnet::Kernels &, int rounds, check::Random, check::Report &);
    void (*time)(const nlnet::Kernels &);
    bool threads = false;
};

const Part kParts[] = {
    {"matching", check::check_matching, check::time_matching},
    {"stages", check::check_stages, check::time_stages},
    {"rows", check::check_rows, nullptr},
    {"pixels", check::check_pixels, nullptr},
    {"convolve", check::check_convolve, check::time_convolve},
    {"layers", check::check_layer_schedule, nullptr},
    {"schedule", check::check_schedule, nullptr},
    {"eye", check::check_eye, check::time_eye, true},
    {"series", check::check_series, nullptr},
    {"keep", check::check_keep, nullptr},
    {"motion", check::check_motion, nullptr},
    {"noise", check::check_noise, check::time_noise},
    {"samples", check::check_samples, nullptr},
    {"photons", check::check_photons, nullptr},
    {"cells", check::check_cells, nullptr},
    {"found", check::check_found, check::time_found, true},
    {"removal", check::check_removal, nullptr, true},
    {"jobs", check::check_jobs, nullptr, true},
    {"gradients", check::check_gradients, nullptr, true},
};

int run(const char *wanted, bool timed, bool threads, uint64_t seed, int rounds) {
    int failures = 0, ran = 0;
    for (int set = NLNET_SSE2; set <= NLNET_SIMD128; ++set) {
        if (!nlnet::kernels_of(nlnet_set(set))) continue;
        const nlnet::Kernels &kernels = *nlnet::kernels_of(nlnet_set(set));
        if (wanted && strcmp(wanted, kernels.name)) continue;
        ++ran;
        for (const Part &part : kParts) {
            if (threads && !part.threads) continue;
            if (timed) {
                if (part.time) part.time(kernels);
                continue;
            }
            check::Report report = {kernels.name, 0, 0};
            part.check(kernels, rounds, check::Random{seed}, report);
            printf("%-8s %-10s %d checks, %d failed\n", kernels.name, part.name, report.checks,
                   report.failures);
            fflush(stdout);
            failures += report.failures;
        }
    }
    if (!ran) {
        fprintf(stderr, "No instruction set to run: wanted %s.\n", wanted ? wanted : "any");
        return 2;
    }
    return failures ? 1 : 0;
}

}  // namespace

int main(int count, char **arguments) {
    const char *wanted = nullptr;
    bool timed = false, threads = false;
    uint64_t seed = 1;
    int rounds = 60;
    for (int i = 1; i < count; ++i) {
        const bool more = i + 1 < count;
        if (!strcmp(arguments[i], "--time")) {
            timed = true;
        } else if (!strcmp(arguments[i], "--threads")) {
            threads = true;
        } else if (!strcmp(arguments[i], "--set") && more) {
            wanted = arguments[++i];
        } else if (!strcmp(arguments[i], "--seed") && more) {
            seed = strtoull(arguments[++i], nullptr, 10) * 2 + 1;
        } else if (!strcmp(arguments[i], "--rounds") && more) {
            rounds = atoi(arguments[++i]);
        } else {
            fprintf(stderr,
                    "usage: check [--time] [--threads] [--set NAME] [--seed NUMBER] "
                    "[--rounds NUMBER]\n");
            return 2;
        }
    }
    return run(wanted, timed, threads, seed, rounds);
}
