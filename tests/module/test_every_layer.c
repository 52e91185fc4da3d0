/* SPDX-License-Identifier: MIT
 *
 * The same tests for every layer: walks, state, conversion, modes, hooks, a deep copy, a file.
 * Layers of the plugin as tests/oracle/layers.txt builds and calls them, and layers that this
 * program registers, as any other program can. The rows are of the area PLG of the behaviour
 * specification. */
#include <math.h>
#include <unistd.h>

#include "tests/module/each_oracle_layer.h"
#include "tests/module/toy_layers.h"
#include "tests/op/toy_device.h"
#include "tests/spec/proves.h"

/* ---- a call ---------------------------------------------------------------------------------- */

/* The first result, in eval mode and with the same random numbers each time. */
static tn_tensor *called(tn_module *module, const struct subject *s)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    for (int64_t i = 0; i < s->n_in; i++)
        ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(s->in[i])), TN_OK);
    tn_random_seed(7);
    tn_module_eval(module);
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s: %s", spec, tn_error_text());
    tn_tensor *result = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(out, 0)));
    tn_pack_drop(in);
    tn_pack_drop(out);
    return result;
}

static void expect_same(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    ck_assert_msg(tn_tensor_numel(a) == tn_tensor_numel(b), "%s: %s: another size", spec, what);
    ck_assert_int_eq(tn_tensor_copy_out(a, x, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, y, bytes), TN_OK);
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s: %s: other values", spec, what);
    free(x);
    free(y);
}

/* ---- the questions --------------------------------------------------------------------------- */

static tn_status expect_in_state(void *user, const tn_visit *what)
{
    tn_state *state = user;
    if ((what->flags & TN_SLOT_FLAG_NOT_PERSISTENT) == 0)
        ck_assert_msg(tn_state_find(state, what->path) >= 0, "%s: %s is not in the state", spec,
                      what->path);
    return TN_OK;
}

static void ask_walks(tn_module *module)
{
    tn_state *state = tn_module_state(module);
    const tn_walk_options all = { sizeof all, TN_WALK_DUPLICATES, NULL, NULL };
    ck_assert_int_eq(
        tn_module_walk(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, &all, expect_in_state, state),
        TN_OK);
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        const char *name = tn_state_name(state, i);
        bool waits = tn_module_is_lazy(module, name); /* then it has no shape to be given */
        uint64_t mark = tn_error_mark();
        ck_assert_msg((tn_module_find_tensor(module, name) != NULL) == !waits, "%s: %s", spec,
                      name);
        if (waits)
            tn_error_restore(mark);
    }
    tn_state_drop(state);
}

static tn_status expect_dtype(void *user, const char *path, tn_tensor *tensor)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    if ((TN_BIT(dtype) & TN_MASK_FLOAT) != 0)
        ck_assert_msg(dtype == *(tn_dtype *)user, "%s: %s is %s", spec, path, tn_dtype_name(dtype));
    return TN_OK;
}

static void ask_conversion(tn_module *module)
{
    tn_dtype dtypes[2] = { TN_F32, TN_F64 };
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_to(module, NULL, dtypes[i]), TN_OK);
        tn_module_each_tensor(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true, expect_dtype,
                              &dtypes[i]);
    }
}

static tn_status expect_training(void *user, const char *path, tn_module *module)
{
    (void)path;
    ck_assert_int_eq(tn_module_is_training(module), *(bool *)user);
    return TN_OK;
}

static void ask_modes(tn_module *module)
{
    bool modes[2] = { false, true };
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_module_train(module, modes[i]), TN_OK);
        tn_module_each(module, true, expect_training, &modes[i]);
    }
}

static tn_status count_call(void *user, tn_module *module, const tn_pack *input,
                            const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module;
    (void)input;
    (void)output;
    (void)replacement;
    (void)outcome;
    ++*(int *)user;
    return TN_OK;
}

/* A copy computes the same, and has hooks of its own. */
static void ask_copy(tn_module *module, const struct subject *s, tn_tensor *expected)
{
    char one[4096], two[4096];
    int calls = 0;
    tn_hook_handle handle = tn_module_hook_forward(module, count_call, 0, &calls, NULL);
    ck_assert_uint_ne(handle, 0);
    tn_module *copy = tn_module_copy(module);
    ck_assert_msg(copy != NULL, "%s: %s", spec, tn_error_text());
    ck_assert_int_lt(tn_module_repr(module, one, sizeof one), sizeof one);
    tn_module_repr(copy, two, sizeof two);
    ck_assert_str_eq(one, two);
    if (s->n_in > 0) {
        expect_same(called(copy, s), expected, "the copy");
        ck_assert_int_eq(calls, 1);
        ck_assert(tn_hook_remove(handle));
        expect_same(called(module, s), expected, "without its hook");
        ck_assert_int_eq(calls, 1);
    }
    tn_module_drop(copy);
    if (s->n_in == 0)
        tn_hook_remove(handle);
}

