/* SPDX-License-Identifier: MIT
 *
 * Loading a state into a module: values that are copied, lists of missing and unexpected names,
 * messages, assigning, versions. Names of rows are those of the behaviour specification. */
#include "tests/module/state_layers.h"

static tn_tensor *parameter(int64_t size, double value)
{
    return tn_parameter(filled(size, value), true);
}

/* Fails unless the load returns `status_` and `report` has these names, each with a space after it.
 */
#define expect_load(status_, module_, state_, flags_, missing_, unexpected_)                       \
    do {                                                                                           \
        ck_assert_int_eq(tn_module_load_report(module_, state_, flags_, report), status_);         \
        expect_list(tn_load_report_missing(report), missing_);                                     \
        expect_list(tn_load_report_unexpected(report), unexpected_);                               \
    } while (0)

START_TEST(values_are_copied_into_the_tensors_that_are_there)
{
    TN_SCOPE;
    tn_module *from = parsed("Linear(2, 3)"), *to = parsed("Linear(2, 3)");
    ck_assert_int_eq(tn_module_to(from, NULL, TN_F64), TN_OK);
    fill(from, 0.25);
    tn_tensor *weight = tn_module_get(to, "weight");
    void *data = tn_tensor_data(weight);
    tn_backward(tn_sum(tn_module_call(to, tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F32, NULL))));
    tn_tensor *gradient = tn_tensor_grad(weight);
    uint64_t version = tn_tensor_version(weight);
    tn_state *state = taken(from);
    ck_assert_int_eq(tn_module_load_state(to, state, true), TN_OK);
    ck_assert_ptr_eq(tn_module_get(to, "weight"), weight);
    ck_assert_ptr_eq(tn_tensor_data(weight), data);
    ck_assert_int_eq(tn_tensor_dtype(weight), TN_F32);
    ck_assert_double_eq(first(weight), 0.25);
    TN_PROVES("LSD-001");
    ck_assert(tn_tensor_requires_grad(weight) && tn_tensor_is_leaf(weight));
    ck_assert_uint_gt(tn_tensor_version(weight), version);
    ck_assert_ptr_eq(tn_tensor_grad(weight), gradient);
    ck_assert_double_eq(first(gradient), 1);
    TN_PROVES("LSD-002");
    tn_error_clear();
    ck_assert_int_eq(tn_module_load_state(to, NULL, true), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "Expected state_dict to be dict-like, got NULL.");
    TN_PROVES("LSD-003");
    tn_state_drop(state);
    tn_module_drop(from);
    tn_module_drop(to);
}
END_TEST

START_TEST(the_report_has_what_is_missing_and_what_nobody_knows)
{
    TN_SCOPE;
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Sequential(fc1=Linear(2, 2), r=ReLU(), fc2=Linear(2, 1))");
    tn_state *state = taken(m);
    char text[256];
    expect_load(TN_OK, m, state, TN_LOAD_STRICT, "", "");
    ck_assert_int_eq(tn_load_report_text(report, text, sizeof text), 31);
    ck_assert_str_eq(text, "<All keys matched successfully>");
    tn_state_remove(state, "fc2.weight");
    tn_state_remove(state, "fc1.bias");
    static const char *const extra[] = { "extra", "fc1.bad_suffix", "extra.param", "other.deep.one",
                                         "fc1.weight.bad_suffix" };
    for (int i = 0; i < tn__countof(extra); i++)
        tn_state_set(state, extra[i], filled(1, 1));
    for (int strict = 0; strict < 2; strict++)
        expect_load(strict ? TN_ERR_RUNTIME : TN_OK, m, state, (uint32_t)strict,
                    "fc1.bias fc2.weight ",
                    "extra extra.param other.deep.one fc1.bad_suffix fc1.weight.bad_suffix ");
    ck_assert_str_eq(
        tn_error_text(),
        "Error(s) in loading state_dict for Sequential:\n"
        "\tMissing key(s) in state_dict: \"fc1.bias\", \"fc2.weight\". \n"
        "\tUnexpected key(s) in state_dict: \"extra\", \"extra.param\", \"other.deep.one\", "
        "\"fc1.bad_suffix\", \"fc1.weight.bad_suffix\". ");
    tn_error_clear();
    TN_PROVES("LSD-006", "LSD-007", "LSD-014", "LSD-015", "LSD-016");
    tn_load_report_text(report, text, sizeof text);
    ck_assert_str_eq(text, "_IncompatibleKeys(missing_keys=['fc1.bias', 'fc2.weight'], "
                           "unexpected_keys=['extra', 'extra.param', 'other.deep.one', "
                           "'fc1.bad_suffix', 'fc1.weight.bad_suffix'])");
    TN_PROVES("LSD-004");
    /* Changes that a caller makes to the lists of one load do not affect the next load. */
    tn_names_add(tn_load_report_missing(report), "mine");
    expect_load(TN_OK, m, state, 0, "fc1.bias fc2.weight ",
                "extra extra.param other.deep.one fc1.bad_suffix fc1.weight.bad_suffix ");
    TN_PROVES("LSD-029");
    ck_assert_int_eq(tn_module_load_report(m, state, 64, report), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "flags: unknown, got 0x40");
    ck_assert_ptr_null(tn_names_at(tn_load_report_missing(report), 9));
    tn_error_clear();
    tn_state_drop(state);
    tn_module_drop(m);
    tn_load_report_drop(report);
}
END_TEST

