/* SPDX-License-Identifier: MIT
 *
 * State out and in, conversion. Names of rows are those of the behaviour specification. */
#include "tests/module/toy_layers.h"

START_TEST(a_state_keeps_order_replaces_in_place_and_has_text_beside)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_tensor *t = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL);
    char name[16];
    for (int i = 0; i < 100; i++) {
        tn_snprint(name, sizeof name, "t%d", i);
        ck_assert_int_eq(tn_state_set(state, name, t), TN_OK);
    }
    ck_assert_int_eq(tn_state_count(state), 100);
    ck_assert_int_eq(tn_state_find(state, "t57"), 57);
    ck_assert_int_eq(tn_state_find(state, "t100"), -1);
    tn_tensor *other = tn_tensor_full(TN_SHAPE(3), 1, TN_F32, NULL);
    tn_state_set(state, "t57", other);
    ck_assert_ptr_eq(tn_state_tensor(state, 57), other);
    ck_assert_ptr_eq(tn_state_get(state, "t57"), other);
    ck_assert_ptr_null(tn_state_get(state, "encoder"));
    expect_failure(TN_ERR_KEY, "state: no entry \"encoder\"; it has 100 entries, the first \"t0\"");
    ck_assert_ptr_null(tn_state_get(state, "t99x"));
    expect_failure(TN_ERR_KEY, "state: no entry \"t99x\"; did you mean \"t99\"?");
    ck_assert_int_eq(tn_state_set_value(state, "word", tn_value_string("v")), TN_OK);
    ck_assert_ptr_null(tn_state_get(state, "word"));
    expect_failure(TN_ERR_TYPE, "state entry \"word\": wrong kind, got string");
    ck_assert_int_eq(tn_state_remove(state, "word"), TN_OK);
    ck_assert_int_eq(tn_state_count(state), 100);
    ck_assert_int_eq(tn_state_set(state, "x", TN_NONE), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_ptr_null(tn_state_name(state, 100));
    tn_error_clear();
    ck_assert_ptr_null(tn_state_meta(state, "k"));
    tn_state_set_meta(state, "k", "v");
    tn_state_set_meta(state, "k", "w");
    ck_assert_int_eq(tn_state_meta_count(state), 1);
    ck_assert_str_eq(tn_state_meta(state, "k"), "w");
    ck_assert_str_eq(tn_state_meta_key(state, 0), "k");
    ck_assert(!tn_failed());
    tn_state_drop(state);
    tn_state_drop(NULL);
}
END_TEST

static void fill_all(tn_module *m, double value)
{
    tn_state *state = tn_module_state(m);
    TN_SCOPE;
    for (int64_t i = 0; i < tn_state_count(state); i++)
        ck_assert_ptr_nonnull(tn_fill_(tn_state_tensor(state, i), value));
    tn_state_drop(state);
}

static double first(tn_module *m, const char *path)
{
    TN_SCOPE;
    return tn_item(
        tn_tensor_as_strided(tn_module_find_tensor(m, path), TN_SCALAR_SHAPE, TN_SCALAR_SHAPE, 0));
}

START_TEST(a_message_too_long_for_a_record_counts_what_it_leaves_out)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential()");
    tn_state *state = tn_state_new();
    char name[64];
    for (int i = 0; i < 100; i++) {
        tn_snprint(name, sizeof name, "a_name_that_is_rather_long_%d", i);
        tn_state_set(state, name, tn_tensor_full(TN_SHAPE(1), 5, TN_F32, NULL));
    }
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, " more. ");
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

/* ---- conversion ------------------------------------------------------------------------------ */

START_TEST(conversion_keeps_objects_ties_and_modes_cnv_002_cnv_014_cnv_016_cnv_017_cnv_020)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Linear(2, 2), p=Probe(2))");
    tn_tensor *weight = tn_module_find_tensor(m, "0.weight");
    tn_module_add_parameter(m, "tied", weight);
    ck_assert_int_eq(
        tn_backward(tn_sum(tn_module_call(m, tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F32, NULL)))),
        TN_OK);
    tn_tensor *gradient = tn_tensor_grad(weight);
    double before = first(m, "0.weight");
    void *data = tn_tensor_data(weight);
    ck_assert_int_eq(tn_module_to(m, tn_tensor_device(weight), TN_F32), TN_OK);
    ck_assert_ptr_eq(tn_tensor_data(weight), data);
    ck_assert_msg(tn_module_to(m, NULL, TN_F64) == TN_OK, "%s", tn_error_text());
    ck_assert_ptr_eq(tn_module_get(m, "tied"), weight);
    ck_assert_int_eq(tn_tensor_dtype(weight), TN_F64);
    ck_assert_ptr_eq(tn_tensor_grad(weight), gradient);
    ck_assert_int_eq(tn_tensor_dtype(gradient), TN_F64);
    ck_assert(tn_tensor_requires_grad(weight) && tn_tensor_is_leaf(weight));
    ck_assert_double_eq(first(m, "0.weight"), before);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "p.count")), TN_I64);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "p.scratch")), TN_F64);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_I32), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE,
                   "only accepts floating point or complex dtypes, but got desired dtype=int32");
    tn_module_drop(m);
}
END_TEST

