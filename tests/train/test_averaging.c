/* SPDX-License-Identifier: MIT
 *
 * Averaged models and running statistics, against PyTorch's AveragedModel and update_bn. */
#include "whole.h"

/* A module with a parameter "p" and an integer buffer "b". */
static tn_module *holder(void)
{
    TN_SCOPE;
    tn_module *module = tn_module_new("Sequential()");
    tn_tensor *p = tn_parameter(tn_tensor_full(TN_SHAPE(STATE_SIZE), 0, TN_F64, NULL), true);
    tn_tensor *b = tn_tensor_full(TN_SHAPE(STATE_SIZE), 0, TN_I64, NULL);

    ck_assert_int_eq(tn_module_add_parameter(module, "p", p), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(module, "b", b, 0), TN_OK);
    return module;
}

static void set_values(tn_module *module, int update)
{
    ck_assert_int_eq(tn_tensor_copy_in(tn_module_get(module, "p"), average_values[update],
                                       sizeof average_values[update]),
                     TN_OK);
    ck_assert_int_eq(tn_tensor_copy_in(tn_module_get(module, "b"), average_counts[update],
                                       sizeof average_counts[update]),
                     TN_OK);
}

static void expect_values(tn_module *average, const double *p, const int64_t *b, const char *what)
{
    double got[STATE_SIZE];
    int64_t counts[STATE_SIZE];

    ck_assert_int_eq(
        tn_tensor_copy_out(tn_module_find_tensor(average, "module.p"), got, sizeof got), TN_OK);
    ck_assert_int_eq(
        tn_tensor_copy_out(tn_module_find_tensor(average, "module.b"), counts, sizeof counts),
        TN_OK);
    for (int i = 0; i < STATE_SIZE; i++) {
        ck_assert_msg(fabs(got[i] - p[i]) < 1e-14, "%s: p[%d] is %.17g, not %.17g", what, i, got[i],
                      p[i]);
        ck_assert_msg(counts[i] == b[i], "%s: b[%d] is %d, not %d", what, i, (int)counts[i],
                      (int)b[i]);
    }
}

START_TEST(averages_are_those_of_pytorch)
{
    for (int64_t i = 0; i < tn__countof(averages); i++) {
        tn_average_options options = TN_AVERAGE_OPTIONS;
        tn_module *source = holder(), *average;
        char what[64];

        options.use_buffers = averages[i].buffers;
        if (!isnan(averages[i].decay)) {
            options.kind = TN_AVERAGE_EXPONENTIAL;
            options.decay = averages[i].decay;
        }
        average = tn_average_new(source, &options);
        for (int update = 0; update < UPDATES; update++) {
            set_values(source, update);
            ck_assert_int_eq(tn_average_count(average), update);
            ck_assert_msg(tn_average_update(average, source) == TN_OK, "%s", tn_error_text());
            if (update == 0)
                expect_values(average, average_values[0], average_counts[0], "the first copies");
        }
        tn_snprint(what, sizeof what, "decay %g, buffers %b", averages[i].decay,
                   averages[i].buffers);
        expect_values(average, averages[i].p, averages[i].b, what);
        ck_assert_int_eq(tn_average_count(average), UPDATES);
        tn_module_drop(average);
        tn_module_drop(source);
    }
    TN_PROVES("SWA-005", "SWA-006", "SWA-007", "SWA-010", "SWA-012", "SWA-013");
}
END_TEST

static tn_status count_hook(void *user, tn_module *module, const tn_pack *input, tn_pack *out,
                            tn_hook_outcome *outcome)
{
    (void)module, (void)input, (void)out, (void)outcome;
    ++*(int *)user;
    return TN_OK;
}