START_TEST(what_fits_is_in_when_a_load_fails_unless_the_whole_was_asked_for)
{
    TN_SCOPE;
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Sequential(Linear(2, 4), ReLU(), Linear(4, 1))");
    tn_state *state = tn_state_new();
    tn_state_set(state, "0.weight", tn_tensor_full(TN_SHAPE(2, 3), 5, TN_F32, NULL));
    tn_state_set(state, "0.bias", filled(4, 5));
    tn_state_set(state, "2.weight", tn_tensor_full(TN_SHAPE(1, 3), 5, TN_F32, NULL));
    tn_state_set(state, "2.bias", filled(1, 5));
    fill(m, 1);
    for (uint32_t flags = 0; flags < 8; flags++) {
        fill(m, 1);
        expect_load(TN_ERR_RUNTIME, m, state, flags, "", "");
        expect_list(
            tn_load_report_errors(report),
            "size mismatch for 0.weight: copying a param with shape torch.Size([2, 3]) from "
            "checkpoint, the shape in current model is torch.Size([4, 2]). size mismatch for "
            "2.weight: copying a param with shape torch.Size([1, 3]) from checkpoint, the "
            "shape in current model is torch.Size([1, 4]). ");
        expect_failure(TN_ERR_RUNTIME,
                       "for Sequential:\n\tsize mismatch for 0.weight: copying a param with shape "
                       "torch.Size([2, 3]) from checkpoint, the shape in current model is "
                       "torch.Size([4, 2]).\n\tsize mismatch for 2.weight: ");
        bool whole = (flags & TN_LOAD_WHOLE) != 0;
        ck_assert_double_eq(first_of(m, "0.bias"), whole ? 1 : 5);
        ck_assert_double_eq(first_of(m, "2.bias"), whole ? 1 : 5);
        ck_assert_double_eq(first_of(m, "0.weight"), 1);
        /* Assigning shares the tensors: the next round starts from others. */
        tn_state_set(state, "0.bias", filled(4, 5));
        tn_state_set(state, "2.bias", filled(1, 5));
    }
    TN_PROVES("LSD-008", "LSD-009");
    tn_state_remove(state, "0.weight");
    tn_state_remove(state, "2.weight");
    fill(m, 1);
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "0.weight 2.weight ", "");
    ck_assert_double_eq(first_of(m, "0.bias"), 5);
    fill(m, 1);
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, "0.weight 2.weight ", "");
    ck_assert_double_eq(first_of(m, "0.bias"), 1);
    expect_load(TN_OK, m, state, TN_LOAD_WHOLE, "0.weight 2.weight ", "");
    ck_assert_double_eq(first_of(m, "0.bias"), 5);
    TN_PROVES("LSD-005");
    tn_error_clear();
    tn_state_drop(state);
    tn_module_drop(m);
    tn_load_report_drop(report);
}
END_TEST

