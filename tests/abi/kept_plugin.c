/* SPDX-License-Identifier: MIT
 *
 * A plugin with one contribution of each kind, as a third party would keep it: kept.sh compiles it
 * against the headers of two revisions and loads each binary in the hosts of both.
 *   -DNEW       calls the function that revision B added, and fills the member that it added
 *   -DMEMBER    fills that member only
 *   -DNEW_FLAG  has a second layer with a flag that no host knows */
#include <stdlib.h>
#include <string.h>

#include <tenon/plugin.h>

/* ---- a device of host memory ----------------------------------------------------------------- */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status open_device(const tn_backend_def *self, int32_t index, void **device)
{
    static char the_device;

    (void)self, (void)index;
    *device = &the_device;
    return TN_OK;
}

static void close_device(void *device)
{
    (void)device;
}

static tn_status alloc(void *device, tn_memory *memory)
{
    (void)device;
    memory->handle = aligned_alloc(64, (memory->bytes + 63) / 64 * 64);
    return memory->handle != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "kept: out of memory");
}

static void free_memory(void *device, const tn_memory *memory)
{
    (void)device;
    free(memory->handle);
}

static tn_status copy(void *device, const tn_copy_args *args)
{
    (void)device;
    memcpy((char *)args->to.memory + args->to.offset, (char *)args->from.memory + args->from.offset,
           args->bytes);
    return TN_OK;
}

static const tn_backend_def backend = { TN_HEAD(tn_backend_def), .type = "kept",
                                        .help = "host memory",   .flags = TN_BACKEND_HOST_MEMORY,
                                        .enumerate = enumerate,  .open = open_device,
                                        .close = close_device,   .alloc = alloc,
                                        .free = free_memory,     .copy = copy };

/* ---- an operator and its kernel: y = factor * x ---------------------------------------------- */

struct options {
    uint32_t size;
    double factor;
};
static const struct options defaults = { sizeof(struct options), 2 };
static const tn_option op_options[] = { TN_OPTION_FLOAT(struct options, factor, "2.0", "factor"),
                                        TN_OPTION_END };

static tn_status infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = tn_view_dtype(x);
    infer->out[0].ndim = x->ndim;
    memcpy(infer->out[0].shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
    return TN_OK;
}

static tn_status run(const tn_call *call)
{
    const struct options *o = call->options;
    const float *x = (const float *)((const char *)call->in[0]->data + call->in[0]->byte_offset);
    float *y = (float *)((char *)call->out[0]->data + call->out[0]->byte_offset);
    int64_t count = 1;

    for (int32_t d = 0; d < call->in[0]->ndim; d++)
        count *= call->in[0]->shape[d];
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)(o->factor * x[i]);
    return TN_OK;
}

static const tn_operand inputs[] = { { "x", 0, TN_BIT(TN_F32) } };
static const tn_operand outputs[] = { { "y", 0, 0 } };
static const tn_op_def op = {
    TN_HEAD(tn_op_def),    .name = "kept_times",  .math = "y = factor * x",
    .help = "An example.", .revision = 1,         .inputs = inputs,
    .n_inputs = 1,         .outputs = outputs,    .n_outputs = 1,
    .options = op_options, .defaults = &defaults, .options_size = sizeof(struct options),
    .infer = infer
};
static const tn_kernel_def kernel = TN_KERNEL("kept_times", "kept", "kept_times_f32",
                                              TN_BIT(TN_F32), run);

/* ---- a layer that calls it ------------------------------------------------------------------- */

struct layer {
    double factor;
};
static const tn_option layer_options[] = { TN_OPTION_FLOAT(struct layer, factor, "2.0", "factor"),
                                           TN_OPTION_END };

static tn_status build(tn_module *self)
{
    static const float one[2] = { 1, 1 };
    tn_tensor *weight = tn_parameter(tn_tensor_from(one, TN_F32, TN_SHAPE(2)), true);

    return tn_module_add_parameter(self, "weight", weight);
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    static tn_op_ref ref = { "kept_times", 1, NULL };
    const struct layer *layer = tn_module_data(self);
    struct options options = { sizeof options, layer->factor };

    return tn_op_call1(&ref, &x, 1, &options);
}

