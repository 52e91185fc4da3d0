/* SPDX-License-Identifier: MIT
 *
 * The option structs of all operators, from the registry: structs of every size, NULL for every
 * text and list, and counts that are not those of a list. Each struct has memory of exactly its
 * size, so that AddressSanitizer reports every read beyond it. */
#include "tests/op/suite.h"

enum { MOST = 16, SPACE = 512 };

static const tn_op_def *def;
static const tn_op *op;
static int64_t calls;

/* A dtype that an input takes. */
static tn_dtype dtype_for(const tn_operand *operand)
{
    uint64_t mask = operand->dtypes != 0 ? operand->dtypes : TN_MASK_ARITH;

    for (int dtype = TN_DTYPE_COUNT - 1; dtype >= 0; dtype--)
        if ((mask & TN_BIT(dtype)) != 0 && (mask & TN_BIT(TN_F32)) == 0)
            return (tn_dtype)dtype;
    return TN_F32;
}

/* Calls the operator with tensors that no check of dtypes refuses. Returns the status. */
static tn_status called(const void *options)
{
    TN_SCOPE;
    tn_tensor *in[MOST], *out[MOST] = { NULL };

    for (int32_t i = 0; i < def->n_inputs; i++)
        in[i] = tn_tensor_full(TN_SHAPE(2, 3), 1.0, dtype_for(&def->inputs[i]), NULL);
    tn_error_clear();
    calls++;
    return tn_op_call(op, in, def->n_inputs, options, out, def->n_outputs);
}

static tn_status added(const void *options)
{
    tn_graph *graph = tn_graph_new();
    tn_node *in[MOST];
    tn_status status;

    tn_error_clear();
    for (int32_t i = 0; i < def->n_inputs; i++)
        in[i] = tn_graph_input(graph, (char[]){ 'a' + (char)i, '\0' }, TN_SHAPE(2, 3),
                               dtype_for(&def->inputs[i]));
    status = tn_graph_add_call(graph, NULL, op, options, in, def->n_inputs) != NULL
                 ? TN_OK
                 : tn_error_last_code();
    tn_graph_drop(graph);
    return status;
}

static void each_operator(void (*check)(void))
{
    for (int64_t i = 0; i < tn_op_count(); i++) {
        op = tn_op_find(tn_op_name_at(i), 0);
        def = tn_op_definition(op);
        if (def->options != NULL)
            check();
        tn_error_clear();
    }
}

/* ---- sizes ---- */

static size_t size_of(const tn_option *row)
{
    static const size_t sizes[] = {
        [TN_OPTION_KIND_BOOL] = sizeof(bool),      [TN_OPTION_KIND_INT] = sizeof(int64_t),
        [TN_OPTION_KIND_FLOAT] = sizeof(double),   [TN_OPTION_KIND_STRING] = sizeof(char *),
        [TN_OPTION_KIND_INTS] = sizeof(tn_ints),   [TN_OPTION_KIND_FLOATS] = sizeof(tn_floats),
        [TN_OPTION_KIND_DTYPE] = sizeof(tn_dtype), [TN_OPTION_KIND_SCALAR] = sizeof(tn_scalar),
    };

    ck_assert_uint_lt(row->kind, sizeof sizes / sizeof *sizes);
    return sizes[row->kind];
}

/* What the error about a struct of `size` bytes says; NULL: nothing. */
static const char *expected(uint32_t size)
{
    bool missing = false;

    if (size < sizeof size)
        return "too small";
    if (size > ((def->options_size + 7) & ~7u))
        return "too large";
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++) {
        if (row->offset < size && size < row->offset + size_of(row))
            return "ends inside";
        missing |= (row->flags & TN_OPTION_REQUIRED) != 0 && row->offset >= size;
    }
    return missing ? "it is missing" : NULL;
}

static void try_size(uint32_t size, tn_status (*call)(const void *options))
{
    uint32_t both = size < def->options_size ? size : def->options_size;
    uint8_t *own = calloc(1, size < sizeof size ? sizeof size : size);
    const char *words = expected(size);

    memcpy(own, def->defaults, both);
    memcpy(own, &size, sizeof size);
    tn_status status = call(own);
    if (words != NULL)
        ck_assert_msg(status != TN_OK && strstr(tn_error_text(), words) != NULL,
                      "%s with %u bytes: got \"%s\", not \"%s\"", def->name, size,
                      status == TN_OK ? "" : tn_error_text(), words);
    else if (status != TN_OK)
        ck_assert_msg(strstr(tn_error_text(), "options.size") == NULL, "%s with %u bytes: %s",
                      def->name, size, tn_error_text());
    tn_error_clear();
    free(own);
}