START_TEST(odd_entries_are_taken_or_named)
{
    TN_SCOPE;
    static const float row[3] = { 7, 8, 9 };
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Sequential()");
    tn_module_add_buffer(m, "s", tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_F32, NULL), 0);
    tn_module_add_parameter(m, "none", TN_NONE);
    tn_state *state = tn_state_new();
    tn_state_set(state, "s", tn_tensor_from(row, TN_F32, TN_SHAPE(3)));
    expect_load(TN_OK, m, state, TN_LOAD_STRICT, "", "");
    ck_assert_double_eq(first_of(m, "s"), 7);
    tn_state_set(state, "s", filled(1, 5));
    expect_load(TN_OK, m, state, TN_LOAD_STRICT, "", "");
    ck_assert_double_eq(first_of(m, "s"), 5);
    tn_state_set(state, "s", filled(0, 5));
    expect_load(TN_ERR_RUNTIME, m, state, 0, "", "");
    expect_failure(TN_ERR_RUNTIME, "size mismatch for s: ");
    TN_PROVES("LSD-010");
    tn_state_set_value(state, "s", tn_value_string("not a tensor"));
    expect_load(TN_ERR_RUNTIME, m, state, 0, "", "");
    expect_failure(TN_ERR_RUNTIME,
                   "While copying the parameter named \"s\", expected torch.Tensor or Tensor-like "
                   "object from checkpoint but received string");
    TN_PROVES("LSD-011");
    tn_state_set(state, "s", filled(1, 5));
    tn_state_set(state, "none", filled(1, 5));
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "", "none ");
    expect_load(TN_OK, m, state, 0, "", "none ");
    ck_assert_ptr_eq(tn_module_get(m, "none"), TN_NONE);
    TN_PROVES("LSD-013");
    tn_error_clear();
    tn_state_drop(state);
    tn_module_drop(m);
    tn_load_report_drop(report);
}
END_TEST

START_TEST(a_copy_that_fails_is_one_of_the_errors)
{
    TN_SCOPE;
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Linear(2, 2)"), *empty = parsed("Linear(2, 2)");
    ck_assert_int_eq(tn_module_to(empty, tn_device_find("meta"), TN_DTYPE_AUTO), TN_OK);
    tn_state *state = taken(empty);
    tn_state_set(state, "bias", filled(2, 3));
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "", "");
    expect_failure(
        TN_ERR_RUNTIME,
        "While copying the parameter named \"weight\", whose dimensions in the model are "
        "torch.Size([2, 2]) and whose dimensions in the checkpoint are torch.Size([2, 2]), "
        "an exception occurred : (the tensor to copy from is on meta:0, which has no "
        "values; expected a state of a device with memory).");
    ck_assert_double_eq(first_of(m, "bias"), 3);
    TN_PROVES("LSD-012");
    tn_state_drop(state);
    tn_module_drop(m);
    tn_module_drop(empty);
    tn_load_report_drop(report);
}
END_TEST

START_TEST(a_tie_gets_the_value_of_its_last_name)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential()");
    tn_tensor *tied = parameter(1, 0);
    tn_module_add_parameter(m, "a", tied);
    tn_module_add_parameter(m, "b", tied);
    tn_state *state = tn_state_new();
    tn_state_set(state, "b", filled(1, 2));
    tn_state_set(state, "a", filled(1, 1));
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    ck_assert_double_eq(first_of(m, "a"), 2);
    ck_assert_int_eq(tn_state_count(state), 2);
    TN_PROVES("LSD-019");
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

/* ---- assigning ------------------------------------------------------------------------------- */

