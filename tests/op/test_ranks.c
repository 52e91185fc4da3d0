/* SPDX-License-Identifier: MIT
 *
 * Every recorded case with leading dimensions of size 1 for all inputs, up to the largest number:
 * an operator refuses them with a message, or computes the same numbers and gradients. Every
 * operator with an option dim: each dimension of tensors of three and four dimensions gives what
 * the first gives once it is moved there. */
#include <math.h>

#include "tests/op/suite.h"
#include "tests/oracle/case.h"

static const int ranks[] = { 3, 4, 5, 6, 7, 8, 12, 15, 16 };

/* Operators to which a leading dimension means something else, with the reason. */
static const struct {
    const char *op, *why;
} other[] = {
    { "nonzero", "a column for each dimension" },
    { "tensordot", "the last dimensions of a with the first of b" },
    { "einsum", "the equation names them" },
    { "group_norm", "dimension 1 has the channels" },
    { "instance_norm", "dimension 1 has the channels" },
    { "local_response_norm", "dimension 1 has the channels" },
    { "batch_norm_relu", "dimension 1 has the channels" },
    { "channel_shuffle", "dimension 1 has the channels" },
    { "cross_entropy", "dimension 1 has the classes" },
    { "cross_entropy_weighted", "dimension 1 has the classes" },
    { "kl_div", "batchmean divides by the size of dimension 0" },
    { "index", "the first dimensions are indexed" },
    { "index_put", "the first dimensions are indexed" },
    { NULL, NULL },
};
static int calls, refusals, wrong;

/* Whether the numbers must stay; others are only called. Views have other sizes among the options.
 */
static bool comparable(const tn_op_def *def)
{
    for (int i = 0; other[i].op != NULL; i++)
        if (strcmp(other[i].op, def->name) == 0)
            return false;
    return (def->flags & (TN_OP_RANDOM | TN_OP_VIEW)) == 0;
}

/* x with `more` leading dimensions of size 1, as a view; a number stays one. */
static tn_tensor *raised(tn_tensor *x, int32_t more)
{
    while (x != TN_NONE && tn_tensor_ndim(x) > 0 && more-- > 0)
        x = tn_unsqueeze(x, 0);
    return x;
}

/* Moves the dimensions among the options, which count from the first. */
static void move_options(const reading *r, uint8_t *options, int64_t rows[][TN_MAX_DIMS],
                         int32_t more)
{
    const tn_op_def *def = tn_op_definition(r->op);
    int at = 0;

    for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END;
         row++) {
        void *place = options + row->offset;

        if (row->kind == TN_OPTION_KIND_INT && strncmp(row->name, "dim", 3) == 0 &&
            *(int64_t *)place >= 0)
            *(int64_t *)place += more;
        if (row->kind == TN_OPTION_KIND_INTS && strncmp(row->name, "dims", 4) == 0) {
            tn_ints *list = place;

            for (int64_t i = 0; i < list->count; i++)
                rows[at][i] = list->at[i] >= 0 ? list->at[i] + more : list->at[i];
            list->at = rows[at++];
        }
    }
}

static bool same_numbers(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x, *y;

    if (tn_tensor_numel(a) != tn_tensor_numel(b))
        return false;
    if (tn_tensor_numel(a) == 0)
        return true;
    x = tn_reshape(tn_detach(a), TN_SHAPE(-1));
    y = tn_reshape(tn_detach(b), TN_SHAPE(-1));
    return tn_equality_of(tn_isclose(x, y, 1e-3, 1e-3, true)) == 1;
}

/* A call, its results, and the gradients of the sum of the first result; NULL: none. */
struct outcome {
    tn_tensor *out[MOST], *grad[MOST];
};

