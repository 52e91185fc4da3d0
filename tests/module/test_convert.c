/* SPDX-License-Identifier: MIT
 *
 * Moving and converting modules. The rows are of the area CNV of the behaviour specification. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

static tn_tensor *filled(tn_ints shape, double value, tn_dtype dtype)
{
    return tn_tensor_full(shape, value, dtype, NULL);
}

/* Linear(2, 2) with a buffer of each kind: int64, bool, complex64. */
static tn_module *mixed(void)
{
    tn_module *m = parsed("Linear(2, 2)");
    tn_module_add_buffer(m, "i", filled(TN_SHAPE(2), 3, TN_I64), 0);
    tn_module_add_buffer(m, "b", filled(TN_SHAPE(2), 1, TN_BOOL), 0);
    tn_module_add_buffer(m, "c", tn_cast(filled(TN_SHAPE(2), 2, TN_F32), TN_C64), 0);
    return m;
}

static void expect_dtypes(tn_module *m, tn_dtype weight, tn_dtype i, tn_dtype b, tn_dtype c)
{
    ck_assert_str_eq(tn_dtype_name(tn_tensor_dtype(tn_module_get(m, "weight"))),
                     tn_dtype_name(weight));
    ck_assert_str_eq(tn_dtype_name(tn_tensor_dtype(tn_module_get(m, "i"))), tn_dtype_name(i));
    ck_assert_str_eq(tn_dtype_name(tn_tensor_dtype(tn_module_get(m, "b"))), tn_dtype_name(b));
    ck_assert_str_eq(tn_dtype_name(tn_tensor_dtype(tn_module_get(m, "c"))), tn_dtype_name(c));
}

static int warnings, informations;
static char last_line[256];

static void count_lines(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    warnings += level == TN_LOG_WARNING;
    informations += level == TN_LOG_INFO;
    tn_snprint(last_line, sizeof last_line, "%s", text);
}

START_TEST(to_changes_floating_and_complex_tensors_in_place_cnv_001_cnv_002_cnv_014)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), BatchNorm1d(2))");
    tn_tensor *w = tn_module_find_tensor(m, "0.weight"),
              *count = tn_module_find_tensor(m, "1.num_batches_tracked");
    double first = tn_item(tn_select(tn_select(w, 0, 0), 0, 0));
    tn_optimizer *optimizer = tn_optimizer_new(m, "SGD(lr=1)");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_ptr_eq(tn_module_find_tensor(m, "0.weight"), w);
    ck_assert_int_eq(tn_tensor_dtype(w), TN_F64);
    ck_assert_double_eq(tn_item(tn_select(tn_select(w, 0, 0), 0, 0)), first);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "1.running_var")), TN_F64);
    ck_assert_int_eq(tn_tensor_dtype(count), TN_I64);
    TN_PROVES("CNV-001", "CNV-002");
    tn_tensor_set_grad(w, filled(TN_SHAPE(2, 2), 1, TN_F64));
    ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
    ck_assert_double_eq_tol(
        tn_item(tn_select(tn_select(tn_module_find_tensor(m, "0.weight"), 0, 0), 0, 0)), first - 1,
        1e-12);
    TN_PROVES("CNV-014");
    tn_optimizer_drop(optimizer);
    tn_module_drop(m);
}
END_TEST

START_TEST(integers_move_but_are_not_cast_cnv_003_cnv_006)
{
    TN_SCOPE;
    tn_module *m = mixed();
    const tn_device *meta = tn_device_find("meta");
    ck_assert_msg(meta != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_to(m, meta, TN_F64), TN_OK);
    expect_dtypes(m, TN_F64, TN_I64, TN_BOOL, TN_F64);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_get(m, "i")), meta);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_get(m, "bias")), meta);
    TN_PROVES("CNV-003");
    tn_module_drop(m);
    m = mixed();
    tn_tensor *like = tn_tensor_empty(TN_SHAPE(1), TN_BF16, meta);
    ck_assert_int_eq(tn_module_to(m, tn_tensor_device(like), tn_tensor_dtype(like)), TN_OK);
    expect_dtypes(m, TN_BF16, TN_I64, TN_BOOL, TN_BF16);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_get(m, "weight")), meta);
    TN_PROVES("CNV-006");
    tn_module_drop(m);
}
END_TEST

