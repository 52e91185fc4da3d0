/* SPDX-License-Identifier: MIT
 *
 * Plans as texts: the steps with their kernels and places, and what the plans of a module are for.
 */
#include "lib/plan/train.h"

static void print_step(tn__text *text, const tn__plan_binding *b, const tn__plan_step *step)
{
    static const char *const places[] = { "slab", "input", "result", "held", "block", "saved" };

    tn__text_add(text, "%s: %s", step->name, tn__plan_step_name(step));
    for (int64_t i = step->call.n_in; i < tn__plan_operands_of(step); i++) {
        const tn__plan_operand *operand = &b->operands[step->first + i];
        const tn__plan_root *root;

        if (operand->root < 0)
            continue;
        root = tn__plan_root_of(b, operand->root);
        tn__text_add(text, i < step->call.n_in + step->call.n_out ? " -> %s" : ", workspace %s",
                     tn_dtype_name(tn_view_dtype(&operand->view)));
        tn__tensor_text_ints(text, (tn_ints){ operand->view.shape, operand->view.ndim });
        tn__text_add(text, " in %s", places[root->place]);
        if (root->place == TN__PLAN_SLAB)
            tn__text_add(text, " at %llu", (unsigned long long)(root->offset + operand->within));
        if (b->roots[operand->root].same != operand->root)
            tn__text_add(text, ", in place");
    }
    tn__text_put(text, "\n", 1);
}

void tn__plan_print_steps(tn__text *text, const tn__plan_binding *b)
{
    for (int64_t i = 0; i < b->n_steps; i++)
        print_step(text, b, &b->steps[i]);
}

/* ---- plans of training ----------------------------------------------------------------------- */

static void print_meta(tn__text *text, const tn_meta *meta)
{
    tn__text_add(text, "%s", tn_dtype_name(meta->dtype));
    tn__tensor_text_ints(text, (tn_ints){ meta->shape, meta->ndim });
}

static void print_backward(tn__text *text, const tn__plan_train *t, const tn__plan_binding *b,
                           bool steps)
{
    tn__text_add(text, "  backward, for gradients of");
    for (int64_t i = 0; i < t->n_out; i++)
        if (tn__tensor_ok(b->like[i]))
            tn__text_add(text, " output %lld", (long long)i);
    tn__text_add(text, ": %lld step%s, %llu bytes for values\n", (long long)b->n_steps,
                 b->n_steps == 1 ? "" : "s", (unsigned long long)b->bytes);
    if (steps)
        tn__plan_print_steps(text, b);
}

static uint64_t saved_bytes(const tn__plan_train *t)
{
    uint64_t bytes = 0;

    for (int64_t i = 0; i < t->n_saved_roots; i++)
        bytes += t->forward->roots[t->saved_roots[i]].size;
    return bytes;
}

void tn__plan_print_training(tn__text *text, const tn__plan_train *t, bool steps)
{
    tn__text_add(text, "training plan for (");
    for (int64_t i = 0; i < t->n_in; i++) {
        tn__text_add(text, "%s", i > 0 ? ", " : "");
        print_meta(text, &t->inputs[i].meta);
    }
    if (t->why != NULL) {
        tn__text_add(text, ")%s\n  none: calls run eagerly: %s\n", t->grad ? " with gradients" : "",
                     t->why);
        return;
    }
    tn__text_add(text, ")%s\n  forward: %lld step%s, %llu bytes for values",
                 t->grad ? " with gradients" : "", (long long)t->forward->n_steps,
                 t->forward->n_steps == 1 ? "" : "s", (unsigned long long)t->forward->bytes);
    if (t->n_wants > 0)
        tn__text_add(text, ", of which %llu stay for backward", (unsigned long long)saved_bytes(t));
    if (t->blocks > 0)
        tn__text_add(text, "; draws %llu blocks of random numbers", (unsigned long long)t->blocks);
    tn__text_put(text, "\n", 1);
    if (steps)
        tn__plan_print_steps(text, t->forward);
    for (const tn__plan_binding *b = t->backwards; b != NULL; b = b->next)
        if (atomic_load_explicit(&b->used, memory_order_relaxed))
            print_backward(text, t, b, steps);
}