/* Another module of the same spec computes the same once it has read the file. */
static void ask_file(tn_module *module, const struct subject *s, tn_tensor *expected)
{
    char path[64];
    tn_snprint(path, sizeof path, "every-layer-%d.safetensors", (int)getpid());
    ck_assert_msg(tn_module_save(module, path) == TN_OK, "%s: %s", spec, tn_error_text());
    tn_module *other = tn_module_parse(spec);
    ck_assert_msg(other != NULL, "%s: %s", spec, tn_error_text());
    tn_module_to(other, NULL, TN_F64);
    ck_assert_msg(tn_module_load(other, path) == TN_OK, "%s: %s", spec, tn_error_text());
    unlink(path);
    if (s->n_in > 0)
        expect_same(called(other, s), expected, "what was saved and loaded");
    tn_module_drop(other);
}

static void ask_all(const struct subject *s)
{
    TN_SCOPE;
    tn_module *module = tn_module_parse(spec);
    ck_assert_msg(module != NULL, "%s: %s", spec, tn_error_text());
    ask_walks(module);
    ask_conversion(module);
    ask_modes(module);
    tn_tensor *expected = s->n_in > 0 ? called(module, s) : NULL;
    ask_copy(module, s, expected);
    ask_file(module, s, expected);
    ck_assert_int_eq(tn_module_to_device(module, "meta"), TN_OK);
    ck_assert_int_eq(tn_module_to_empty(module, tn_device_find("cpu"), true), TN_OK);
    tn_module_drop(module);
    ck_assert_msg(!tn_failed(), "%s: %s", spec, tn_error_text());
}

/* ---- layers of the plugin -------------------------------------------------------------------- */

START_TEST(every_layer_of_the_plugin_answers_plg_001_plg_002_plg_004)
{
    ck_assert_int_gt(each_layer(ask_all), 250);
}
END_TEST

/* ---- inputs of any number of dimensions ------------------------------------------------------ */

static int calls, taken_calls;

/* Calls the layer with leading dimensions of size 1, so that the first input has `ndim`. */
static void call_with(const struct subject *s, int32_t ndim)
{
    TN_SCOPE;
    tn_module *module = tn_module_parse(spec);
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_value first;

    ck_assert_int_eq(tn_module_to(module, NULL, TN_F64), TN_OK);
    for (int64_t i = 0; i < s->n_in; i++) {
        tn_tensor *x = tn_detach(s->in[i]);

        for (int32_t k = tn_tensor_ndim(s->in[0]); k < ndim; k++)
            x = tn_tensor_ndim(x) < TN_MAX_DIMS ? tn_unsqueeze(x, 0) : x;
        if (i == 0 && tn_tensor_dtype(x) == TN_F64)
            ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
        ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
    }
    calls++;
    if (tn_module_call_pack(module, in, out) != TN_OK) {
        ck_assert_msg(strncmp(tn_error_text(), "in ", 3) == 0, "%s with %d dimensions: %s", spec,
                      (int)ndim, tn_error_text());
    } else {
        taken_calls++;
        first = tn_pack_at(out, 0);
        if (first.kind == TN_VALUE_TENSOR && tn_tensor_requires_grad(first.as.tensor))
            ck_assert_msg(tn_backward(tn_sum(first.as.tensor)) == TN_OK,
                          "%s with %d dimensions: %s", spec, (int)ndim, tn_error_text());
    }
    tn_error_clear();
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(module);
}

static void call_with_all(const struct subject *s)
{
    for (int32_t ndim = 1; ndim <= TN_MAX_DIMS && s->n_in > 0; ndim++)
        call_with(s, ndim);
}

START_TEST(every_layer_takes_any_number_of_dimensions_or_says_why_not)
{
    each_layer(call_with_all);
    ck_assert_int_gt(calls, 5000);
    ck_assert_int_gt(taken_calls, 2000);
}
END_TEST

/* ---- layers that this program registers ------------------------------------------------------ */

struct mix {
    double scale;
};

static const tn_option mix_options[] = { TN_OPTION_FLOAT(struct mix, scale, "2.0", "of b"),
                                         TN_OPTION_END };

static tn_status mix_build(tn_module *self)
{
    tn_status status = tn_module_add_parameter(
        self, "weight", tn_parameter(tn_tensor_full(TN_SHAPE(2), 3.0, TN_F32, NULL), true));
    return status == TN_OK ? tn_module_add_buffer(self, "count",
                                                  tn_tensor_full(TN_SHAPE(1), 5, TN_I64, NULL), 0)
                           : status;
}

