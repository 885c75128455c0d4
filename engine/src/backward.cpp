// Training's backward pass, Appendix A: the stages in reverse, and the gradients of their values.
//
// With z for a stage's input, e for the cotangent of its u, s = L_r z and d = L_r e, the sums over
// r are, all negated:
//
//     pi    rho_j(s) d, by way of psi's table
//     F     psi(s) (B_r e)^T + psi'(s) d (B_r z)^T, where B_r sums a group's patches
//     w_k   psi(s)^T F P_k e + (psi'(s) d)^T F P_k z
//     z     L_r^T (psi'(s) d) - (1 - gamma) e
//
// Every image adds up its own, chunk by chunk of its tiles and from the top down; these sums are
// added in order at the end. So the gradients are the same for any number of threads.
#include "training.h"

namespace nlnet {
namespace {

constexpr int kChunk = 2;  // tiles that share their sums

template <typename T>
struct Backward : Training<T> {
    nlnet_backward_task gradients;
    T *sums;            // (passes, batch, chunks, sum_size)
    double *step_sums;  // (passes, batch)

    int stage_of(int pass) const { return this->stage_count() - 1 - pass; }

    // Elements of the sums of one chunk: those of F, w and psi's table.
    static int64_t sum_size(const Shape &shape) {
        const int64_t filters = shape.filters();
        const int64_t table = shape.channels * filters * shape.intervals * 4;
        return round_up(filters * shape.pixels() + shape.group + table + 3 * kRoom, kRoom);
    }
    T *filter_sums(int pass, int64_t image, int64_t chunk) const {
        const int64_t number = (pass * this->plan.batch + image) * this->plan.chunks() + chunk;
        return sums + number * sum_size(this->shape());
    }
    int64_t weights_at() const { return this->shape().filters() * this->shape().pixels() + kRoom; }
    int64_t table_at() const { return weights_at() + this->shape().group + kRoom; }
    int64_t table_size() const {
        return int64_t(this->shape().filters()) * this->shape().intervals * 4;
    }

    // The cotangent of u of the pass's stage.
    Planes<T> cotangent(const Task &step) const {
        return step.pass == 0 ? this->read_rows(step) : this->between(step, step.pass - 1);
    }

    void project(int number, int64_t image, int64_t y, const RowOf<T> &row) const {
        if (number < 0 || !this->projects(number)) return;
        const int channels = this->shape().channels;
        const Planes<T> updates = this->recorded(this->task.updates, number, image);
        this->kernels().project_backward(channels, RowOf<T>(updates, channels, y).channels,
                                         row.channels, this->box, this->plan.width);
    }

    void read(const Task &step) const {
        const int channels = this->shape().channels;
        const Planes<T> from = this->image_of(gradients.cotangent, step.image);
        const Planes<T> to = this->read_rows(step);
        for (int64_t y = step.first; y < step.last; y++) {
            const RowOf<T> row(to, channels, y);
            for (int channel = 0; channel < channels; channel++) {
                __builtin_memcpy(row.channels[channel], from.row(channel, y),
                                 size_t(this->plan.width) * sizeof(T));
            }
            project(stage_of(0), step.image, y, row);
        }
    }

    void spread(const Task &step, void *scratch) const {
        const int number = stage_of(step.pass);
        const Planes<T> estimate = this->estimate(number, step.image), errors = cotangent(step);
        T *here = filter_sums(step.pass, step.image, step.first / this->plan.chunk);
        if (step.row == 0) {
            __builtin_memset(here, 0, size_t(sum_size(this->shape())) * sizeof(T));
        }
        for (int64_t column = step.first; column < step.last; column++) {
            for (int channel = 0; channel < this->shape().channels; channel++) {
                const StageSums<T> to = {here, here + weights_at(),
                                         here + table_at() + channel * table_size()};
                this->kernels().differentiate(
                    this->shape(), this->run_stage(number), channel,
                    this->tile(step, channel, column, estimate.read(channel), this->groups(step)),
                    errors.read(channel), to, scratch);
            }
        }
    }

