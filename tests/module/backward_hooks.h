/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of backward hooks: hooks that store the gradients that they got and may
 * replace them, and layers with different backward graphs. */
#ifndef TN_TESTS_MODULE_BACKWARD_HOOKS_H
#define TN_TESTS_MODULE_BACKWARD_HOOKS_H

#include "tests/module/hooks.h"

/* What the hook saw of the last gradients, as text: "42,none" */
struct grads {
    char letter;
    double times; /* replaces every gradient with so many times it */
    double set;   /* replaces every gradient with this number */
    int extra;    /* the number of additional values in the replacement */
    bool fail;
    int calls;
    char in[64], out[64];
    int64_t in_ndim, in_size;
};

static TN_ATTR(unused) void shown(const tn_pack *pack, char *out, size_t size)
{
    out[0] = '\0';
    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        size_t at = strlen(out);
        const char *comma = i > 0 ? "," : "";
        if (tn_pack_at(pack, i).kind == TN_VALUE_NONE)
            tn_snprint(out + at, size - at, "%snone", comma);
        else
            tn_snprint(out + at, size - at, "%s%g", comma, (double)first(tn_pack_tensor(pack, i)));
    }
}

static TN_ATTR(unused) tn_status
    answer(struct grads *g, const tn_pack *seen, tn_pack *replacement, tn_hook_outcome *outcome)
{
    strncat(trace, &g->letter, 1);
    g->calls++;
    if (g->fail)
        return tn_fail(TN_ERR_INDEX, "hook %c fails", g->letter);
    if (g->times == 0 && g->set == 0 && g->extra == 0)
        return TN_OK;
    *outcome = TN_OUTCOME_REPLACED;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_pack_count(seen) + g->extra && status == TN_OK; i++) {
        tn_value value = { .kind = TN_VALUE_NONE };
        if (i < tn_pack_count(seen) && tn_pack_at(seen, i).kind == TN_VALUE_TENSOR) {
            tn_tensor *t = tn_pack_tensor(seen, i);
            value = tn_value_tensor(
                g->set != 0 ? tn_tensor_full(tn_tensor_shape(t), g->set, tn_tensor_dtype(t), NULL)
                            : tn_mul_scalar(t, g->times != 0 ? g->times : 1));
        }
        status = tn_pack_add(replacement, NULL, value);
    }
    return status;
}

static TN_ATTR(unused) tn_status on_pre(void *user, tn_module *module, const tn_pack *grad_output,
                                        tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct grads *g = user;
    (void)module;
    shown(grad_output, g->out, sizeof g->out);
    return answer(g, grad_output, replacement, outcome);
}

static TN_ATTR(unused) tn_status
    on_full(void *user, tn_module *module, const tn_pack *grad_input, const tn_pack *grad_output,
            tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct grads *g = user;
    (void)module;
    shown(grad_input, g->in, sizeof g->in);
    shown(grad_output, g->out, sizeof g->out);
    return answer(g, grad_input, replacement, outcome);
}

static TN_ATTR(unused) tn_hook_handle full(tn_module *m, struct grads *g, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_backward(m, on_full, flags, g, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

static TN_ATTR(unused) tn_hook_handle pre(tn_module *m, struct grads *g, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_backward_pre(m, on_pre, flags, g, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

static TN_ATTR(unused) tn_tensor *leaf(double value)
{
    tn_tensor *x = filled(value);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    return x;
}

static TN_ATTR(unused) void backward(tn_tensor *y)
{
    ck_assert_msg(tn_backward(tn_sum(y)) == TN_OK, "%s", tn_error_text());
}

static TN_ATTR(unused) float grad(tn_tensor *x)
{
    ck_assert_ptr_ne(tn_tensor_grad(x), TN_NONE);
    return first(tn_tensor_grad(x));
}

/* ---- Mix(a, words, b): 2a, ab and a text; "cut" ignores its input ---------------------------- */

static TN_ATTR(unused) tn_status mix_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *a = tn_pack_tensor(input, 0), *b = tn_pack_tensor(input, 2);
    tn_status status = tn_pack_add(output, NULL, tn_value_tensor(tn_mul_scalar(a, 2)));
    (void)self;
    if (status == TN_OK)
        status = tn_pack_add(output, NULL, tn_value_string("between"));
    return status == TN_OK ? tn_pack_add(output, NULL, tn_value_tensor(tn_mul(a, b))) : status;
}

static TN_ATTR(unused) tn_tensor *inside; /* what the last forward got */

static TN_ATTR(unused) tn_tensor *keeper_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    tn_tensor_drop(inside);
    inside = tn_tensor_keep(input);
    return tn_mul_scalar(input, 1);
}

static TN_ATTR(unused) tn_tensor *writer_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul_scalar(tn_add_scalar_(input, 1), 1);
}

static TN_ATTR(unused) tn_tensor *cut_forward(tn_module *self, tn_tensor *input)
{
    (void)input;
    return tn_mul_scalar(tn_module_get(self, "weight"), 2);
}

static TN_ATTR(unused) tn_status naming_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)self;
    return tn_pack_add(output, "y", tn_value_tensor(tn_mul_scalar(tn_pack_tensor(input, 0), 2)));
}

static TN_ATTR(unused) tn_tensor *square_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul(input, input);
}

static TN_ATTR(unused) tn_tensor *steps_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul_scalar(tn_mul(input, input), 3);
}

static const tn_layer_def steps = { TN_HEAD(tn_layer_def), .name = "Steps",
                                    .forward = steps_forward };
static const tn_layer_def mix = { TN_HEAD(tn_layer_def), .name = "Mix", .call = mix_call };
static const tn_layer_def keeper = { TN_HEAD(tn_layer_def), .name = "Keeper",
                                     .forward = keeper_forward };
static const tn_layer_def writer = { TN_HEAD(tn_layer_def), .name = "Writer",
                                     .forward = writer_forward };
static const tn_layer_def cutter = { TN_HEAD(tn_layer_def), .name = "Cutter", .build = scale_build,
                                     .forward = cut_forward };
static const tn_layer_def naming = { TN_HEAD(tn_layer_def), .name = "Naming", .call = naming_call };
static const tn_layer_def square = { TN_HEAD(tn_layer_def), .name = "Square",
                                     .forward = square_forward };

static TN_ATTR(unused) void register_all(void)
{
    const tn_layer_def *const layers[] = {
        &mix, &keeper, &writer, &cutter, &naming, &square, &steps
    };
    register_hooked();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        ck_assert_int_eq(tn_register(layers[i]), TN_OK);
}

/* Three arguments through Mix. */
static TN_ATTR(unused) tn_pack *mixed(tn_module *m, tn_tensor *a, tn_tensor *b)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(a));
    tn_pack_add(in, NULL, tn_value_string("words"));
    tn_pack_add(in, NULL, tn_value_tensor(b));
    ck_assert_msg(tn_module_call_pack(m, in, out) == TN_OK, "%s", tn_error_text());
    tn_pack_drop(in);
    return out;
}

#endif