START_TEST(an_averaged_model_is_a_module_with_a_copy_of_the_other)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(2, 3), BatchNorm1d(3), Linear(3, 1))"), *copy;
    tn_module *average;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 2), 0.5, TN_F32, NULL);
    tn_state *state;
    char text[512];
    int calls = 0;

    ck_assert(tn_module_hook_forward_pre(tn_module_child(net, "0"), count_hook, 0, &calls, NULL) !=
              0);
    ck_assert_int_eq(tn_module_eval(tn_module_child(net, "1")), TN_OK);
    average = tn_average_new(net, NULL);
    ck_assert_msg(average != NULL, "%s", tn_error_text());
    ck_assert_str_eq(tn_module_type(average), "AveragedModel");
    tn_module_repr(average, text, sizeof text);
    ck_assert_ptr_nonnull(
        strstr(text, "AveragedModel(\n  (module): Sequential(\n    (0): Linear("));
    copy = tn_module_child(average, "module");
    ck_assert_ptr_ne(tn_module_find_tensor(copy, "0.weight"),
                     tn_module_find_tensor(net, "0.weight"));
    ck_assert(!tn_module_is_training(tn_module_child(copy, "1")));
    ck_assert(tn_module_is_training(average));
    ck_assert(tn_tensor_requires_grad(tn_module_find_tensor(copy, "0.weight")));

    state = tn_module_state(average);
    ck_assert_str_eq(tn_state_name(state, 0), "n_averaged");
    ck_assert_str_eq(tn_state_name(state, 1), "module.0.weight");
    ck_assert_int_eq(tn_tensor_dtype(tn_state_tensor(state, 0)), TN_I64);
    ck_assert_int_eq(tn_tensor_ndim(tn_state_tensor(state, 0)), 0);
    ck_assert_double_eq(tn_item(tn_state_tensor(state, 0)), 0);
    tn_state_drop(state);

    ck_assert_ptr_nonnull(tn_module_call(average, x));
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(tn_average_update(average, net), TN_OK);
    ck_assert_double_eq(
        tn_item(tn_amax(tn_abs(tn_sub(tn_module_call(average, x), tn_module_call(net, x))))), 0);
    ck_assert(tn_tensor_is_leaf(tn_module_find_tensor(copy, "0.weight")));
    ck_assert(tn_tensor_requires_grad(tn_module_find_tensor(copy, "0.weight")));
    ck_assert_int_eq(tn_module_double(average), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(average, "n_averaged")), TN_I64);
    ck_assert_int_eq(tn_average_update(average, net), TN_OK); /* float32 into float64 */
    ck_assert_int_eq(tn_average_count(average), 2);
    tn_module_drop(average);
    tn_module_drop(net);
    TN_PROVES("SWA-001", "SWA-002", "SWA-017", "SWA-018", "SWA-020", "SWA-025");
}
END_TEST

/* ---- functions of the program ---------------------------------------------------------------- */

struct record {
    int64_t counts[16];
    int64_t lengths[16];
    int calls, released;
    bool fails;
};

static tn_tensor *halve(void *user, tn_tensor *average, tn_tensor *value, int64_t count)
{
    struct record *record = user;

    ck_assert(!tn_grad_enabled());
    record->counts[record->calls++] = count;
    return record->fails ? NULL : tn_mul_scalar(tn_add(average, value), 0.5);
}

static tn_status sum_all(void *user, tn_tensor *const *averages_, tn_tensor *const *values,
                         int64_t n, int64_t count)
{
    struct record *record = user;

    record->lengths[record->calls] = n;
    record->counts[record->calls++] = count;
    for (int64_t i = 0; i < n; i++)
        if (tn_add_(averages_[i], values[i]) == NULL)
            return tn_error_last_code();
    return TN_OK;
}

static void release(void *user)
{
    ((struct record *)user)->released++;
}

START_TEST(the_program_may_give_the_rule)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(2, 3), Linear(3, 1))"), *average, *second;
    tn_average_options options = TN_AVERAGE_OPTIONS;
    struct record record = { 0 };
    tn_tensor *weight = tn_module_find_tensor(net, "0.weight");

    options.one = halve;
    options.user = &record;
    options.release = release;
    ck_assert_int_eq(tn_module_double(tn_module_child(net, "1")), TN_OK);
    average = tn_average_new(net, &options);
    tn_grad_begin(false);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(tn_fill_(weight, i + 1.0));
        ck_assert_msg(tn_average_update(average, net) == TN_OK, "%s", tn_error_text());
    }
    tn_grad_end();
    ck_assert_double_eq(tn_item(tn_amax(tn_module_find_tensor(average, "module.0.weight"))),
                        2.25); /* ((1 + 2) / 2 + 3) / 2 */
    ck_assert_int_eq(record.calls, 8);
    ck_assert_int_eq(record.counts[0], 1);
    ck_assert_int_eq(record.counts[7], 2);
    record.fails = true;
    ck_assert_int_eq(tn_average_update(average, net), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "`one` of tn_average_options");
    ck_assert_int_eq(tn_average_count(average), 3);

    /* A copy has the same function; it is released after both. */
    second = tn_module_copy(average);
    tn_module_drop(average);
    ck_assert_int_eq(record.released, 0);
    ck_assert_int_eq(tn_average_count(second), 3);
    tn_module_drop(second);
    ck_assert_int_eq(record.released, 1);

    record = (struct record){ 0 };
    options.one = NULL;
    options.many = sum_all;
    average = tn_average_new(net, &options);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(tn_average_update(average, net), TN_OK);
    ck_assert_int_eq(record.calls, 2); /* float32 and float64 */
    ck_assert_int_eq(record.lengths[0], 2);
    ck_assert_int_eq(record.lengths[1], 2);
    ck_assert_int_eq(record.counts[1], 1);
    ck_assert_double_eq(tn_item(tn_amax(tn_module_find_tensor(average, "module.0.weight"))), 6);
    tn_module_drop(average);
    tn_module_drop(net);
    TN_PROVES("SWA-004", "SWA-008", "SWA-009", "SWA-011", "SWA-016");
}
END_TEST