START_TEST(an_integral_dtype_is_refused_and_nothing_changes_cnv_004_cnv_008)
{
    TN_SCOPE;
    tn_module *m = mixed();
    void *memory = tn_tensor_data(tn_module_get(m, "weight"));
    ck_assert_int_eq(tn_module_to(m, NULL, TN_I32), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "only accepts floating point or complex dtypes, but got desired "
                                "dtype=int32");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_BOOL), TN_ERR_TYPE);
    tn_error_clear();
    expect_dtypes(m, TN_F32, TN_I64, TN_BOOL, TN_C64);
    ck_assert_ptr_eq(tn_tensor_data(tn_module_get(m, "weight")), memory);
    TN_PROVES("CNV-004");
    ck_assert_int_eq(tn_module_convert(m, NULL, TN_F64, TN_MEMORY_FORMAT_KEEP, 64), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "flags: unknown, got 0x40");
    ck_assert_int_eq(tn_module_convert(m, NULL, TN_F64, (tn_memory_format)9, 0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "memory_format: unknown, got 9");
    ck_assert_int_eq(tn_module_convert(m, NULL, (tn_dtype)77, TN_MEMORY_FORMAT_KEEP, 0),
                     TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "dtype: unknown, got 77");
    ck_assert_int_eq(tn_module_convert(m, NULL, TN_F64, TN_MEMORY_FORMAT_KEEP,
                                       TN_CONVERT_ALL | TN_CONVERT_FLOATING),
                     TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "exclude each other");
    expect_dtypes(m, TN_F32, TN_I64, TN_BOOL, TN_C64);
    TN_PROVES("CNV-008");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_module_becomes_complex_with_one_warning_and_real_again_cnv_005)
{
    TN_SCOPE;
    tn_module *m = mixed();
    tn_set_log_sink(count_lines, NULL);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_C128), TN_OK);
    ck_assert_int_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(last_line, "Complex modules are a new feature"));
    expect_dtypes(m, TN_C128, TN_I64, TN_BOOL, TN_C128);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F32), TN_OK);
    expect_dtypes(m, TN_F32, TN_I64, TN_BOOL, TN_F32);
    ck_assert_int_eq(warnings, 1);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(m, "c"))), 4.0);
    tn_set_log_sink(NULL, NULL);
    TN_PROVES("CNV-005");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_memory_format_restrides_tensors_of_four_and_five_dimensions_cnv_007)
{
    TN_SCOPE;
    tn_module *m = parsed("Conv2d(3, 4, 2)"), *deep = parsed("Conv3d(2, 2, 2)");
    float before[48], after[48];
    tn_tensor *w = tn_module_get(m, "weight"), *b = tn_module_get(m, "bias");
    void *bias = tn_tensor_data(b);
    tn_tensor_copy_out(w, before, sizeof before);
    ck_assert_int_eq(tn_module_convert(m, NULL, TN_DTYPE_AUTO, TN_MEMORY_FORMAT_CHANNELS_LAST, 0),
                     TN_OK);
    const int64_t last[4] = { 12, 1, 6, 3 }, rows[4] = { 12, 4, 2, 1 };
    ck_assert_mem_eq(tn_tensor_strides(w).at, last, sizeof last);
    ck_assert_ptr_eq(tn_tensor_data(b), bias);
    tn_tensor_copy_out(w, after, sizeof after);
    ck_assert_mem_eq(after, before, sizeof before);
    void *memory = tn_tensor_data(w);
    tn_module_convert(m, NULL, TN_F32, TN_MEMORY_FORMAT_CHANNELS_LAST, 0);
    ck_assert_ptr_eq(tn_tensor_data(w), memory); /* w had the channels last already */
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_mem_eq(tn_tensor_strides(w).at, last, sizeof last);
    ck_assert_int_eq(tn_module_convert(m, NULL, TN_F32, TN_MEMORY_FORMAT_CONTIGUOUS, 0), TN_OK);
    ck_assert_mem_eq(tn_tensor_strides(w).at, rows, sizeof rows);
    tn_tensor_copy_out(w, after, sizeof after);
    ck_assert_mem_eq(after, before, sizeof before);
    ck_assert_int_eq(
        tn_module_convert(deep, NULL, TN_DTYPE_AUTO, TN_MEMORY_FORMAT_CHANNELS_LAST, 0),
        TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "channels last: wrong number of dimensions, got 5; expected 4");
    ck_assert_int_eq(
        tn_module_convert(deep, NULL, TN_DTYPE_AUTO, TN_MEMORY_FORMAT_CHANNELS_LAST_3D, 0), TN_OK);
    const int64_t last_3d[5] = { 16, 1, 8, 4, 2 };
    ck_assert_mem_eq(tn_tensor_strides(tn_module_get(deep, "weight")).at, last_3d, sizeof last_3d);
    TN_PROVES("CNV-007");
    tn_module_drop(m);
    tn_module_drop(deep);
}
END_TEST