START_TEST(assigning_puts_the_tensors_themselves_into_the_slots)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(bn=BatchNorm1d(2))");
    tn_module *bn = tn_module_child(m, "bn");
    tn_tensor_set_requires_grad(tn_module_get(bn, "bias"), false);
    tn_optimizer *before = tn_optimizer_new(m, "SGD(lr=1.0)");
    tn_state *state = tn_state_new();
    tn_tensor *weight = tn_tensor_full(TN_SHAPE(2), 3, TN_F64, NULL), *mean = filled(2, 4);
    tn_tensor *bias = tn_tensor_empty_strided(TN_SHAPE(2), TN_INTS(2), TN_F32, NULL);
    tn_fill_(bias, 5);
    tn_state_set(state, "bn.weight", weight);
    tn_state_set(state, "bn.bias", bias);
    tn_state_set(state, "bn.running_mean", mean);
    tn_state_set(state, "bn.running_var", filled(2, 1));
    tn_state_set(state, "bn.num_batches_tracked", tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_I64, NULL));
    ck_assert_msg(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_ASSIGN, NULL) == TN_OK,
                  "%s", tn_error_text());
    tn_tensor *now = tn_module_get(bn, "weight");
    ck_assert_int_eq(tn_tensor_dtype(now), TN_F64);
    ck_assert_ptr_eq(tn_tensor_data(now), tn_tensor_data(weight));
    ck_assert(tn_tensor_is_parameter(now) && tn_tensor_requires_grad(now));
    ck_assert(!tn_tensor_requires_grad(weight));
    ck_assert(!tn_tensor_requires_grad(tn_module_get(bn, "bias")));
    ck_assert_int_eq(tn_tensor_strides(tn_module_get(bn, "bias")).at[0], 2);
    ck_assert_ptr_eq(tn_module_get(bn, "running_mean"), mean);
    TN_PROVES("LSD-021");
    tn_state *after = taken(m);
    expect_names(after, "bn.weight bn.bias bn.running_mean bn.running_var bn.num_batches_tracked ");
    TN_PROVES("LSD-023");
    /* The optimizer that was there before has the old tensors. */
    ck_assert_int_eq(tn_tensor_set_grad(now, tn_tensor_full(TN_SHAPE(2), 1, TN_F64, NULL)), TN_OK);
    ck_assert_int_eq(tn_optimizer_step(before), TN_OK);
    ck_assert_double_eq(first(now), 3);
    tn_optimizer *fresh = tn_optimizer_new(m, "SGD(lr=1.0)");
    ck_assert_int_eq(tn_optimizer_step(fresh), TN_OK);
    ck_assert_double_eq(first(now), 2);
    TN_PROVES("LSD-024");
    /* A load without the flag copies again: the first load left no flag in the state. */
    tn_state_set(state, "bn.weight", tn_tensor_full(TN_SHAPE(2), 9, TN_F32, NULL));
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    ck_assert_ptr_eq(tn_module_get(bn, "weight"), now);
    ck_assert_double_eq(first(now), 9);
    TN_PROVES("LSD-026");
    tn_optimizer_drop(before);
    tn_optimizer_drop(fresh);
    tn_state_drop(state);
    tn_state_drop(after);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_that_is_assigned_is_shared)
{
    TN_SCOPE;
    tn_module *from = parsed("Linear(2, 2)"), *a = parsed("Linear(2, 2)"),
              *b = parsed("Linear(2, 2)");
    tn_state *vars = tn_state_new();
    tn_module_state_into(from, vars, "", TN_STATE_KEEP_VARS);
    tn_module_set_requires_grad(a, false);
    ck_assert_int_eq(tn_module_load_report(a, vars, TN_LOAD_STRICT | TN_LOAD_ASSIGN, NULL), TN_OK);
    ck_assert_ptr_eq(tn_module_get(a, "weight"), tn_module_get(from, "weight"));
    ck_assert(!tn_tensor_requires_grad(tn_module_get(from, "weight")));
    ck_assert_int_eq(tn_module_load_report(b, vars, TN_LOAD_STRICT | TN_LOAD_ASSIGN, NULL), TN_OK);
    ck_assert_ptr_eq(tn_module_get(b, "bias"), tn_module_get(a, "bias"));
    ck_assert(tn_tensor_requires_grad(tn_module_get(a, "bias")));
    TN_PROVES("LSD-022");
    tn_state_drop(vars);
    tn_module_drop(from);
    tn_module_drop(a);
    tn_module_drop(b);
}
END_TEST

static int warnings;

static void count_warnings(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    warnings += level == TN_LOG_WARNING &&
                strstr(text, "for weight: copying from the checkpoint to "
                             "a tensor on meta:0, which has no values, "
                             "does nothing") != NULL;
}

