/* SPDX-License-Identifier: MIT
 *
 * Kernels that say that they may write their result over an input (tn_kernel_def.inplace) give the
 * same bits there: every case of tests/oracle whose kernel on the cpu names an input. */
#include "tests/op/suite.h"
#include "tests/oracle/case.h"

static reading r;
static int calls;

static bool same_form(tn_tensor *x, tn_tensor *y)
{
    bool same = x != TN_NONE && tn_tensor_dtype(x) == tn_tensor_dtype(y) &&
                tn_tensor_ndim(x) == tn_tensor_ndim(y) && tn_tensor_numel(y) > 0;

    for (int32_t d = 0; same && d < tn_tensor_ndim(y); d++)
        same = tn_tensor_size(x, d) == tn_tensor_size(y, d);
    return same;
}

static void same_bits(tn_tensor *got, tn_tensor *expected, int64_t i)
{
    size_t bytes = (size_t)tn_tensor_numel(expected) * tn_dtype_size(tn_tensor_dtype(expected));
    char *a = malloc(2 * bytes + 1), *b = a + bytes;

    ck_assert_int_eq(tn_tensor_copy_out(got, a, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(expected, b, bytes), TN_OK);
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s: over input %d: other values", r.name, (int)i);
    free(a);
}

/* Runs the call with a contiguous copy of input i, and once more with it as the first output. */
static void check_input(int64_t i)
{
    int32_t count = tn_op_definition(r.op)->n_outputs;
    tn_tensor *in[MOST], *into[MOST], *expected[MOST] = { NULL };
    tn_prepared *prepared;

    memcpy(in, r.in, sizeof in);
    in[i] = tn_copy(tn_detach(r.in[i]));
    ck_assert_int_eq(tn_op_call(r.op, in, r.n_in, r.options, expected, count), TN_OK);
    for (int32_t k = 0; k < count; k++)
        into[k] = tn_tensor_empty(tn_tensor_shape(expected[k]), tn_tensor_dtype(expected[k]), NULL);
    in[i] = tn_copy_(into[0], in[i]);
    ck_assert_ptr_nonnull(in[i]);
    prepared = tn_op_prepare(r.op, in, r.n_in, r.options, 0);
    if (prepared != NULL && (tn_prepared_kernel(prepared)->inplace >> i & 1) != 0) {
        ck_assert_msg(tn_prepared_run_into(prepared, in, r.n_in, into, count) == TN_OK, "%s: %s",
                      r.name, tn_error_text());
        for (int32_t k = 0; k < count; k++)
            same_bits(into[k], expected[k], i);
        calls++;
    }
    tn_prepared_drop(prepared);
    tn_error_clear();
}

static void check_case(void)
{
    int32_t count = tn_op_definition(r.op)->n_outputs;

    if (count == 0 || tn_op_call(r.op, r.in, r.n_in, r.options, r.out, count) != TN_OK)
        tn_error_clear();
    else
        for (int64_t i = 0; i < r.n_in; i++)
            if (same_form(r.in[i], r.out[0]))
                check_input(i);
}

START_TEST(a_result_over_an_input_has_the_same_bits)
{
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    for (int i = 0; i < CASE_FILES; i++) {
        FILE *file = open_cases(case_files[i]);
        uint64_t scope = tn_scope_begin();

        while (fgets(r.line, LINE, file) != NULL) {
            r.line[strcspn(r.line, "\n")] = '\0';
            if (strncmp(r.line, "case ", 5) == 0 || strcmp(r.line, "end") == 0) {
                tn_scope_end(scope);
                scope = tn_scope_begin();
                begin_case(&r);
            } else if (!read_call(&r) && !r.called) {
                check_case();
                r.called = true;
            }
        }
        fclose(file);
        tn_scope_end(scope);
    }
    free(r.options); /* of the last case */
    tn_grad_end();
    printf("%d calls\n", calls);
    ck_assert_int_gt(calls, 1000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inplace_kernels");
    TCase *tests = tcase_create("cases");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_result_over_an_input_has_the_same_bits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