START_TEST(wrong_options_and_other_models_are_refused)
{
    tn_module *net = tn_module_new("Sequential(Linear(2, 3))"), *average;
    tn_module *shape = tn_module_new("Sequential(Linear(3, 3))");
    tn_module *more = tn_module_new("Sequential(Linear(2, 3), Linear(3, 3))");
    tn_average_options options = TN_AVERAGE_OPTIONS;

    options.kind = TN_AVERAGE_EXPONENTIAL;
    options.decay = 1.5;
    ck_assert_ptr_null(tn_average_new(net, &options));
    expect_failure(TN_ERR_VALUE, "Invalid decay value 1.5 provided. Please provide a value in "
                                 "[0,1] range.");
    options.decay = (double)NAN;
    ck_assert_ptr_null(tn_average_new(net, &options));
    tn_error_clear();
    options.kind = 7;
    ck_assert_ptr_null(tn_average_new(net, &options));
    expect_failure(TN_ERR_VALUE, "kind: unknown, got 7");
    options.kind = TN_AVERAGE_EQUAL;
    options.one = halve;
    options.many = sum_all;
    ck_assert_ptr_null(tn_average_new(net, &options));
    expect_failure(TN_ERR_VALUE, "Only one of `one` (avg_fn) and `many` (multi_avg_fn) should be "
                                 "provided");
    average = tn_average_new(net, NULL);
    ck_assert_int_eq(tn_average_update(average, shape), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "\"0.weight\": wrong shape, got [3, 3]; expected [3, 2]");
    ck_assert_int_eq(tn_average_update(average, more), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "wrong number of parameters, got 4; expected 2");
    ck_assert_int_eq(tn_average_update(net, net), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "average: wrong module, got Sequential; expected a module that "
                                "tn_average_new made");
    ck_assert_int_eq(tn_average_count(average), 0);
    tn_module_drop(average);
    tn_module_drop(net);
    tn_module_drop(shape);
    tn_module_drop(more);
    TN_PROVES("SWA-003", "SWA-014");
}
END_TEST

START_TEST(an_average_is_resumed_from_its_state)
{
    tn_average_options options = TN_AVERAGE_OPTIONS;
    tn_module *source = holder(), *whole, *first, *second;
    tn_state *state;
    double wanted[STATE_SIZE], got[STATE_SIZE];

    options.kind = TN_AVERAGE_EXPONENTIAL;
    options.decay = 0.75;
    whole = tn_average_new(source, &options);
    first = tn_average_new(source, &options);
    second = tn_average_new(source, &options);
    for (int update = 0; update < UPDATES; update++) {
        set_values(source, update);
        if (update == 2) {
            state = tn_module_state(first);
            ck_assert_int_eq(tn_module_load_state(second, state, true), TN_OK);
            tn_state_drop(state);
            ck_assert_int_eq(tn_average_count(second), 2);
        }
        ck_assert_int_eq(tn_average_update(whole, source), TN_OK);
        ck_assert_int_eq(tn_average_update(update < 2 ? first : second, source), TN_OK);
    }
    ck_assert_int_eq(
        tn_tensor_copy_out(tn_module_find_tensor(whole, "module.p"), wanted, sizeof wanted), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(tn_module_find_tensor(second, "module.p"), got, sizeof got),
                     TN_OK);
    ck_assert(memcmp(wanted, got, sizeof got) == 0);
    tn_module_drop(whole);
    tn_module_drop(first);
    tn_module_drop(second);
    tn_module_drop(source);
    TN_PROVES("SWA-019");
}
END_TEST

/* ---- running statistics ---------------------------------------------------------------------- */

struct loader {
    int at, calls;
    bool fails;
};

static tn_tensor *next_batch(void *user)
{
    struct loader *loader = user;

    loader->calls++;
    ck_assert(!tn_grad_enabled());
    if (loader->fails && loader->at == 2)
        return NULL;
    return loader->at < 4 ? tn_tensor_from(batches[loader->at++], TN_F64, TN_SHAPE(6, 3)) : TN_NONE;
}

