/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of hooks: hooks that record their calls and may replace values, and small
 * layers. */
#ifndef TN_TESTS_MODULE_HOOKS_H
#define TN_TESTS_MODULE_HOOKS_H

#include "core/module/internal.h"
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

/* ---- hooks that write their letter ----------------------------------------------------------- */

static char trace[256];
static int released;

/* What a hook does in addition to its letter; `user` of all hooks here. */
struct act {
    char letter;
    double add, times;      /* unless both are 0, replaces the first tensor x by x * times + add */
    tn_hook_handle *remove; /* removes this hook, unless it is NULL */
    bool fail, silent;      /* fails with TN_ERR_INDEX, with a message or without */
    int outcome;            /* the outcome that it returns if it replaces nothing */
    int calls;
    tn_module *module; /* the one of the last call */
    int64_t positional, named, results;
    double seen; /* the first element of the first tensor */
    bool no_output, failed;
};

static void act_release(void *user)
{
    (void)user;
    released++;
}

static tn_tensor *filled(double value)
{
    return tn_tensor_full(TN_SHAPE(2), value, TN_F32, NULL);
}

static float first(tn_tensor *tensor)
{
    float values[64] = { -77 };
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    ck_assert_int_le(tn_tensor_numel(tensor), 64);
    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(tensor), values,
                                        (size_t)tn_tensor_numel(tensor) * sizeof *values),
                     TN_OK);
    return values[0];
}

static tn_status act(struct act *a, tn_module *module)
{
    strncat(trace, &a->letter, 1);
    a->calls++;
    a->module = module;
    if (a->remove != NULL)
        tn_hook_remove(*a->remove);
    if (a->silent)
        return TN_ERR_INDEX;
    return a->fail ? tn_fail(TN_ERR_INDEX, "hook %c fails", a->letter) : TN_OK;
}

static tn_status change(const struct act *a, const tn_pack *seen, tn_pack *replacement,
                        tn_hook_outcome *outcome)
{
    tn_tensor *x;
    *outcome = (tn_hook_outcome)a->outcome;
    if (a->times == 0 && a->add == 0)
        return TN_OK;
    x = tn_pack_tensor(seen, 0);
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(
        replacement, NULL,
        tn_value_tensor(tn_add_scalar(tn_mul_scalar(x, a->times != 0 ? a->times : 1), a->add)));
}

static void look(struct act *a, const tn_pack *pack)
{
    a->positional = tn_pack_positional(pack);
    a->named = tn_pack_count(pack) - a->positional;
    if (a->positional > 0 && tn_pack_at(pack, 0).kind == TN_VALUE_TENSOR)
        a->seen = first(tn_pack_tensor(pack, 0));
}

TN_ATTR(unused)
static tn_status on_forward_pre(void *user, tn_module *module, const tn_pack *input,
                                tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct act *a = user;
    look(a, input);
    tn_status status = act(a, module);
    return status == TN_OK ? change(a, input, replacement, outcome) : status;
}

TN_ATTR(unused)
static tn_status on_forward(void *user, tn_module *module, const tn_pack *input,
                            const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct act *a = user;
    a->positional = tn_pack_positional(input);
    a->named = tn_pack_count(input) - a->positional;
    a->no_output = output == NULL;
    a->results = output != NULL ? tn_pack_count(output) : 0;
    a->failed = tn_failed();
    if (output != NULL)
        a->seen = first(tn_pack_tensor(output, 0));
    tn_status status = act(a, module);
    return status == TN_OK && output != NULL ? change(a, output, replacement, outcome) : status;
}

#define expect_trace(text)                                                                         \
    do {                                                                                           \
        ck_assert_str_eq(trace, text);                                                             \
        trace[0] = '\0';                                                                           \
    } while (0)

/* ---- Scale(): input times "weight" (3), plus the named argument "bias" ----------------------- */

static tn_status scale_build(tn_module *self)
{
    return tn_module_add_parameter(
        self, "weight", tn_parameter(tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL), true));
}

static tn_status scale_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    int64_t bias = tn_pack_find(input, "bias");
    tn_tensor *y = tn_mul(tn_pack_tensor(input, 0), tn_module_get(self, "weight"));
    if (bias >= 0)
        y = tn_add(y, tn_pack_tensor(input, bias));
    return tn_pack_add(output, NULL, tn_value_tensor(y));
}

static const tn_layer_def scale = { TN_HEAD(tn_layer_def), .name = "Scale", .build = scale_build,
                                    .call = scale_call };

static inline void register_hooked(void)
{
    register_probes();
    ck_assert_int_eq(tn_register(&scale), TN_OK);
    trace[0] = '\0';
    released = 0;
}

/* The last warning, with warn() as the sink of the log. */
static TN_ATTR(unused) char warned[512];
static TN_ATTR(unused) int warnings;

static TN_ATTR(unused) void warn(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    if (level == TN_LOG_WARNING) {
        tn_snprint(warned, sizeof warned, "%s", text);
        warnings++;
    }
}

#endif