START_TEST(a_module_without_values_gets_some_by_assigning)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)"), *from = parsed("Linear(2, 2)");
    fill(from, 6);
    ck_assert_int_eq(tn_module_to(m, tn_device_find("meta"), TN_DTYPE_AUTO), TN_OK);
    tn_state *state = taken(from);
    tn_set_log_sink(count_warnings, NULL);
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    tn_set_log_sink(NULL, NULL);
    ck_assert_int_eq(warnings, 1);
    ck_assert(!tn_device_has_memory(tn_tensor_device(tn_module_get(m, "weight"))));
    ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_ASSIGN, NULL), TN_OK);
    ck_assert_double_eq(first_of(m, "weight"), 6);
    ck_assert(tn_tensor_requires_grad(tn_module_get(m, "weight")));
    ck_assert_int_eq(warnings, 1);
    TN_PROVES("LSD-025");
    tn_state_drop(state);
    tn_module_drop(m);
    tn_module_drop(from);
}
END_TEST

/* ---- versions -------------------------------------------------------------------------------- */

START_TEST(an_old_batch_norm_keeps_the_modules_own_counter)
{
    TN_SCOPE;
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Sequential(bn=BatchNorm1d(2))");
    tn_tensor *count = tn_module_find_tensor(m, "bn.num_batches_tracked");
    tn_fill_(count, 7);
    tn_state *state = taken(m);
    tn_state_remove(state, "bn.num_batches_tracked");
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "bn.num_batches_tracked ", "");
    for (int64_t version = -1; version < 2; version++) {
        tn_state_set_version(state, "bn", version);
        expect_load(TN_OK, m, state, TN_LOAD_STRICT, "", "");
        ck_assert_double_eq(tn_item(count), 7);
        ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "bn.num_batches_tracked")),
                         TN_I64);
        ck_assert_int_eq(tn_state_find(state, "bn.num_batches_tracked"), -1); /* LSD-018 */
    }
    tn_module *meta = parsed("Sequential(bn=BatchNorm1d(2))");
    tn_module_to(meta, tn_device_find("meta"), TN_DTYPE_AUTO);
    ck_assert_int_eq(tn_module_load_report(meta, state, TN_LOAD_STRICT | TN_LOAD_ASSIGN, NULL),
                     TN_OK);
    tn_tensor *zero = tn_module_find_tensor(meta, "bn.num_batches_tracked");
    ck_assert_double_eq(tn_item(zero), 0);
    ck_assert_int_eq(tn_tensor_dtype(zero), TN_I64);
    TN_PROVES("VER-003");
    tn_module *without = parsed("Sequential(bn=BatchNorm1d(2, track_running_stats=False))");
    tn_state *none = taken(without);
    expect_names(none, "bn.weight bn.bias ");
    tn_state_set_version(none, "bn", -1);
    expect_load(TN_OK, without, none, TN_LOAD_STRICT, "", "");
    TN_PROVES("VER-004");
    tn_error_clear();
    tn_state_drop(state);
    tn_state_drop(none);
    tn_module_drop(m);
    tn_module_drop(meta);
    tn_module_drop(without);
    tn_load_report_drop(report);
}
END_TEST

START_TEST(extra_state_that_is_refused_is_one_of_the_errors)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Sequential(Noted())");
    tn_state *state = taken(m);
    noted_fails = 1;
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "While setting the extra state \"0._extra_state\", an exception "
                                   "occurred : (this note is not for me).");
    noted_sets = noted_fails = 0;
    tn_state_set(state, "other", filled(1, 1));
    ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL),
                     TN_ERR_RUNTIME);
    ck_assert_int_eq(noted_sets, 0);
    tn_error_clear();
    tn_state_remove(state, "other");
    ck_assert_int_eq(tn_module_load_report(m, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL), TN_OK);
    ck_assert_int_eq(noted_sets, 1);
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_load_that_runs_out_of_memory_says_so_and_leaks_nothing)
{
    TN_SCOPE;
    register_state_layers();
    tn_module *m = parsed("Sequential(c=Custom(), n=Noted(), bn=BatchNorm1d(2))");
    tn_state *state = taken(m);
    for (uint32_t flags = 0; flags < 8; flags += 4)
        for (uint64_t n = 1;; n++) {
            tn__memory_fail(n);
            tn_status status = tn_module_load_report(m, state, TN_LOAD_STRICT | flags, NULL);
            bool reached = tn__memory_fail(0) >= n;
            ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY || status == TN_ERR_RUNTIME,
                          "%s", tn_error_text());
            tn_error_clear();
            if (!reached)
                break;
        }
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

/* ---- a layer that reads other names ---------------------------------------------------------- */