START_TEST(floating_conversions_leave_complex_and_integers_cnv_010_cnv_011)
{
    TN_SCOPE;
    tn_module *m = mixed();
    ck_assert_int_eq(tn_module_half(m), TN_OK);
    expect_dtypes(m, TN_F16, TN_I64, TN_BOOL, TN_C64);
    ck_assert_int_eq(tn_module_bfloat16(m), TN_OK);
    expect_dtypes(m, TN_BF16, TN_I64, TN_BOOL, TN_C64);
    ck_assert_int_eq(tn_module_float(m), TN_OK);
    expect_dtypes(m, TN_F32, TN_I64, TN_BOOL, TN_C64);
    ck_assert_int_eq(tn_module_double(m), TN_OK);
    expect_dtypes(m, TN_F64, TN_I64, TN_BOOL, TN_C64);
    TN_PROVES("CNV-010");
    ck_assert_int_eq(tn_module_cast(m, TN_F32), TN_OK);
    expect_dtypes(m, TN_F32, TN_F32, TN_F32, TN_F32);
    ck_assert_double_eq(tn_item(tn_sum(tn_module_get(m, "i"))), 6.0);
    /* A tensor that requires grad cannot become an integer; after the failure nothing has changed.
     */
    ck_assert_int_eq(tn_module_cast(m, TN_I32), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "converting \"weight\": it requires grad");
    expect_dtypes(m, TN_F32, TN_F32, TN_F32, TN_F32);
    tn_module_set_requires_grad(m, false);
    ck_assert_int_eq(tn_module_cast(m, TN_I32), TN_OK);
    expect_dtypes(m, TN_I32, TN_I32, TN_I32, TN_I32);
    TN_PROVES("CNV-011");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_device_goes_by_its_name_and_an_absent_one_is_named_cnv_009_cnv_012)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    ck_assert_int_eq(tn_module_to_device(m, "nowhere:3"), tn_error_last_code());
    ck_assert_int_ne(tn_error_last_code(), TN_OK);
    expect_failure(tn_error_last_code(), "nowhere");
    ck_assert_int_eq(tn_module_to_device(m, "cpu"), TN_OK);
    tn_tensor *y = tn_module_call(m, filled(TN_SHAPE(1, 2), 1, TN_F32));
    float before[2], after[2];
    tn_tensor_copy_out(y, before, sizeof before);
    ck_assert_int_eq(tn_module_convert(m, tn_device_find("cpu:0"), TN_F64, TN_MEMORY_FORMAT_KEEP,
                                       TN_CONVERT_NON_BLOCKING),
                     TN_OK);
    ck_assert_int_eq(tn_device_sync(tn_device_find("cpu:0")), TN_OK);
    ck_assert_int_eq(
        tn_module_convert(m, NULL, TN_F32, TN_MEMORY_FORMAT_KEEP, TN_CONVERT_NON_BLOCKING), TN_OK);
    tn_tensor_copy_out(tn_module_call(m, filled(TN_SHAPE(1, 2), 1, TN_F32)), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    TN_PROVES("CNV-009");
    ck_assert_int_eq(tn_module_to_device(m, "meta"), TN_OK);
    ck_assert_str_eq(tn_device_type(tn_tensor_device(tn_module_get(m, "bias"))), "meta");
    TN_PROVES("CNV-012");
    tn_module_drop(m);
}
END_TEST

/* ---- the map --------------------------------------------------------------------------------- */

struct seen {
    char sizes[64];
    int calls, fail_at;
};

static tn_status note_size(void *user, tn_tensor *tensor, tn_tensor **out)
{
    struct seen *seen = user;
    char number[16];
    (void)out;
    tn_snprint(number, sizeof number, "%lld ", (long long)tn_tensor_numel(tensor));
    strcat(seen->sizes, number);
    return TN_OK;
}