/* Calls with leaves that are inputs with `more` dimensions; returns whether it is not refused. */
static bool called(const reading *r, int32_t more, struct outcome *o)
{
    const tn_op_def *def = tn_op_definition(r->op);
    tn_tensor *in[MOST];
    int64_t rows[4][TN_MAX_DIMS];
    uint8_t options[512];

    memset(o, 0, sizeof *o);
    for (int64_t i = 0; i < r->n_in; i++) {
        in[i] = r->in[i] == TN_NONE ? TN_NONE : raised(tn_detach(r->in[i]), more);
        if (in[i] != TN_NONE && tn_tensor_requires_grad(r->in[i]))
            ck_assert_int_eq(tn_tensor_set_requires_grad(in[i], true), TN_OK);
    }
    ck_assert_uint_le(def->options_size, sizeof options);
    if (def->options_size > 0)
        memcpy(options, r->options != NULL ? r->options : def->defaults, def->options_size);
    move_options(r, options, rows, more);
    if (tn_op_call(r->op, in, r->n_in, options, o->out, def->n_outputs) != TN_OK)
        return false;
    if (tn_tensor_requires_grad(o->out[0]) && !is_complex(tn_tensor_dtype(o->out[0])) &&
        tn_backward(tn_sum(o->out[0])) == TN_OK)
        for (int64_t i = 0; i < r->n_in; i++)
            if (in[i] != TN_NONE && tn_tensor_grad(in[i]) != TN_NONE)
                o->grad[i] = tn_tensor_grad(in[i]);
    tn_error_clear();
    return true;
}

static void complain(const reading *r, int32_t rank, const char *what, int64_t i)
{
    fprintf(stderr, "%s with %d dimensions: %s %d differs\n", r->name, rank, what, (int)i);
    wrong++;
}

/* The call with inputs of `rank` dimensions at most, beside the call of the case. */
static void compare_raised(const reading *r, int32_t most, int32_t rank,
                           const struct outcome *plain)
{
    TN_SCOPE;
    struct outcome o;

    calls++;
    if (!called(r, rank - most, &o)) {
        ck_assert_msg(tn_error_text()[0] != '\0', "%s: no message", r->name);
        refusals++;
        tn_error_clear();
        return;
    }
    for (int64_t i = 0; i < MOST && comparable(tn_op_definition(r->op)); i++) {
        if (o.out[i] != NULL && !same_numbers(o.out[i], plain->out[i]))
            complain(r, rank, "result", i);
        if ((o.grad[i] == NULL) != (plain->grad[i] == NULL) ||
            (o.grad[i] != NULL && !same_numbers(o.grad[i], plain->grad[i])))
            complain(r, rank, "gradient", i);
    }
}

static void check_case(reading *r)
{
    const tn_op_def *def = tn_op_definition(r->op);
    struct outcome plain;
    int32_t most = 0;

    r->called = true;
    if (def->n_outputs == 0 || !called(r, 0, &plain)) {
        tn_error_clear();
        return;
    }
    for (int64_t i = 0; i < r->n_in; i++)
        if (r->in[i] != TN_NONE && tn_tensor_ndim(r->in[i]) > most)
            most = tn_tensor_ndim(r->in[i]);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (most > 0 && ranks[i] > most)
            compare_raised(r, most, ranks[i], &plain);
}

static void each_case(const char *name)
{
    static reading r;
    FILE *file = open_cases(name);
    uint64_t scope = tn_scope_begin();

    memset(&r, 0, sizeof r);
    while (fgets(r.line, LINE, file) != NULL) {
        r.line[strcspn(r.line, "\n")] = '\0';
        if (strncmp(r.line, "case ", 5) == 0 || strcmp(r.line, "end") == 0) {
            tn_scope_end(scope);
            scope = tn_scope_begin();
            begin_case(&r);
        } else if (!read_call(&r) && !r.called && strncmp(r.line, "out ", 4) == 0) {
            check_case(&r);
        }
    }
    fclose(file);
    free(r.options);
    tn_scope_end(scope);
}

START_TEST(leading_dimensions_of_size_1_change_no_number)
{
    tn_device_begin(tn_device_find("cpu"));
    for (int i = 0; i < CASE_FILES; i++)
        if (strcmp(case_files[i], "refused.txt") != 0)
            each_case(case_files[i]);
    tn_device_end();
    printf("%d calls, %d refused\n", calls, refusals);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(calls, 10000);
    ck_assert_int_gt(calls, 2 * refusals);
}
END_TEST

