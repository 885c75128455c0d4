// Broken parameter blocks, and jobs of any size, stride and number of threads: whatever is given, a
// function says no, or the job runs within the memory it asked for and gives the same result.
//
//     fuzz [--threads] [--seed NUMBER] [--cases NUMBER]
//
// With --threads every job gets all the threads that it is made for, for a thread sanitizer.
// With -DNLNET_LIBFUZZER and Clang's -fsanitize=fuzzer, libFuzzer chooses the cases.

#include "fuzz_eye.h"
#include "fuzz_noise.h"
#include "fuzz_removal.h"

using check::Array;
using fuzz::case_number;
using fuzz::Choices;
using fuzz::kMostMemory;
using fuzz::refuse_bad_memory;
using fuzz::require;
using fuzz::run;

namespace {

constexpr int64_t kMostPixels = 1 << 12;

// Planes in memory: axes in any order, any of them backwards, pixels side by side or apart.
template <typename T>
struct Planes {
    int64_t sizes[3];  // channels, height, width
    ptrdiff_t strides[3];
    int64_t start, count;

    Planes(Choices &choices, int64_t channels, int64_t height, int64_t width, bool plain)
        : sizes{channels, height, width}, start(0), count(plain ? 1 : 1 + choices.below(2)) {
        const int orders[][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
        const int *order = orders[plain ? 0 : choices.below(4)];
        for (int i = 0; i < 3; i++) {
            const int axis = order[i];
            const bool backwards = !plain && choices.below(3) == 0;
            strides[axis] = ptrdiff_t(backwards ? -count : count);
            if (backwards) start += (sizes[axis] - 1) * count;
            count *= sizes[axis];
        }
    }
    nlnet_rows rows(T *data) const {
        const ptrdiff_t size = ptrdiff_t(sizeof(T));
        return {data + start,      strides[0] * size, strides[1] * size,
                strides[2] * size, nullptr,           nullptr};
    }
    T &at(T *data, int64_t channel, int64_t y, int64_t x) const {
        return data[start + channel * strides[0] + y * strides[1] + x * strides[2]];
    }
    template <typename Function>
    void each(Function function) const {
        for (int64_t c = 0; c < sizes[0]; c++) {
            for (int64_t y = 0; y < sizes[1]; y++) {
                for (int64_t x = 0; x < sizes[2]; x++) function(c, y, x);
            }
        }
    }
};

template <typename T>
double pixel(int64_t channel, int64_t y, int64_t x) {
    return double(T((channel * 31 + y * y * 7 + x * 13 + x * y) % 256));
}

bool is_small(int64_t batch, int64_t height, int64_t width) {
    return batch > 0 && height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels &&
           batch <= 4 && height * width <= kMostPixels;
}

template <typename T>
void denoise(Choices &choices, const nlnet_network *network, int channels, bool sound) {
    nlnet_denoise_task task = {};
    task.height = choices.number(3, 70);
    task.width = choices.number(3, 90);
    task.threads = int32_t(choices.number(1, 4));
    task.tile_rows = int32_t(choices.below(2) ? 0 : choices.number(8, 40));
    task.low = choices.below(4) ? 0 : 1;
    task.high = choices.below(4) ? 255 : 0;
    size_t size = 0;
    const nlnet_status status = nlnet_denoise(network, &task, nullptr, &size, nullptr);
    if (status != NLNET_OK || !is_small(1, task.height, task.width)) return;
    const Planes<T> from(choices, channels, task.height, task.width, false);
    const Planes<T> to(choices, channels, task.height, task.width, false);
    const Planes<T> plain(choices, channels, task.height, task.width, true);
    const Array<T> noisy(size_t(from.count)), denoised(size_t(to.count));
    const Array<T> same(size_t(plain.count)), expected(size_t(plain.count));
    plain.each([&](int64_t c, int64_t y, int64_t x) {
        from.at(noisy.data, c, y, x) = plain.at(same.data, c, y, x) = T(pixel<T>(c, y, x));
    });
    task.noisy = from.rows(noisy.data);
    task.denoised = to.rows(denoised.data);
    if (!run(choices, nlnet_denoise, network, task, task.threads) || !sound) return;
    task.noisy = plain.rows(same.data);
    task.denoised = plain.rows(expected.data);
    task.threads = 1;
    task.tile_rows = 0;
    if (!run(choices, nlnet_denoise, network, task, 1)) return;
    plain.each([&](int64_t c, int64_t y, int64_t x) {
        const double apart =
            double(to.at(denoised.data, c, y, x)) - double(plain.at(expected.data, c, y, x));
        require(apart > -1e-3 && apart < 1e-3, "strides, tiles and threads change nothing");
    });
}

// Groups, then forward and backward through some stages.
template <typename T>
void train(Choices &choices, const nlnet_network *network, const plain::Config &config,
           bool sound) {
    const int64_t batch = choices.number(1, 3), height = choices.number(3, 50),
                  width = choices.number(3, 70);
    const int32_t threads = int32_t(choices.number(1, 4));
    nlnet_match_task match = {batch, height, width, nullptr, nullptr, threads};
    nlnet_forward_task forward = {};
    forward.batch = batch;
    forward.height = height;
    forward.width = width;
    forward.first_stage = int32_t(choices.below(4) ? 0 : choices.number(0, 2));
    forward.last_stage = int32_t(choices.below(4) ? config.stages : choices.number(0, 2));
    forward.high = choices.below(4) ? 255 : -1;
    forward.project_last = choices.below(2);
    forward.threads = threads;
    size_t size = 0;
    if (nlnet_match(network, &match, nullptr, &size, nullptr) != NLNET_OK ||
        nlnet_forward(network, &forward, nullptr, &size, nullptr) != NLNET_OK ||
        !is_small(batch, height, width) || !sound) {
        return;
    }
    const int64_t stages = forward.last_stage - forward.first_stage;
    const size_t pixels = size_t(batch * height * width), values = pixels * size_t(config.channels);
    const Array<T> luminance(pixels), noisy(values), cotangent(values);
    const Array<int8_t> groups(pixels * size_t(config.group) * 2);
    for (size_t i = 0; i < pixels; i++) luminance.data[i] = T((i * i + i / 3) % 251);
    for (size_t i = 0; i < values; i++) noisy.data[i] = T((i * i + i / 3) % 251);
    for (size_t i = 0; i < values; i++) cotangent.data[i] = T(int(i % 7) - 3);
    match.images = luminance.data;
    match.groups = groups.data;
    if (!run(choices, nlnet_match, network, match, threads)) return;
    for (size_t i = 0; i < pixels; i++) {
        const int8_t *first = groups.data + i * size_t(config.group) * 2;
        require(first[0] == 0 && first[1] == 0, "a patch is the first of its group");
    }
    const size_t steps = size_t(stages), filters = size_t(config.filters());
    const Array<T> updates(steps * values), estimates(steps * values);
    forward.estimate = forward.noisy = noisy.data;
    forward.groups = groups.data;
    forward.updates = updates.data;
    forward.estimates = estimates.data;
    if (!run(choices, nlnet_forward, network, forward, threads)) return;
    const Array<T> estimate_gradient(values), noisy_gradient(values);
    const Array<double> filter_gradient(steps * filters * size_t(config.pixels()));
    const Array<double> weights(steps * size_t(config.group)), step_sizes(steps);
    const Array<double> coefficients(steps * size_t(config.mixtures()));
    const nlnet_backward_task backward = {forward,
                                          cotangent.data,
                                          estimate_gradient.data,
                                          noisy_gradient.data,
                                          filter_gradient.data,
                                          weights.data,
                                          coefficients.data,
                                          step_sizes.data};
    run(choices, nlnet_backward, network, backward, threads);
}

template <typename T>
void run_case(Choices &choices) {
    const plain::Config config = fuzz::small_config(choices);
    check::Random random = {choices.word() | 1};
    plain::Network values = plain::random_network(config, &random);
    size_t bytes = 0;
    unsigned char *whole = plain::block_of<T>(values, &bytes);
    plain::release(&values);
    const bool sound = choices.below(2) != 0;
    const bool spoilt = !sound && config.refinement.levels > 0 && choices.below(3) == 0;
    const size_t refinement = plain::refinement_start(config, sizeof(T));
    if (spoilt) {
        fuzz::spoil(choices, whole + refinement, config.refinement.levels);
    } else if (!sound) {
        fuzz::damage(choices, whole, &bytes, refinement);
    }
    // Of exactly its size, so that a sanitizer sees what is read behind its end.
    unsigned char *block = static_cast<unsigned char *>(malloc(bytes ? bytes : 1));
    memcpy(block, whole, bytes);
    free(whole);

    if (sound && config.refinement.levels == 0) fuzz::run_family(choices, block, bytes);
    const nlnet_element element = sizeof(T) == 4 ? NLNET_FLOAT : NLNET_DOUBLE;
    const nlnet_set set = nlnet_set(choices.below(6));
    const auto make = [&](void *memory, size_t *size, nlnet_network **network) {
        return nlnet_network_make(block, bytes, element, set, memory, size, network);
    };
    size_t size = 0;
    const nlnet_status status = make(nullptr, &size, nullptr);
    require(!sound || status == NLNET_OK || status == NLNET_NO_SUCH_SET, "a sound block is taken");
    if (status == NLNET_OK && size <= kMostMemory) {
        const Array<char> memory(size);
        nlnet_network *network = nullptr;
        refuse_bad_memory(make, memory.data, size, &network);
        const nlnet_status made = make(memory.data, &size, &network);
        require(!spoilt || made == NLNET_BAD_BLOCK, "a refinement out of its bounds is refused");
        if (made == NLNET_OK) {
            const bool color = block[16] == 3;  // as the block says now
            if (sizeof(T) == 4 && choices.below(3) == 0) {
                fuzz::run_removal(choices, network, color ? 3 : 1);
            } else if (choices.below(3)) {
                denoise<T>(choices, network, color ? 3 : 1, sound);
            } else {
                train<T>(choices, network, config, sound);
            }
        }
    }
    free(block);
}

void run_case(const uint8_t *data, size_t size) {
    Choices choices = {data, size};
    switch (choices.below(8)) {
        case 0: return fuzz::run_noise(choices);
        case 1:
        case 2: return fuzz::run_eye(choices);
        default: break;
    }
    choices.below(3) ? run_case<float>(choices) : run_case<double>(choices);
}

}  // namespace

#ifdef NLNET_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_case(data, size);
    return 0;
}

#else

int main(int count, char **arguments) {
    uint64_t seed = 1;
    long cases = 1000;
    for (int i = 1; i < count; i++) {
        const bool more = i + 1 < count;
        if (!strcmp(arguments[i], "--threads")) {
            fuzz::all_threads = true;
        } else if (more && !strcmp(arguments[i], "--seed")) {
            seed = strtoull(arguments[++i], nullptr, 10);
        } else if (more && !strcmp(arguments[i], "--cases")) {
            cases = atol(arguments[++i]);
        } else {
            fprintf(stderr, "usage: fuzz [--threads] [--seed NUMBER] [--cases NUMBER]\n");
            return 2;
        }
    }
    check::Random random = {seed * 2 + 1};
    for (; case_number < cases; case_number++) {
        uint8_t data[256];
        for (uint8_t &byte : data) byte = uint8_t(random.next() >> 40);
        run_case(data, sizeof(data));
    }
    printf("%ld cases\n", cases);
    return 0;
}

#endif