static tn_status add_one(void *user, tn_tensor *tensor, tn_tensor **out)
{
    struct seen *seen = user;
    if (++seen->calls == seen->fail_at)
        return tn_fail(TN_ERR_CANCELLED, "enough");
    *out = tn_add_scalar(tensor, 1.0);
    return *out != NULL ? TN_OK : tn_error_last_code();
}

static tn_status double_in_place(void *user, tn_tensor *tensor, tn_tensor **out)
{
    (void)user;
    (void)out;
    return tn_mul_scalar_(tensor, 2.0) != NULL ? TN_OK : tn_error_last_code();
}

static tn_tensor *parameter(int64_t n)
{
    return tn_parameter(filled(TN_SHAPE(n), 1, TN_F32), true);
}

START_TEST(children_come_first_then_parameters_then_buffers_cnv_013)
{
    TN_SCOPE;
    struct seen seen = { "", 0, 0 };
    tn_module *m = parsed("Sequential()"), *child = parsed("Sequential()");
    tn_module_add_buffer(m, "b", filled(TN_SHAPE(5), 1, TN_F32), 0);
    tn_module_add_parameter(m, "p", parameter(4));
    tn_module_add_parameter(child, "p", parameter(2));
    tn_module_add_buffer(child, "b", filled(TN_SHAPE(3), 1, TN_F32), 0);
    tn_module_add_child(m, "x", child);
    tn_module_add_child(m, "again", child);
    ck_assert_int_eq(tn_module_map(m, true, note_size, &seen), TN_OK);
    ck_assert_str_eq(seen.sizes, "2 3 4 5 ");
    seen.sizes[0] = '\0';
    ck_assert_int_eq(tn_module_map(m, false, note_size, &seen), TN_OK);
    ck_assert_str_eq(seen.sizes, "4 5 ");
    TN_PROVES("CNV-013");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(ties_stay_and_a_shared_module_is_changed_for_each_parent_cnv_017_cnv_018_cnv_019)
{
    TN_SCOPE;
    struct seen seen = { "", 0, 0 };
    tn_module *m = parsed("Sequential()"), *a = parsed("Sequential()"), *b = parsed("Sequential()"),
              *shared = parsed("Sequential()");
    tn_tensor *p = parameter(1), *buffer = filled(TN_SHAPE(1), 1, TN_F32);
    tn_module_add_parameter(a, "p", p);
    tn_module_add_parameter(b, "p", p);
    tn_module_add_buffer(a, "b", buffer, 0);
    tn_module_add_buffer(b, "b", buffer, 0);
    tn_module_add_child(m, "a", a);
    tn_module_add_child(m, "b", b);
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F64), TN_OK);
    ck_assert_ptr_eq(tn_module_get(a, "p"), tn_module_get(b, "p"));
    ck_assert_int_eq(tn_tensor_dtype(p), TN_F64);
    ck_assert_double_eq(tn_item(p), 1.0);
    TN_PROVES("CNV-017");
    /* Buffers that are tied stay so, too: each slot keeps its tensor. */
    ck_assert_ptr_eq(tn_module_get(a, "b"), tn_module_get(b, "b"));
    ck_assert_int_eq(tn_tensor_dtype(buffer), TN_F64);
    TN_PROVES("CNV-018", "UTL-005"); /* the objects stay, whatever the conversion */
    ck_assert_int_eq(tn_module_map(m, true, add_one, &seen), TN_OK);
    ck_assert_int_eq(seen.calls, 4);
    ck_assert_double_eq(tn_item(p), 3.0);
    ck_assert_double_eq(tn_item(buffer), 3.0);
    tn_tensor *own = parameter(1);
    tn_module_add_parameter(shared, "own", own);
    tn_module_add_child(a, "s", shared);
    tn_module_add_child(b, "s", shared);
    seen.calls = 0;
    ck_assert_int_eq(tn_module_map(m, true, add_one, &seen), TN_OK);
    ck_assert_int_eq(seen.calls, 6);
    ck_assert_double_eq(tn_item(own), 3.0);
    TN_PROVES("CNV-019");
    /* A failure in the middle leaves all as it was. */
    seen = (struct seen){ "", 0, 4 };
    ck_assert_int_eq(tn_module_map(m, true, add_one, &seen), TN_ERR_CANCELLED);
    expect_failure(TN_ERR_CANCELLED, "moving or converting \"b.s.own\": enough");
    ck_assert_double_eq(tn_item(own), 3.0);
    ck_assert_double_eq(tn_item(p), 5.0);
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(shared);
    tn_module_drop(m);
}
END_TEST