/* (a, b, sign="+") gives (w a + scale b, w a - scale b) and sign="+"; without a sign, "none". */
static tn_status mix_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct mix *s = tn_module_data(self);
    tn_tensor *a = tn_mul(tn_pack_tensor(input, 0), tn_module_get(self, "weight")),
              *b = tn_mul_scalar(tn_pack_tensor(input, 1), s->scale);
    int64_t named = tn_pack_find(input, "sign");
    tn_status status = tn_pack_add(output, NULL, tn_value_tensor(tn_add(a, b)));
    if (status == TN_OK)
        status = tn_pack_add(output, NULL, tn_value_tensor(tn_sub(a, b)));
    if (status == TN_OK)
        status = tn_pack_add(output, "sign",
                             named >= 0 ? tn_pack_at(input, named) : tn_value_string("none"));
    return status;
}

static const tn_layer_def mix = { TN_HEAD(tn_layer_def),  .name = "Mix",
                                  .options = mix_options, .data_size = sizeof(struct mix),
                                  .build = mix_build,     .call = mix_call };

START_TEST(a_layer_from_outside_answers_the_same_and_takes_any_values_plg_003)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&mix), TN_OK);
    register_probes();
    const double values[2] = { 1, 2 };
    struct subject s = { .n_in = 2 };
    s.in[0] = tn_tensor_from(values, TN_F64, TN_SHAPE(2));
    s.in[1] = tn_tensor_from(values, TN_F64, TN_SHAPE(2));
    tn_snprint(spec, sizeof spec, "Mix(scale=0.5)");
    ask_all(&s);
    s.n_in = 1;
    tn_snprint(spec, sizeof spec, "Block(2)");
    ask_all(&s);
    TN_PROVES("PLG-001", "PLG-002", "PLG-004");
    tn_module *module = tn_module_new("Mix()");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 1.0, TN_F32, NULL);
    tn_pack_add(in, NULL, tn_value_tensor(x));
    tn_pack_add(in, NULL, tn_value_tensor(x));
    tn_pack_add(in, "sign", tn_value_string("+"));
    ck_assert_msg(tn_module_call_pack(module, in, out) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(out), 3);
    ck_assert_double_eq(tn_item(tn_sum(tn_pack_tensor(out, 0))), 10.0);
    ck_assert_double_eq(tn_item(tn_sum(tn_pack_tensor(out, 1))), 2.0);
    ck_assert_str_eq(tn_pack_at(out, tn_pack_find(out, "sign")).as.s, "+");
    ck_assert_int_eq(tn_backward(tn_sum(tn_pack_tensor(out, 0))), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(tn_tensor_grad(tn_module_get(module, "weight")))), 2.0);
    TN_PROVES("PLG-003");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(module);
}
END_TEST

/* ---- a device from outside ------------------------------------------------------------------- */

static int taken;

static tn_status count_two(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return TN_OK;
}

static tn_status counted_alloc(void *device, tn_memory *memory)
{
    taken++;
    return toy_alloc(device, memory);
}

START_TEST(any_device_is_a_target_of_the_same_calls_plg_005)
{
    TN_SCOPE;
    tn_backend_def two = toy; /* the host cannot read its memory */
    two.flags = 0;
    two.enumerate = count_two;
    two.alloc = counted_alloc;
    ck_assert_int_eq(tn_register(&two), TN_OK);
    tn_module *m = tn_module_new("Sequential(Linear(2, 2), BatchNorm1d(2))");
    tn_tensor *w = tn_module_find_tensor(m, "0.weight");
    float before[4], after[4];
    tn_tensor_copy_out(w, before, sizeof before);
    ck_assert_msg(tn_module_to_device(m, "toy:1") == TN_OK, "%s", tn_error_text());
    ck_assert_str_eq(tn_device_name(tn_tensor_device(w)), "toy:1");
    ck_assert_str_eq(
        tn_device_name(tn_tensor_device(tn_module_find_tensor(m, "1.num_batches_tracked"))),
        "toy:1");
    ck_assert_int_gt(taken, 0);
    ck_assert(tn_tensor_requires_grad(w));
    tn_module *copy = tn_module_copy(m);
    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    ck_assert_str_eq(tn_device_name(tn_tensor_device(tn_module_find_tensor(copy, "0.weight"))),
                     "toy:1");
    ck_assert_int_eq(tn_module_share_memory(m), TN_OK); /* no effect: the host cannot read it */
    ck_assert_int_eq(tn_module_to_device(m, "cpu"), TN_OK);
    tn_tensor_copy_out(w, after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    ck_assert_int_eq(tn_module_to_device(copy, "cpu"), TN_OK);
    tn_tensor_copy_out(tn_module_find_tensor(copy, "0.weight"), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    ck_assert_int_ne(tn_module_to_device(m, "toy:2"), TN_OK);
    expect_failure(tn_error_last_code(), "toy");
    TN_PROVES("PLG-005");
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_layer_of_the_plugin_answers_plg_001_plg_002_plg_004,
        every_layer_takes_any_number_of_dimensions_or_says_why_not,
        a_layer_from_outside_answers_the_same_and_takes_any_values_plg_003,
        any_device_is_a_target_of_the_same_calls_plg_005,
        NULL,
    };
    return suite_run("every layer", tests);
}
