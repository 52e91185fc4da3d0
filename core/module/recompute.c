/* SPDX-License-Identifier: MIT
 *
 * Calls of modules that keep no intermediate tensors for backward (core/grad/recompute.c). */
#include "core/module/internal.h"

/* A module and the range of its children to call; last -1: the module itself. */
struct part {
    tn_module *module;
    int64_t first, last;
    int64_t n_in, n_out;
};

static void part_free(void *user)
{
    struct part *part = user;

    tn_module_drop(part->module);
    tn_free(part);
}

static tn_status part_call(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const struct part *part = user;
    tn_tensor *x = part->n_in > 0 ? in[0] : NULL;

    if (part->last < 0)
        return tn_module_call_many(part->module, in, part->n_in, out, part->n_out);
    for (int64_t i = part->first; i < part->last && x != NULL; i++) {
        tn_module *child = tn_module_child_at(part->module, i);

        x = child != NULL ? tn_module_call(child, x) : x;
    }
    out[0] = x;
    return x != NULL ? TN_OK : tn_error_last_code();
}

static tn_status part_checkpoint(struct part with, tn_tensor *const *in, tn_tensor **out,
                                 uint32_t flags)
{
    struct part *part = tn_malloc(sizeof *part);

    if (part == NULL)
        return TN_ERR_MEMORY;
    *part = with;
    tn_module_keep(part->module);
    return tn_checkpoint_call(part_call, part, part_free, in, with.n_in, out, with.n_out, flags);
}

tn_status tn_module_checkpoint(tn_module *module, tn_tensor *const *inputs, int64_t n_inputs,
                               tn_tensor **outputs, int64_t n_outputs, uint32_t flags)
{
    const struct part part = { module, 0, -1, n_inputs, n_outputs };

    if (module == NULL || (inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0))
        return tn__error_null_input(module == NULL ? "tn_module_checkpoint: module"
                                    : inputs == NULL && n_inputs > 0
                                        ? "tn_module_checkpoint: inputs"
                                        : "tn_module_checkpoint: outputs");
    return part_checkpoint(part, inputs, outputs, flags);
}

tn_tensor *tn_module_checkpoint_sequential(tn_module *module, int64_t segments, tn_tensor *input,
                                           uint32_t flags)
{
    int64_t count, size;

    if (module == NULL || input == NULL) {
        tn__error_null_of("tn_module_checkpoint_sequential", "module, input", module, input);
        return NULL;
    }
    count = tn_module_child_count(module);
    if (segments < 1 || segments > count) {
        tn_fail(TN_ERR_VALUE,
                "tn_module_checkpoint_sequential: segments: out of range, got %lld; expected 1 to "
                "%lld, the number of children of %s",
                (long long)segments, (long long)count, module->type);
        return NULL;
    }
    size = count / segments;
    for (int64_t i = 0; i < segments && input != NULL; i++) {
        const struct part part = { module, i * size, i + 1 < segments ? (i + 1) * size : count, 1,
                                   1 };
        tn_tensor *output = NULL;
        /* Nothing is gained by running the last segment again: backward begins with it. */
        tn_status status = i + 1 < segments ? part_checkpoint(part, &input, &output, flags)
                                            : part_call((void *)(uintptr_t)&part, &input, &output);

        input = status == TN_OK ? output : NULL;
    }
    return input;
}
