/* SPDX-License-Identifier: MIT
 *
 * Calls of modules that keep no intermediate tensors for backward (core/grad/recompute.c). */
#include "core/module/internal.h"

/* Modules that are called one after the other. The container of these modules is not held: if it
 * kept a tensor that its own forward recorded, the two would keep each other alive forever. */
struct part {
    int64_t n_in, n_out, count;
    tn_module *modules[]; /* owned */
};

static void part_free(void *user)
{
    struct part *part = user;

    for (int64_t i = 0; i < part->count; i++)
        tn_module_drop(part->modules[i]);
    tn_free(part);
}

static struct part *part_new(int64_t n_in, int64_t n_out, int64_t most)
{
    struct part *part = tn_malloc(sizeof *part + (size_t)most * sizeof(tn_module *));

    if (part != NULL)
        *part = (struct part){ n_in, n_out, 0 };
    return part;
}

static void part_add(struct part *part, tn_module *module)
{
    if (module != NULL)
        part->modules[part->count++] = tn_module_keep(module);
}

static tn_status part_call(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const struct part *part = user;
    tn_tensor *x = part->n_in > 0 ? in[0] : NULL;

    if (part->count == 1)
        return tn_module_call_many(part->modules[0], in, part->n_in, out, part->n_out);
    for (int64_t i = 0; i < part->count && x != NULL; i++)
        x = tn_module_call(part->modules[i], x);
    out[0] = x;
    return x != NULL ? TN_OK : tn_error_last_code();
}

/* Takes over the part. */
static tn_status part_recompute(struct part *part, tn_tensor *const *in, tn_tensor **out,
                                uint32_t flags)
{
    return tn_recompute_call(part_call, part, part_free, in, part->n_in, out, part->n_out, flags);
}

tn_status tn_module_recompute(tn_module *module, tn_tensor *const *inputs, int64_t n_inputs,
                              tn_tensor **outputs, int64_t n_outputs, uint32_t flags)
{
    struct part *part;

    if (module == NULL || (inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0))
        return tn_error_null(module == NULL                   ? "tn_module_recompute: module"
                             : inputs == NULL && n_inputs > 0 ? "tn_module_recompute: inputs"
                                                              : "tn_module_recompute: outputs");
    part = part_new(n_inputs, n_outputs, 1);
    if (part == NULL)
        return TN_ERR_MEMORY;
    part_add(part, module);
    return part_recompute(part, inputs, outputs, flags);
}

tn_tensor *tn_module_recompute_sequential(tn_module *module, int64_t segments, tn_tensor *input,
                                          uint32_t flags)
{
    int64_t count, size;

    if (module == NULL || input == NULL) {
        tn__error_null_of("tn_module_recompute_sequential", "module, input", module, input);
        return NULL;
    }
    count = tn_module_child_count(module);
    if (segments < 1 || segments > count) {
        tn_fail(TN_ERR_VALUE,
                "tn_module_recompute_sequential: segments: out of range, got %lld; expected 1 to "
                "%lld, the number of children of %s",
                (long long)segments, (long long)count, module->type);
        return NULL;
    }
    size = count / segments;
    for (int64_t i = 0; i < segments && input != NULL; i++) {
        int64_t last = i + 1 < segments ? (i + 1) * size : count;
        struct part *part = part_new(1, 1, last - i * size);
        tn_tensor *output = NULL;
        tn_status status = TN_ERR_MEMORY;

        if (part == NULL)
            return NULL;
        for (int64_t k = i * size; k < last; k++)
            part_add(part, tn_module_child_at(module, k));
        if (i + 1 < segments) {
            status = part_recompute(part, &input, &output, flags);
        } else { /* nothing is gained by running it again: backward begins with it */
            status = part_call(part, &input, &output);
            part_free(part);
        }
        input = status == TN_OK ? output : NULL;
    }
    return input;
}