static char text_seen[32];

/* Reads its parameter from "old", and reads "old" of its child. It calls tn_state_find() for
 * "seen", but does not read it. */
static tn_status reader_load(tn_module *self, tn_loading *loading)
{
    static const char *const names[] = { "old", "sub.old", "_extra_state", "seen" };
    char key[64];
    const char *text = tn_loading_text(loading, "written by");
    if (text != NULL)
        tn_snprint(text_seen, sizeof text_seen, "%s", text);
    ck_assert_ptr_null(tn_loading_text(loading, "absent"));
    for (int i = 0; i < 4; i++) {
        tn_snprint(key, sizeof key, "%s%s", loading->prefix, names[i]);
        int64_t found = tn_state_find(loading->state, key);
        if (found < 0 || i == 3)
            continue;
        if (i == 2)
            tn_state_value(loading->state, found);
        else if (tn_state_tensor(loading->state, found) == NULL)
            return tn_error_last_code();
        if (i == 0) {
            tn_snprint(key, sizeof key, "%sparam", loading->prefix);
            tn_status status = tn_state_set(loading->state, key,
                                            tn_state_tensor(loading->state, found));
            if (status != TN_OK)
                return status;
        }
    }
    return tn_module_load_own(self, loading);
}

static tn_status reader_build(tn_module *self)
{
    tn_module *sub = tn_module_new("Sequential(BatchNorm1d(1))"); /* it has load_state, too */
    tn_status status = tn_module_add_parameter(self, "param", parameter(1, 1));
    if (status == TN_OK)
        status = tn_module_add_child(self, "sub", sub);
    tn_module_drop(sub);
    return status;
}

static const tn_layer_def reader = { TN_HEAD(tn_layer_def), .name = "Reader", .build = reader_build,
                                     .forward = same, .load_state = reader_load };

START_TEST(names_that_a_layer_read_are_expected)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&reader), TN_OK);
    tn_load_report *report = tn_load_report_new();
    tn_module *m = parsed("Sequential(a=Reader(), b=Reader())");
    tn_state *state = taken(m);
    ck_assert_int_eq(tn_state_remove(state, "a.param"), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "a.old", filled(1, 7)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "a.sub.old", filled(1, 7)), TN_OK);
    ck_assert_int_eq(tn_state_set_value(state, "a._extra_state", tn_value_int(3)), TN_OK);
    ck_assert_int_eq(tn_state_set_meta(state, "written by", "a test"), TN_OK);
    expect_load(TN_OK, m, state, TN_LOAD_STRICT, "", "");
    ck_assert_double_eq(first(tn_module_find_parameter(m, "a.param")), 7);
    ck_assert_str_eq(text_seen, "a test");
    /* Entries that it did not read are unexpected, also those that it only looked for. */
    ck_assert_int_eq(tn_state_set(state, "a.seen", filled(1, 7)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "a.sub.other", filled(1, 7)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "seen", filled(1, 7)), TN_OK);
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "", "seen a.seen a.sub.other ");
    tn_error_clear();
    /* Reading a state outside of a load has no effect on it. */
    tn_state_value(state, tn_state_find(state, "a.seen"));
    expect_load(TN_ERR_RUNTIME, m, state, TN_LOAD_STRICT, "", "seen a.seen a.sub.other ");
    tn_error_clear();
    tn_load_report_drop(report);
    tn_state_drop(state);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        values_are_copied_into_the_tensors_that_are_there,
        the_report_has_what_is_missing_and_what_nobody_knows,
        what_fits_is_in_when_a_load_fails_unless_the_whole_was_asked_for,
        odd_entries_are_taken_or_named,
        a_copy_that_fails_is_one_of_the_errors,
        a_tie_gets_the_value_of_its_last_name,
        assigning_puts_the_tensors_themselves_into_the_slots,
        a_parameter_that_is_assigned_is_shared,
        a_module_without_values_gets_some_by_assigning,
        an_old_batch_norm_keeps_the_modules_own_counter,
        extra_state_that_is_refused_is_one_of_the_errors,
        a_load_that_runs_out_of_memory_says_so_and_leaks_nothing,
        names_that_a_layer_read_are_expected,
        NULL,
    };
    return suite_run("state in", tests);
}