static void try_sizes(void)
{
    for (uint32_t size = 0; size <= def->options_size + 16; size++) {
        try_size(size, called);
        try_size(size, added);
    }
}

START_TEST(an_option_struct_of_any_size_is_whole_or_refused)
{
    calls = 0;
    each_operator(try_sizes);
    ck_assert_int_gt(calls, 10000);
    /* huber_loss: the size ends inside the pointer `reduction`. */
    struct {
        uint32_t size;
        char rest[12];
    } part = { 13, "" };
    TN_SCOPE;
    tn_tensor *in[] = { VEC(1, 2), VEC(2, 4) }, *out[1];
    ck_assert_int_eq(tn_op_call(tn_op_find("huber_loss", 0), in, 2, &part, out, 1), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_text(),
                     "huber_loss: options.size: it ends inside the option reduction, got 13; "
                     "expected at most 8 or at least 16");
    tn_error_clear();
}
END_TEST

/* ---- pointers ---- */

static uint64_t space[SPACE / 8];

static bool may_be_none(const tn_option *row)
{
    return (row->flags & TN_OPTION_OPTIONAL) != 0;
}

/* Both ways of giving options to an operator must refuse `space`, and name the option. */
static void expect_refused(const tn_option *row, const char *words)
{
    tn_status (*const ways[])(const void *options) = { called, added };

    for (int i = 0; i < 2; i++) {
        ck_assert_msg(ways[i](space) == TN_ERR_VALUE, "%s takes %s without %s", def->name,
                      row->name, words);
        ck_assert_msg(strstr(tn_error_text(), row->name) != NULL &&
                          strstr(tn_error_text(), words) != NULL,
                      "%s, %s: %s", def->name, row->name, tn_error_text());
        tn_error_clear();
    }
}

static int64_t texts, lists;

/* The options with valid pointers, except that of `row`. */
static uint8_t *fill(const tn_option *row)
{
    ck_assert_uint_le(def->options_size, SPACE);
    memcpy(space, def->defaults, def->options_size);
    for (const tn_option *other = def->options; other->kind != TN_OPTION_KIND_END; other++)
        if (other != row && other->kind == TN_OPTION_KIND_STRING)
            *(const char **)(void *)((uint8_t *)space + other->offset) = "";
    return (uint8_t *)space + row->offset;
}

static void try_pointers(void)
{
    static const int64_t counts[] = { -2, INT64_MIN };

    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++) {
        void *at = fill(row);

        if (row->kind == TN_OPTION_KIND_STRING && !may_be_none(row)) {
            *(const char **)at = NULL;
            expect_refused(row, "got NULL");
            texts++;
        }
        if (row->kind != TN_OPTION_KIND_INTS && row->kind != TN_OPTION_KIND_FLOATS)
            continue;
        *(tn_ints *)at = (tn_ints){ NULL, 3 };
        expect_refused(row, "got NULL with count 3");
        for (int i = 0; i < 2; i++) {
            *(tn_ints *)at = (tn_ints){ NULL, counts[i] };
            expect_refused(row, "wrong count");
        }
        lists++;
    }
}

START_TEST(a_text_or_list_of_options_without_its_memory_is_refused)
{
    texts = lists = 0;
    each_operator(try_pointers);
    ck_assert_int_gt(texts, 40);
    ck_assert_int_gt(lists, 80);

    TN_SCOPE;
    tn_tensor *x = VEC(0.25f, 0.5f, 0.75f), *y, *mean, *var;
    ck_assert_ptr_null(
        tn_nll_loss_weighted(x, tn_tensor_full(TN_SHAPE(1), 1, TN_I64, NULL), x, NULL, -100));
    ck_assert_str_eq(tn_error_text(),
                     "nll_loss_weighted: reduction: no text, got NULL; expected none, mean or sum");
    tn_error_clear();
    /* None, where an operator knows only empty lists: an empty list */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_standardize(x, TN_NONE, TN_NONE, i ? tn_none_ints() : tn_no_ints(), &y,
                                        &mean, &var, 1e-5),
                         TN_OK);
        ck_assert_double_eq(at(mean, 0), 0.5);
        ck_assert_double_eq_tol(at(var, 0), 0.125 / 3, 1e-7);
        ck_assert_double_eq(at(tn_sum(x, i ? tn_none_ints() : tn_no_ints()), 0), 1.5);
    }
    tn_error_clear();
}
END_TEST