/* Removes the first child: a change that takes slots away ends the walk and breaks nothing. */
static tn_status take_away(void *user, tn_tensor *tensor, tn_tensor **out)
{
    tn_module *m = user;
    (void)tensor, (void)out;
    if (tn_module_child_count(m) > 0)
        tn_module_remove(m, tn_module_child_name(m, 0));
    return TN_OK;
}

START_TEST(a_change_may_take_modules_out_of_the_tree)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Sequential(Linear(2, 2), Linear(2, 2)), Linear(2, 2))");
    ck_assert_int_eq(tn_module_map(m, true, take_away, m), TN_OK);
    ck_assert_int_eq(tn_module_child_count(m), 0);
    tn_module_drop(m);
}
END_TEST

START_TEST(gradients_are_converted_with_their_parameters_outside_any_graph_cnv_016_cnv_021)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 1)");
    tn_tensor *w = tn_module_get(m, "weight"), *b = tn_module_get(m, "bias");
    tn_tensor_set_requires_grad(b, false);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, filled(TN_SHAPE(3, 2), 2, TN_F32)))),
                     TN_OK);
    tn_tensor *gradient = tn_tensor_grad(w);
    ck_assert_int_eq(tn_module_double(m), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(w)), TN_F64);
    ck_assert_ptr_eq(tn_tensor_grad(w), gradient);
    ck_assert(!tn_tensor_requires_grad(gradient));
    ck_assert_double_eq(tn_item(tn_sum(gradient)), 12.0);
    TN_PROVES("CNV-016");
    ck_assert(tn_tensor_is_leaf(w) && tn_tensor_requires_grad(w) && tn_tensor_is_parameter(w));
    ck_assert_str_eq(tn_tensor_grad_op(w), "");
    ck_assert(!tn_tensor_requires_grad(b));
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, filled(TN_SHAPE(3, 2), 2, TN_F64)))),
                     TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(tn_tensor_grad(w))), 24.0);
    TN_PROVES("CNV-021");
    tn_module_drop(m);
}
END_TEST

START_TEST(what_fits_already_is_not_touched_and_old_views_keep_their_memory_cnv_020_cnv_023)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_tensor *w = tn_module_get(m, "weight");
    void *memory = tn_tensor_data(w);
    uint64_t version = tn_tensor_version(w);
    ck_assert_int_eq(tn_module_to(m, tn_device_find("cpu"), TN_F32), TN_OK);
    ck_assert_ptr_eq(tn_tensor_data(w), memory);
    ck_assert_uint_eq(tn_tensor_version(w), version);
    TN_PROVES("CNV-020");
    tn_tensor *view = tn_reshape(tn_detach(w), TN_SHAPE(4));
    ck_assert_int_eq(tn_module_double(m), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(view), TN_F32);
    ck_assert_ptr_eq(tn_tensor_data(view), memory);
    ck_assert(!tn_tensor_shares_storage(view, w));
    TN_PROVES("CNV-023");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_change_in_place_makes_a_recorded_graph_stale_cnv_022)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 1, bias=False)");
    tn_tensor *x = filled(TN_SHAPE(1, 2), 1, TN_F32);
    tn_tensor_set_requires_grad(x, true);
    tn_tensor *y = tn_module_call(m, x), *w = tn_module_get(m, "weight");
    uint64_t version = tn_tensor_version(w);
    ck_assert_int_eq(tn_module_map(m, true, double_in_place, NULL), TN_OK);
    ck_assert_uint_gt(tn_tensor_version(w), version);
    ck_assert_int_ne(tn_backward(tn_sum(y)), TN_OK);
    expect_failure(TN_ERR_RUNTIME, "inplace operation");
    /* the same for gradients */
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, x))), TN_OK);
    version = tn_tensor_version(tn_tensor_grad(w));
    double before = tn_item(tn_sum(tn_tensor_grad(w)));
    ck_assert_int_eq(tn_module_map(m, true, double_in_place, NULL), TN_OK);
    ck_assert_uint_gt(tn_tensor_version(tn_tensor_grad(w)), version);
    ck_assert_double_eq(tn_item(tn_sum(tn_tensor_grad(w))), 2 * before);
    TN_PROVES("CNV-022");
    tn_module_drop(m);
}
END_TEST

