/* SPDX-License-Identifier: MIT
 *
 * One descriptor of each kind through the macros of the SDK; compiled as C11 and as C++20 by
 * headers.sh. */
#include <tenon/plugin.h>

struct scale {
    double factor;
    int64_t count;
    bool bias;
    const char *mode;
    tn_ints dims;
    tn_floats weights;
};

static const tn_option options[] = { TN_OPTION_FLOAT(struct scale, factor, "1.0", "a number"),
                                     TN_OPTION_INT(struct scale, count, "1", "a count"),
                                     TN_OPTION_BOOL(struct scale, bias, "True", "a choice"),
                                     TN_OPTION_STRING(struct scale, mode, "\"zeros\"", "a word"),
                                     TN_OPTION_INTS(struct scale, dims, "[]", "a row"),
                                     TN_OPTION_FLOATS(struct scale, weights, "[]", "a row"),
                                     TN_OPTION_END };

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    const struct scale *scale = (const struct scale *)tn_module_data(self);
    return tn_mul_scalar(tn_relu(input), scale->factor);
}

static tn_status run(const tn_call *call)
{
    return call->n_in > 0 ? TN_OK : tn_fail(TN_ERR_VALUE, "%s: no input", call->op);
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    (void)self, (void)args;
    return TN_OK;
}

static tn_status schedule(tn_scheduler *self, tn_schedule_args *args)
{
    (void)self;
    args->rates[0] = args->initial[0];
    return TN_OK;
}

static tn_status fill(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    (void)data;
    return tensor ? TN_OK : TN_ERR_VALUE;
}

static const tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = "Scale", .options = options,
                                    .data_size = sizeof(struct scale), .forward = forward };
static const tn_kernel_def kernel = TN_KERNEL("relu", "cpu", "tn_relu_f32", TN_BIT(TN_F32), run);
static const tn_backend_def backend = { TN_HEAD(tn_backend_def), .type = "mine" };
static const tn_op_def op = { TN_HEAD(tn_op_def), .name = "mine", .revision = 1 };
static const tn_optimizer_def optimizer = { TN_HEAD(tn_optimizer_def), .name = "Mine",
                                            .step = step };
static const tn_scheduler_def scheduler = { TN_HEAD(tn_scheduler_def), .name = "Mine",
                                            .step = schedule };
static const tn_init_def init = { TN_HEAD(tn_init_def), .name = "mine", .fill = fill };
static const tn_format_def format = { TN_HEAD(tn_format_def), .name = "mine" };
static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "mine" };

static tn_status pass(const tn_pass_def *self, const tn_pass_args *args)
{
    (void)self;
    return tn_graph_lint(args->graph);
}

static const tn_pass_def lint = { TN_HEAD(tn_pass_def), .name = "mine", .run = pass };
static const tn_compiler_def compiler = { TN_HEAD(tn_compiler_def), .name = "mine",
                                          .device = "cpu" };
static const tn_comm_def comm = { TN_HEAD(tn_comm_def), .name = "mine" };
static const tn_dataset_def dataset = { TN_HEAD(tn_dataset_def), .name = "Mine" };
static const tn_transform_def transform = { TN_HEAD(tn_transform_def), .name = "Mine" };
static const tn_prune_def prune = { TN_HEAD(tn_prune_def), .name = "Mine" };

TN_PLUGIN("org.example.descriptors", "1.0.0", &layer, &kernel, &backend, &op, &optimizer,
          &scheduler, &init, &format, &observer, &lint, &compiler, &comm, &dataset, &transform,
          &prune);