    // Rows of the cotangent of the stage's input, and what they say of the step size and of y.
    void finish(const Task &step, void *scratch) const {
        const int number = stage_of(step.pass), channels = this->shape().channels;
        const int64_t width = this->plan.width;
        const T step_size = this->run_stage(number).step_size;
        T *line = static_cast<T *>(scratch);
        const Planes<T> errors = cotangent(step), estimate = this->estimate(number, step.image);
        const Planes<T> noisy = this->image_of(this->task.noisy, step.image);
        const Planes<T> noisy_gradient = this->image_of(gradients.noisy_gradient, step.image);
        const Planes<T> result = step.pass + 1 == this->plan.passes
                                     ? this->image_of(gradients.estimate_gradient, step.image)
                                     : this->between(step, step.pass);
        double *step_sum = step_sums + step.pass * this->plan.batch + step.image;
        if (step.first == 0) *step_sum = 0;
        for (int64_t y = step.first; y < step.last; y++) {
            const RowOf<T> row(result, channels, y);
            for (int channel = 0; channel < channels; channel++) {
                const T *error = errors.row(channel, y);
                T *pull = noisy_gradient.row(channel, y), *out = row.channels[channel];
                *step_sum += this->kernels().step_gradient(error, noisy.row(channel, y),
                                                           estimate.row(channel, y), width);
                this->kernels().fold(this->shape(), this->parts(step, channel), this->plan.height,
                                     width, y, line, out);
                for (int64_t x = 0; x < width; x++) {
                    out[x] = (1 - step_size) * error[x] - out[x];  // Eq. (49)
                    pull[x] = (step.pass == 0 ? T(0) : pull[x]) + step_size * error[x];
                }
            }
            project(number - 1, step.image, y, row);
        }
    }

    // Add up the sums of all chunks of all images, in order and in double precision.
    double total(int pass, int64_t at) const {
        double sum = 0;
        for (int64_t image = 0; image < this->plan.batch; image++) {
            for (int64_t chunk = 0; chunk < this->plan.chunks(); chunk++) {
                sum += filter_sums(pass, image, chunk)[at];
            }
        }
        return sum;
    }

    void reduce(const Task &step, void *scratch) const {
        const Shape &shape = this->shape();
        const int number = stage_of(step.pass);
        const int64_t filters = int64_t(shape.filters()) * shape.pixels();
        for (int64_t i = 0; i < filters; i++) {
            gradients.filters[number * filters + i] = -total(step.pass, i);  // Eq. (45)
        }
        for (int64_t k = 0; k < shape.group; k++) {
            gradients.group_weights[int64_t(number) * shape.group + k] =
                -total(step.pass, weights_at() + k);  // Eq. (41)
        }
        const int64_t mixtures = int64_t(shape.channels) * shape.filters();
        for (int64_t i = 0; i < mixtures; i++) {
            reduce_mixture(
                step.pass, i, static_cast<double *>(scratch),
                gradients.coefficients + (number * mixtures + i) * int64_t(shape.rbf_count));
        }
        double sum = 0;
        for (int64_t image = 0; image < this->plan.batch; image++) {
            sum += step_sums[step.pass * this->plan.batch + image];
        }
        gradients.step_sizes[number] = sum;  // Eq. (29)
    }