START_TEST(an_optimizer_goes_on_after_conversion_cnv_014)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 1)");
    fill_all(m, 1.0);
    tn_optimizer *optimizer = tn_optimizer_new(m, "SGD(lr=1.0, momentum=0.5)");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    for (int i = 0; i < 2; i++) {
        tn_module_zero_grad(m);
        tn_backward(tn_sum(tn_module_call(m, tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F64, NULL))));
        ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
    }
    ck_assert_double_eq(first(m, "bias"), 1.0 - 1.0 - 1.5);
    tn_optimizer_drop(optimizer);
    /* State that was made before follows its parameter to another type; further steps work. */
    optimizer = tn_optimizer_new(m, "Adam(lr=0.5)");
    const tn_dtype dtypes[] = { TN_F64, TN_F32, TN_F64 };
    for (int i = 0; i < 3; i++) {
        tn_module_to(m, NULL, dtypes[i]);
        tn_module_zero_grad(m);
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 2), 1, dtypes[i], NULL);
        tn_backward(tn_sum(tn_module_call(m, x)));
        ck_assert_msg(tn_optimizer_step(optimizer) == TN_OK, "%s", tn_error_text());
        ck_assert_double_eq_tol(first(m, "bias"), -1.5 - 0.5 * (i + 1), 1e-5);
    }
    tn_optimizer_drop(optimizer);
    tn_module_drop(m);
}
END_TEST

static int warnings;

static void count_warnings(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    warnings += level == TN_LOG_WARNING && strstr(text, "has no values") != NULL;
}

START_TEST(moving_to_meta_drops_the_values_and_there_is_no_way_back_cnv_024)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), Linear(2, 2))");
    const tn_device *meta = tn_device_find("meta"), *cpu = tn_device_find("cpu");
    ck_assert_int_eq(tn_module_to(m, meta, TN_DTYPE_AUTO), TN_OK);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_find_tensor(m, "1.bias")), meta);
    ck_assert_int_eq(tn_module_to(m, cpu, TN_DTYPE_AUTO), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "\"0.weight\": cannot copy from a tensor on meta:0");
    ck_assert_ptr_eq(tn_tensor_device(tn_module_find_tensor(m, "1.bias")), meta);
    tn_module *real = parsed("Sequential(Linear(2, 2), Linear(2, 2))");
    tn_state *values = tn_module_state(real), *none = tn_module_state(m);
    tn_set_log_sink(count_warnings, NULL);
    ck_assert_int_eq(tn_module_load_state(m, values, true), TN_OK); /* LSD-025 */
    tn_set_log_sink(NULL, NULL);
    ck_assert_int_eq(warnings, 4);
    ck_assert_int_eq(tn_module_load_state(real, none, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "While copying the parameter named \"0.weight\", whose");
    tn_state_drop(values);
    tn_state_drop(none);
    tn_module_drop(real);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_conversion_that_fails_changes_nothing)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(4, 4), Linear(4, 4))");
    const tn_device *meta = tn_device_find("meta"), *cpu = tn_device_find("cpu");
    /* Only the parameters of the last module cannot be moved; then none is moved. */
    tn_module *last = tn_module_child(m, "1");
    ck_assert_int_eq(tn_module_to(last, meta, TN_DTYPE_AUTO), TN_OK);
    ck_assert_int_eq(tn_module_to(m, cpu, TN_F64), TN_ERR_NOT_IMPLEMENTED);
    tn_error_clear();
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "0.weight")), TN_F32);
    for (uint64_t n = 1; n < 200; n++) {
        tn_module *fresh = parsed("Sequential(Linear(4, 4), Linear(4, 4))");
        tn__memory_fail(n);
        tn_status status = tn_module_to(fresh, NULL, TN_F64);
        bool reached = tn__memory_fail(0) >= n;
        tn_dtype dtype = status == TN_OK ? TN_F64 : TN_F32;
        ck_assert(status == TN_OK || status == TN_ERR_MEMORY);
        ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(fresh, "0.weight")), dtype);
        ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(fresh, "1.bias")), dtype);
        tn_error_clear();
        tn_module_drop(fresh);
        if (!reached)
            break;
    }
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_state_keeps_order_replaces_in_place_and_has_text_beside,
        a_message_too_long_for_a_record_counts_what_it_leaves_out,
        conversion_keeps_objects_ties_and_modes_cnv_002_cnv_014_cnv_016_cnv_017_cnv_020,
        an_optimizer_goes_on_after_conversion_cnv_014,
        moving_to_meta_drops_the_values_and_there_is_no_way_back_cnv_024,
        a_conversion_that_fails_changes_nothing,
        NULL,
    };
    return suite_run("state", tests);
}