START_TEST(values_come_back_from_meta_by_to_empty_only_cnv_015_cnv_024_cnv_025_cnv_026)
{
    TN_SCOPE;
    const tn_device *meta = tn_device_find("meta"), *cpu = tn_device_find("cpu");
    tn_device_begin(meta);
    tn_module *m = parsed("Sequential(Linear(2, 3), BatchNorm1d(3))");
    tn_device_end();
    tn_tensor *w = tn_module_find_tensor(m, "0.weight");
    ck_assert_ptr_eq(tn_tensor_device(w), meta);
    ck_assert_int_eq(tn_module_to(m, cpu, TN_DTYPE_AUTO), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "use tn_module_to_empty");
    ck_assert_ptr_eq(tn_tensor_device(w), meta);
    TN_PROVES("CNV-024");
    tn_tensor_set_requires_grad(tn_module_find_tensor(m, "0.bias"), false);
    tn_module_add_parameter(m, "tied", w);
    /* not the children's tensors, except the tied one */
    ck_assert_int_eq(tn_module_to_empty(m, cpu, false), TN_OK);
    ck_assert_ptr_eq(tn_tensor_device(w), cpu);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_find_tensor(m, "0.bias")), meta);
    ck_assert_int_eq(tn_module_to_empty(m, cpu, true), TN_OK);
    ck_assert_ptr_eq(tn_tensor_device(tn_module_find_tensor(m, "1.running_mean")), cpu);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "1.num_batches_tracked")), TN_I64);
    ck_assert_int_eq(tn_tensor_size(w, 0), 3);
    ck_assert_int_eq(tn_tensor_size(w, 1), 2);
    ck_assert_ptr_eq(tn_module_get(m, "tied"), tn_module_find_tensor(m, "0.weight"));
    TN_PROVES("CNV-025");
    ck_assert(tn_tensor_requires_grad(w) && tn_tensor_is_leaf(w) && tn_tensor_is_parameter(w));
    ck_assert(!tn_tensor_requires_grad(tn_module_find_tensor(m, "0.bias")));
    TN_PROVES("CNV-015", "CNV-026");
    ck_assert_int_eq(tn_init(w, "ones()"), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(w)), 6.0);
    ck_assert_int_eq(tn_module_to_empty(m, meta, true), TN_OK);
    ck_assert_ptr_eq(tn_tensor_device(w), meta);
    tn_module_drop(m);
}
END_TEST

START_TEST(compiling_changes_nothing_and_says_so_cnv_028)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), Tanh())");
    tn_tensor *x = filled(TN_SHAPE(3, 2), 0.5, TN_F32);
    float before[6], after[6];
    tn_tensor_copy_out(tn_module_call(m, x), before, sizeof before);
    tn_set_log_sink(count_lines, NULL);
    ck_assert_int_eq(tn_module_compile(m, "eager()"), TN_OK);
    ck_assert_int_eq(informations, 1);
    ck_assert_ptr_nonnull(strstr(last_line, "eager(): nothing to do, Sequential runs as it is"));
    ck_assert_int_eq(tn_module_compile(m, NULL), TN_OK);
    tn_set_log_sink(NULL, NULL);
    tn_tensor_copy_out(tn_module_call(m, x), after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    TN_PROVES("CNV-028");
    tn_module_drop(m);
}
END_TEST