static void expect_statistics(tn_module *norm)
{
    double got[3];

    ck_assert_int_eq(tn_tensor_copy_out(tn_module_get(norm, "running_mean"), got, sizeof got),
                     TN_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(got[i], batches_mean[i], 1e-12);
    ck_assert_int_eq(tn_tensor_copy_out(tn_module_get(norm, "running_var"), got, sizeof got),
                     TN_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(got[i], batches_var[i], 1e-12);
    ck_assert_double_eq(tn_item(tn_module_get(norm, "num_batches_tracked")), 4);
}

START_TEST(running_statistics_are_computed_anew)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(BatchNorm1d(3, momentum=0.3), Dropout(0.5))");
    tn_module *norm = tn_module_child(net, "0"), *plain = tn_module_new("Linear(3, 1)");
    struct loader loader = { 0 };
    char text[256];
    tn_tensor *before, *x = tn_tensor_full(TN_SHAPE(2, 3), 2, TN_F64, NULL);

    ck_assert_int_eq(tn_module_double(net), TN_OK);
    ck_assert_ptr_nonnull(tn_module_call(net, x)); /* other statistics before */
    ck_assert_int_eq(tn_module_eval(net), TN_OK);
    ck_assert_int_eq(tn_module_train(tn_module_child(net, "1"), true), TN_OK);
    ck_assert_msg(tn_module_update_statistics(net, next_batch, &loader, NULL) == TN_OK, "%s",
                  tn_error_text());
    ck_assert_int_eq(loader.calls, 5);
    expect_statistics(norm);
    /* Every module is in its former mode, and momentum is as it was. */
    ck_assert(!tn_module_is_training(net));
    ck_assert(!tn_module_is_training(norm));
    ck_assert(tn_module_is_training(tn_module_child(net, "1")));
    tn_module_repr(norm, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "momentum=0.3"));
    ck_assert_int_eq(tn_module_train(norm, true), TN_OK);
    before = tn_copy(tn_module_get(norm, "running_mean"));
    ck_assert_ptr_nonnull(tn_module_call(norm, x));
    ck_assert_double_eq_tol(
        tn_item(tn_amax(tn_abs(tn_sub(tn_module_get(norm, "running_mean"),
                                      tn_add_scalar(tn_mul_scalar(before, 0.7), 0.6))))),
        0, 1e-12);

    /* A failure leaves the modes as they were, and momentum counts again. */
    loader = (struct loader){ .fails = true };
    ck_assert_int_eq(tn_module_update_statistics(net, next_batch, &loader, NULL), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "`next` of tn_module_update_statistics");
    ck_assert(!tn_module_is_training(net));
    before = tn_copy(tn_module_get(norm, "running_mean"));
    ck_assert_ptr_nonnull(tn_module_call(norm, x));
    ck_assert_double_eq_tol(
        tn_item(tn_amax(tn_abs(tn_sub(tn_module_get(norm, "running_mean"),
                                      tn_add_scalar(tn_mul_scalar(before, 0.7), 0.6))))),
        0, 1e-12);

    /* Without such a layer nothing is called. */
    loader = (struct loader){ 0 };
    ck_assert_int_eq(tn_module_update_statistics(plain, next_batch, &loader, NULL), TN_OK);
    ck_assert_int_eq(loader.calls, 0);
    tn_module_drop(plain);
    tn_module_drop(net);
    TN_PROVES("SWA-021", "SWA-022", "SWA-023", "SWA-024");
}
END_TEST

START_TEST(an_average_on_another_device_is_updated_there)
{
    for (int64_t d = 0; d < tn_device_count(); d++) {
        const tn_device *device = tn_device_at(d);
        tn_average_options options = TN_AVERAGE_OPTIONS;
        tn_module *source, *average;
        float got[STATE_SIZE];

        if (!tn_device_has_memory(device))
            continue;
        source = holder();
        ck_assert_int_eq(tn_module_float(source), TN_OK);
        options.device = device;
        average = tn_average_new(source, &options);
        ck_assert_msg(average != NULL, "%s", tn_error_text());
        for (int update = 0; update < 2; update++) {
            TN_SCOPE;
            ck_assert_ptr_nonnull(
                tn_fill_(tn_tensor_detach(tn_module_get(source, "p")), update == 0 ? 1 : 2));
            ck_assert_msg(tn_average_update(average, source) == TN_OK, "%s", tn_error_text());
        }
        ck_assert_ptr_eq(tn_tensor_device(tn_module_find_tensor(average, "module.p")), device);
        ck_assert_ptr_eq(tn_tensor_device(tn_module_get(average, "n_averaged")), device);
        ck_assert_int_eq(
            tn_tensor_copy_out(tn_module_find_tensor(average, "module.p"), got, sizeof got), TN_OK);
        ck_assert_float_eq(got[2], 1.5F);
        ck_assert_int_eq(tn_average_count(average), 2);
        tn_module_drop(average);
        tn_module_drop(source);
    }
    TN_PROVES("SWA-015");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { averages_are_those_of_pytorch,
                                   an_averaged_model_is_a_module_with_a_copy_of_the_other,
                                   the_program_may_give_the_rule,
                                   wrong_options_and_other_models_are_refused,
                                   an_average_is_resumed_from_its_state,
                                   running_statistics_are_computed_anew,
                                   an_average_on_another_device_is_updated_there,
                                   NULL };
    return suite_run("averaging", tests);
}