/* ---- more dimensions than there are ---- */

START_TEST(an_affine_shape_that_does_not_broadcast_to_x_is_refused)
{
    TN_SCOPE;
    static int64_t sizes[200];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL), *moment, *y[4];

    moment = tn_tensor_full(TN_SHAPE(2, 1), 1, TN_F32, NULL);
    for (int i = 0; i < 200; i++)
        sizes[i] = 1;
    for (int64_t count = 3; count <= 200; count += count < 20 ? 1 : 60) {
        ck_assert_int_eq(tn_standardize_grad(x, x, moment, moment, TN_NONE, TN_INTS(1), &y[0],
                                             &y[1], &y[2], 1e-5, (tn_ints){ sizes, count }),
                         TN_ERR_RUNTIME);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "affine_shape: wrong shape"));
        tn_error_clear();
        ck_assert_int_eq(tn_standardize_relu_grad(x, x, x, moment, moment, TN_NONE, TN_INTS(1),
                                                  &y[0], &y[1], &y[2], &y[3], 1e-5,
                                                  (tn_ints){ sizes, count }, false, NAN),
                         TN_ERR_RUNTIME);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "affine_shape: wrong shape"));
        tn_error_clear();
    }
    ck_assert_int_eq(tn_standardize_grad(x, x, moment, moment, TN_NONE, TN_INTS(1), &y[0], &y[1],
                                         &y[2], 1e-5, TN_INTS(3)),
                     TN_OK);
    ck_assert_int_eq(tn_tensor_numel(y[1]), 3);
}
END_TEST

/* x [2, 1, ..., 1, channels, height, width] with `ndim` dimensions, or with 4. */
static tn_tensor *images(int32_t ndim, int64_t channels, int64_t height, int64_t width)
{
    int64_t shape[TN_MAX_DIMS] = { 2 };
    tn_tensor *x = tn_arange(tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL), 0,
                             (double)(2 * channels * height * width));

    for (int32_t d = 1; d < ndim - 3; d++)
        shape[d] = 1;
    shape[ndim - 3] = channels;
    shape[ndim - 2] = height;
    shape[ndim - 1] = width;
    return tn_reshape(x, (tn_ints){ shape, ndim });
}

static void expect_same(tn_tensor *y, tn_tensor *four)
{
    ck_assert_msg(y != NULL && four != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(y), tn_tensor_numel(four));
    for (int32_t d = 1; d <= 3; d++)
        ck_assert_int_eq(tn_tensor_size(y, -d), tn_tensor_size(four, -d));
    for (int64_t i = 0; i < tn_tensor_numel(y); i++)
        ck_assert_double_eq(at(y, i), at(four, i));
}

START_TEST(pixels_are_shuffled_in_tensors_of_any_number_of_dimensions)
{
    for (int32_t ndim = 4; ndim <= TN_MAX_DIMS; ndim++) {
        TN_SCOPE;
        tn_tensor *y = tn_pixel_shuffle(images(ndim, 8, 2, 3), 2);

        ck_assert_msg(y != NULL, "%d dimensions: %s", (int)ndim, tn_error_text());
        ck_assert_int_eq(tn_tensor_ndim(y), ndim);
        expect_same(y, tn_pixel_shuffle(images(4, 8, 2, 3), 2));
        expect_same(tn_pixel_unshuffle(y, 2), images(4, 8, 2, 3));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("option structs");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_option_struct_of_any_size_is_whole_or_refused);
    tcase_add_test(tests, a_text_or_list_of_options_without_its_memory_is_refused);
    tcase_add_test(tests, an_affine_shape_that_does_not_broadcast_to_x_is_refused);
    tcase_add_test(tests, pixels_are_shuffled_in_tensors_of_any_number_of_dimensions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