#if defined(NEW) || defined(MEMBER)
static int64_t added_later(int64_t x)
{
    return 3 * x;
}
#endif

static const tn_layer_def layer = { TN_HEAD(tn_layer_def),
                                    .name = "Kept",
                                    .help = "Multiplies.",
                                    .options = layer_options,
                                    .data_size = sizeof(struct layer),
                                    .build = build,
                                    .forward = forward,
#if defined(NEW) || defined(MEMBER)
                                    .added_later = added_later
#endif
};
#ifdef NEW_FLAG
static const tn_layer_def flagged = { TN_HEAD(tn_layer_def), .name = "Flagged", .forward = forward,
                                      .flags = UINT32_C(1) << 31 };
#endif

/* ---- an optimizer, a format, an observer ----------------------------------------------------- */

struct rule {
    double lr;
};
static const tn_option rule_options[] = { TN_OPTION_FLOAT(struct rule, lr, "0.5", "rate"),
                                          TN_OPTION_END };

/* parameter -= lr * gradient */
static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    const struct rule *rule = args->options;

    (void)self;
    for (int64_t i = 0; i < args->count; i++) {
        float *p = tn_tensor_data(args->parameters[i]), *g = tn_tensor_data(args->gradients[i]);
        if (p == NULL || g == NULL)
            return tn_error_last_code();
        for (int64_t j = 0; j < tn_tensor_numel(args->parameters[i]); j++)
            p[j] -= (float)rule->lr * g[j];
        if (tn_tensor_touch(args->parameters[i]) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

static const tn_optimizer_def optimizer = {
    TN_HEAD(tn_optimizer_def),        .name = "KeptDescent",
    .help = "Gradient descent.",      .options = rule_options,
    .data_size = sizeof(struct rule), .step = step
};

/* A file has the eight bytes "KEPTFILE" and one row of two numbers, which are called weight. */
static bool recognize(const tn_format_def *self, const tn_source *source)
{
    char magic[8];

    (void)self;
    return source->size == 16 && source->read(source->user, 0, magic, sizeof magic) == TN_OK &&
           !memcmp(magic, "KEPTFILE", sizeof magic);
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    tn_tensor *weight = tn_source_tensor(source, 8, TN_F32, TN_SHAPE(2));

    (void)self;
    return weight != NULL ? tn_state_set(state, "weight", weight) : tn_error_last_code();
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    float row[2];
    tn_tensor *weight = tn_state_count(state) == 1 ? tn_state_tensor(state, 0) : NULL;
    tn_status status;

    (void)self;
    if (weight == NULL)
        return tn_fail(TN_ERR_VALUE, "kept: expected one tensor");
    status = tn_tensor_copy_out(weight, row, sizeof row);
    if (status == TN_OK)
        status = sink->write(sink->user, "KEPTFILE", 8);
    if (status == TN_OK)
        status = sink->write(sink->user, row, sizeof row);
    return status;
}

static const tn_format_def format = { TN_HEAD(tn_format_def), .name = "kept",
                                      .help = "Two numbers.", .extensions = ".kept",
                                      .recognize = recognize, .load = load,
                                      .save = save,           .flags = TN_FORMAT_TEXTS };

/* Counts the calls of operators. */
static uint64_t op_begin(void *user, const tn_op_event *event)
{
    (void)event;
    ++*(int64_t *)user;
    return 0;
}

static int64_t calls;
static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "kept-count",
                                          .user = &calls, .op_begin = op_begin };

#ifdef NEW
static tn_status activate(const tn_plugin *self)
{
    (void)self;
    return tn_added_later("Kept", 1) == 3 ? TN_OK : tn_fail(TN_ERR_RUNTIME, "kept: added_later");
}
#endif

static const void *const contributions[] = { &backend, &op,        &kernel,
#ifdef NEW_FLAG
                                             &flagged,
#endif
                                             &layer,   &optimizer, &format, &observer };
static const tn_plugin plugin = { TN_HEAD(tn_plugin),
                                  .id = "org.example.kept",
                                  .version = "1.0.0",
                                  .contributions = contributions,
                                  .n_contributions = sizeof contributions / sizeof *contributions,
#ifdef NEW
                                  .activate = activate
#endif
};
TN_PLUGIN_EXPORT(plugin);