/* ---- the option dim ---- */

static tn_tensor *moved_dim(tn_tensor *x, int64_t from, int64_t to)
{
    int64_t order[TN_MAX_DIMS], ndim = tn_tensor_ndim(x), at = 0;

    for (int64_t d = 0; d < ndim; d++)
        if (d != from) {
            order[at < to ? at : at + 1] = d;
            at++;
        }
    order[to] = from;
    return tn_permute(x, (tn_ints){ order, ndim });
}

/* x along dim is, moved, what x with this dimension in front is along dimension 0. */
static void check_dim(const tn_op_def *def, const tn_op *op, size_t offset, tn_tensor *x,
                      int64_t dim)
{
    uint8_t options[512];
    tn_tensor *in[MOST], *out[MOST] = { NULL }, *first[MOST] = { NULL };

    memcpy(options, def->defaults, def->options_size);
    for (int32_t i = 0; i < def->n_inputs; i++)
        in[i] = TN_NONE;
    in[0] = x;
    *(int64_t *)(void *)(options + offset) = dim;
    tn_random_seed(3);
    if (tn_op_call(op, in, def->n_inputs, options, out, def->n_outputs) != TN_OK)
        return;
    in[0] = moved_dim(x, dim, 0);
    *(int64_t *)(void *)(options + offset) = 0;
    tn_random_seed(3);
    ck_assert_msg(tn_op_call(op, in, def->n_inputs, options, first, def->n_outputs) == TN_OK,
                  "%s: %s", def->name, tn_error_text());
    for (int32_t i = 0; i < def->n_outputs; i++) {
        tn_tensor *y = first[i];

        if (tn_tensor_ndim(y) > tn_tensor_ndim(x)) /* a new dimension, not one of x */
            return;
        if (tn_tensor_ndim(y) == tn_tensor_ndim(x))
            y = moved_dim(y, 0, dim);
        calls++;
        if (tn_tensor_ndim(y) != tn_tensor_ndim(out[i]) || !same_numbers(out[i], y)) {
            fprintf(stderr, "%s along %d of %d dimensions: result %d\n", def->name, (int)dim,
                    tn_tensor_ndim(x), (int)i);
            wrong++;
        }
    }
}

static void each_dim(const tn_op_def *def, const tn_op *op, size_t offset)
{
    static const int64_t shapes[][4] = { { 3, 2, 4 }, { 2, 3, 2, 2 } };

    for (int64_t ndim = 3; ndim <= 4; ndim++)
        for (int dense = 0; dense < 6; dense++)
            for (int64_t dim = 0; dim < ndim; dim++) {
                TN_SCOPE;
                double numbers[24];

                for (int i = 0; i < 24; i++) /* all different, or equal rows */
                    numbers[i] = dense == 0 ? (i * 7 % 24) / 8.0 - 1.2 : i * (dense + 3) % 11 % 2;
                check_dim(def, op, offset,
                          tn_tensor_from(numbers, TN_F64, (tn_ints){ shapes[ndim - 3], ndim }),
                          dim);
                tn_error_clear();
            }
}

START_TEST(an_operator_along_a_dimension_is_that_along_the_first_moved)
{
    tn_device_begin(tn_device_find("cpu"));
    calls = wrong = 0;
    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const tn_op_def *def = tn_op_definition(op);
        bool alone = def->n_outputs > 0 && def->n_inputs > 0 && (def->flags & TN_OP_RANDOM) == 0;

        for (int32_t k = 1; k < def->n_inputs; k++)
            alone = alone && (def->inputs[k].flags & TN_OPERAND_OPTIONAL) != 0;
        for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END;
             row++)
            if (alone && row->kind == TN_OPTION_KIND_INT && strcmp(row->name, "dim") == 0)
                each_dim(def, op, row->offset);
    }
    tn_device_end();
    printf("%d results\n", calls);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(calls, 300);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranks");
    TCase *tests = tcase_create("cases");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, leading_dimensions_of_size_1_change_no_number);
    tcase_add_test(tests, an_operator_along_a_dimension_is_that_along_the_first_moved);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