    // Eq. (35) for one mixture: from the table's cubics to its nodes, and on to the Gaussians.
    void reduce_mixture(int pass, int64_t mixture, double *scratch, double *coefficients) const {
        const Shape &shape = this->shape();
        const Grid &grid = this->network->grid;
        const int64_t length = int64_t(shape.intervals) * 4;
        double *cubics = scratch, *values = cubics + length, *slopes = values + grid.nodes;
        for (int64_t i = 0; i < length + 2 * grid.nodes; i++) scratch[i] = 0;
        for (int64_t image = 0; image < this->plan.batch; image++) {
            for (int64_t chunk = 0; chunk < this->plan.chunks(); chunk++) {
                const T *part = filter_sums(pass, image, chunk) + table_at() + mixture * length;
                for (int64_t i = 0; i < length; i++) cubics[i] += part[i];
            }
        }
        for (int n = 0; n < shape.intervals; n++) {
            const double *c = cubics + 4 * n;
            values[n] += c[0] - 3 * c[2] + 2 * c[3];
            values[n + 1] += 3 * c[2] - 2 * c[3];
            slopes[n] += c[1] - 2 * c[2] + c[3];
            slopes[n + 1] += c[3] - c[2];
        }
        for (int j = 0; j < shape.rbf_count; j++) {
            const double *value = grid.values + int64_t(j) * grid.nodes;
            const double *slope = grid.slopes + int64_t(j) * grid.nodes;
            double sum[2] = {0, 0};
            for (int n = 0; n < grid.nodes; n++) {
                sum[0] += values[n] * value[n];
                sum[1] += slopes[n] * slope[n];
            }
            coefficients[j] = -(sum[0] + sum[1]);
        }
    }

    static bool run_task(nlnet_job *job, const Task &step, void *scratch) {
        const Backward &self = *static_cast<Backward *>(job);
        switch (step.step) {
            case Step::kRead: self.read(step); break;
            case Step::kSpread: self.spread(step, scratch); break;
            case Step::kReduce: self.reduce(step, scratch); break;
            default: self.finish(step, scratch);
        }
        return true;
    }
};

template <typename T>
nlnet_job *make(const nlnet_network *network, const nlnet_backward_task &task, Memory &memory) {
    const Shape &shape = network->shape;
    Plan plan = training_plan(network, task.forward);
    plan.reads = plan.reduces = true;
    plan.chunk = kChunk;
    const StageKernels<T> &kernels = stage_kernels<T>(*network->kernels);
    const size_t reducing = size_t(shape.intervals * 4 + 2 * network->grid.nodes) * sizeof(double);
    size_t scratch = kernels.differentiate_scratch(shape, plan.tile_rows);
    scratch = larger_size(scratch, finish_scratch<T>(shape, plan.width));
    scratch = larger_size(scratch, reducing);
    Backward<T> *job = memory.take<Backward<T>>(1);
    make_run<T>(job, network, plan, LayerSchedule(),
                make_box<T>(task.forward.low, task.forward.high), task.forward.threads, scratch,
                memory);
    T *sums = memory.take<T>(plan.passes, plan.batch, plan.chunks(), Backward<T>::sum_size(shape));
    double *step_sums = memory.take<double>(plan.passes, plan.batch);
    if (job == nullptr) return nullptr;
    start_job(job);
    job->run = Backward<T>::run_task;
    job->task = task.forward;
    job->gradients = task;
    job->sums = sums;
    job->step_sums = step_sums;
    return job;
}

}  // namespace
}  // namespace nlnet

using namespace nlnet;

nlnet_status nlnet_backward(const nlnet_network *network, const nlnet_backward_task *task,
                            void *memory, size_t *size, nlnet_job **job) {
    if (task == nullptr) return NLNET_BAD_ARGUMENT;
    const nlnet_status status = check_forward(network, &task->forward, memory != nullptr);
    if (status != NLNET_OK) return status;
    if (memory != nullptr &&
        (!task->cotangent || !task->estimate_gradient || !task->noisy_gradient || !task->filters ||
         !task->group_weights || !task->coefficients || !task->step_sizes)) {
        return NLNET_BAD_ARGUMENT;
    }
    return make_in(memory, size, job, [&](Memory &pieces) {
        return network->element == NLNET_FLOAT ? make<float>(network, *task, pieces)
                                               : make<double>(network, *task, pieces);
    });
}