START_TEST(another_spec_to_compile_by_is_refused_with_the_list)
{
    tn_module *m = parsed("ReLU()");
    ck_assert_int_eq(tn_module_compile(m, "infer(threads=1)"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "got \"infer\"; expected one of: eager(), plan()");
    ck_assert_int_eq(tn_module_compile(m, "eager(threads=1)"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "eager: too many arguments, got 1; expected 0");
    ck_assert_int_ne(tn_module_compile(m, "eager("), TN_OK);
    expect_failure(TN_ERR_FORMAT, "tn_module_compile: spec: ");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_slot_with_a_fixed_dtype_moves_and_keeps_it)
{
    TN_SCOPE;
    const tn_device *meta = tn_device_find("meta");
    tn_module *m = parsed("Sequential(Linear(2, 2), Linear(2, 2))"),
              *first = tn_module_child(m, "0");
    tn_tensor *scale = filled(TN_SHAPE(2), 3, TN_F32), *bias = tn_module_get(first, "bias");
    ck_assert_int_eq(tn_module_add_buffer(first, "scale", scale, TN_SLOT_FLAG_FIXED_DTYPE), TN_OK);
    ck_assert_int_eq(tn_module_add_buffer(m, "same", scale, 0), TN_OK); /* tied: stays, too */
    ck_assert_int_eq(tn_module_set_fixed_dtype(first, "bias", true), TN_OK);
    ck_assert(tn_module_has_fixed_dtype(first, "bias") &&
              tn_module_has_fixed_dtype(first, "scale") &&
              !tn_module_has_fixed_dtype(first, "weight") && !tn_module_has_fixed_dtype(m, "x"));
    tn_tensor_set_grad(bias, filled(TN_SHAPE(2), 1, TN_F32));
    ck_assert_int_eq(tn_module_bfloat16(m), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(first, "weight")), TN_BF16);
    ck_assert_int_eq(tn_tensor_dtype(bias), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(bias)), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "same")), TN_F32);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "1.bias")), TN_BF16);
    ck_assert_int_eq(tn_module_cast(m, TN_F64), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(first, "scale")), TN_F32);
    /* a copy has the flag, another tensor in the slot has it, too; without it, it is converted */
    tn_module *copy = tn_module_copy(m);
    ck_assert(tn_module_has_fixed_dtype(tn_module_child(copy, "0"), "scale"));
    ck_assert_int_eq(tn_module_to(copy, meta, TN_F16), TN_OK);
    tn_tensor *moved = tn_module_find_tensor(copy, "0.scale");
    ck_assert_ptr_eq(tn_tensor_device(moved), meta);
    ck_assert_int_eq(tn_tensor_dtype(moved), TN_F32);
    ck_assert_int_eq(tn_module_set(first, "scale", filled(TN_SHAPE(2), 1, TN_F64)), TN_OK);
    ck_assert_int_eq(tn_module_half(m), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(first, "scale")), TN_F64);
    ck_assert_int_eq(tn_module_set_fixed_dtype(first, "scale", false), TN_OK);
    ck_assert_int_eq(tn_module_half(m), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(first, "scale")), TN_F16);
    ck_assert_int_eq(tn_module_set_fixed_dtype(first, "no", true), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "has no parameter or buffer 'no'");
    ck_assert_int_eq(tn_module_add_buffer(first, "b", scale, 4), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE,
                   "expected TN_SLOT_FLAG_NOT_PERSISTENT (1) or TN_SLOT_FLAG_FIXED_DTYPE (2)");
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        to_changes_floating_and_complex_tensors_in_place_cnv_001_cnv_002_cnv_014,
        integers_move_but_are_not_cast_cnv_003_cnv_006,
        an_integral_dtype_is_refused_and_nothing_changes_cnv_004_cnv_008,
        a_module_becomes_complex_with_one_warning_and_real_again_cnv_005,
        a_memory_format_restrides_tensors_of_four_and_five_dimensions_cnv_007,
        floating_conversions_leave_complex_and_integers_cnv_010_cnv_011,
        a_device_goes_by_its_name_and_an_absent_one_is_named_cnv_009_cnv_012,
        children_come_first_then_parameters_then_buffers_cnv_013,
        ties_stay_and_a_shared_module_is_changed_for_each_parent_cnv_017_cnv_018_cnv_019,
        a_change_may_take_modules_out_of_the_tree,
        gradients_are_converted_with_their_parameters_outside_any_graph_cnv_016_cnv_021,
        what_fits_already_is_not_touched_and_old_views_keep_their_memory_cnv_020_cnv_023,
        a_change_in_place_makes_a_recorded_graph_stale_cnv_022,
        values_come_back_from_meta_by_to_empty_only_cnv_015_cnv_024_cnv_025_cnv_026,
        compiling_changes_nothing_and_says_so_cnv_028,
        another_spec_to_compile_by_is_refused_with_the_list,
        a_slot_with_a_fixed_dtype_moves_and_keeps_it,
        NULL,
    };
    setenv("TENON_LOG", "info", 1);
    return suite_run("convert", tests);
}
