// Check, or time, the kernels of every instruction set that this machine has.
//
//     check [--time] [--set NAME] [--seed NUMBER] [--rounds NUMBER]

#include "check.h"

#include "../src/set_kernels.h"

namespace {

struct Part {
    const char *name;
    void (*check)(const nlnet::Kernels &, int rounds, check::Random, check::Report &);
    void (*time)(const nlnet::Kernels &);
};

const Part kParts[] = {
    {"matching", check::check_matching, check::time_matching},
};

#define NLNET_KERNELS(set) \
    nlnet::Kernels { #set, &nlnet::set::matching_float, &nlnet::set::matching_double, nullptr, nullptr }

struct Set {
    nlnet::Kernels kernels;
    bool here;  // on this machine
};

int run(const Set *sets, int count, const char *wanted, bool timed, uint64_t seed, int rounds) {
    int failures = 0, ran = 0;
    for (int i = 0; i < count; ++i) {
        const nlnet::Kernels &kernels = sets[i].kernels;
        if (wanted && strcmp(wanted, kernels.name)) continue;
        if (!sets[i].here) {
            printf("%-8s not on this machine\n", kernels.name);
            continue;
        }
        ++ran;
        for (const Part &part : kParts) {
            if (timed) {
                part.time(kernels);
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
    bool timed = false;
    uint64_t seed = 1;
    int rounds = 60;
    for (int i = 1; i < count; ++i) {
        const bool more = i + 1 < count;
        if (!strcmp(arguments[i], "--time")) {
            timed = true;
        } else if (!strcmp(arguments[i], "--set") && more) {
            wanted = arguments[++i];
        } else if (!strcmp(arguments[i], "--seed") && more) {
            seed = strtoull(arguments[++i], nullptr, 10) * 2 + 1;
        } else if (!strcmp(arguments[i], "--rounds") && more) {
            rounds = atoi(arguments[++i]);
        } else {
            fprintf(stderr, "usage: check [--time] [--set NAME] [--seed NUMBER] [--rounds NUMBER]\n");
            return 2;
        }
    }
#if defined(__x86_64__)
    __builtin_cpu_init();
    const Set sets[] = {
        {NLNET_KERNELS(sse2), true},
        {NLNET_KERNELS(avx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
        {NLNET_KERNELS(avx512), __builtin_cpu_supports("avx512f") &&
                                    __builtin_cpu_supports("avx512bw") &&
                                    __builtin_cpu_supports("avx512dq") &&
                                    __builtin_cpu_supports("avx512vl")},
    };
#elif defined(__aarch64__)
    const Set sets[] = {{NLNET_KERNELS(neon), true}};
#else
    const Set sets[] = {{NLNET_KERNELS(simd128), true}};
#endif
    return run(sets, int(sizeof(sets) / sizeof(sets[0])), wanted, timed, seed, rounds);
}
