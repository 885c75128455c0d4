// Gradients of the backward pass against differences of the forward pass.
#include "job_case.h"

namespace {

using namespace jobs;

// The forward pass in double precision, and sum(weights * result).
double loss(const Made<double> &made, const nlnet_forward_task &task, const double *weights,
            int64_t size, int stages) {
    run_task(nlnet_forward, made.network, task, task.threads);
    const double *result = static_cast<double *>(task.estimates) + (stages - 1) * size;
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += weights[i] * result[i];
    return sum;
}

// Compare a gradient with differences of the loss, a function of how far a value is moved. Where a
// step meets kinks of the clips, that to one side, or a smaller one, need not.
template <typename Loss>
void compare(double gradient, const Loss &loss_at, const char *name, check::Report &report) {
    const double here = loss_at(0);
    double measured = 0;
    bool close = false;
    for (double h = 1e-6; h > 1e-8 && !close; h /= 5) {
        const double low = loss_at(-h), high = loss_at(h);
        measured = (high - low) / (2 * h);
        const double slopes[] = {measured, (high - here) / h, (here - low) / h};
        for (const double slope : slopes) {
            close = close || fabs(gradient - slope) <= 2e-5 * (fabs(slope) + 1);
        }
    }
    report.expect(close, "gradient of %s: %.9g, by differences %.9g", name, gradient, measured);
}

void differentiates(check::Random *random, nlnet_set set, check::Report &report) {
    Case<double> image(random_config(random), random, set);
    plain::Network &values = image.values;
    const plain::Config &config = values.config;
    const int stages = config.stages;
    const int64_t size = image.size;
    double *updates = plain::numbers(stages * size), *estimates = plain::numbers(stages * size);
    double *weights = plain::numbers(size), *gradient = plain::numbers(size);
    double *noisy_gradient = plain::numbers(size), *moved = plain::numbers(size);
    double *filters = plain::numbers(int64_t(stages) * config.filters() * config.pixels());
    double *group_weights = plain::numbers(stages * config.group);
    double *coefficients = plain::numbers(stages * config.mixtures());
    double *step_sizes = plain::numbers(stages);
    for (int64_t i = 0; i < size; i++) weights[i] = random->uniform() - 0.5;
    const int threads = 1 + int(random->below(3));
    nlnet_forward_task task = {
        1,       image.height, image.width, 0, stages, image.working, image.working, image.groups,
        updates, estimates,    1,           0, 1,      threads};
    if (random->below(2)) {
        task.low = 40;
        task.high = 200;
    }
    {
        const Made<double> made(values, set);
        loss(made, task, weights, size, stages);
        const nlnet_backward_task back = {task,    weights,       gradient,     noisy_gradient,
                                          filters, group_weights, coefficients, step_sizes};
        report.expect(run_task(nlnet_backward, made.network, back, threads) == NLNET_OK,
                      "the backward pass did not run");
    }
    // One value of each kind at a time.
    const int s = int(random->below(uint32_t(stages)));
    plain::StageValues &stage = values.stages[s];
    const int64_t f = random->below(uint32_t(config.filters() * config.pixels()));
    const int64_t k = random->below(uint32_t(config.group));
    const int64_t c = random->below(uint32_t(config.mixtures()));
    struct {
        double *value, gradient;
        const char *name;
    } probes[] = {
        {stage.filters + f, filters[int64_t(s) * config.filters() * config.pixels() + f], "F"},
        {stage.weights + k, group_weights[s * config.group + k], "w"},
        {stage.coefficients + c, coefficients[s * config.mixtures() + c], "pi"},
        {&stage.step_size, step_sizes[s], "gamma"},
    };
    for (const auto &probe : probes) {
        const double before = *probe.value;
        const auto loss_at = [&](double step) {
            *probe.value = before + step;
            const Made<double> made(values, set);
            return loss(made, task, weights, size, stages);
        };
        compare(probe.gradient, loss_at, probe.name, report);
        *probe.value = before;
    }
    const Made<double> made(values, set);
    for (int which = 0; which < 2; which++) {
        const int64_t at = random->below(uint32_t(size));
        const auto loss_at = [&](double step) {
            memcpy(moved, image.working, size_t(size) * sizeof(double));
            moved[at] += step;
            nlnet_forward_task there = task;
            (which ? there.noisy : there.estimate) = moved;
            return loss(made, there, weights, size, stages);
        };
        compare(which ? noisy_gradient[at] : gradient[at], loss_at, which ? "y" : "x", report);
    }
    double *const arrays[] = {updates, estimates, weights,       gradient,     noisy_gradient,
                              moved,   filters,   group_weights, coefficients, step_sizes};
    for (double *array : arrays) free(array);
}

}  // namespace

void check::check_gradients(const nlnet::Kernels &kernels, int rounds, Random random,
                            Report &report) {
    for (int round = 0; round < rounds / 4; round++) {
        differentiates(&random, set_of(kernels), report);
    }
}
