/* SPDX-License-Identifier: MIT
 *
 * Flags of operators and of their inputs: what the core does with inputs that are updated, which
 * combinations it refuses, and that operators have the flags that programs read. */
#include "tests/op/suite.h"
#include "tests/op/toy_op.h"

#include <tenon/contrib.h>

static const tn_operand two_in[] = {
    { "x", 0, TN_MASK_FLOAT },
    { "total", TN_OPERAND_NO_GRAD | TN_OPERAND_NO_PROMOTE | TN_OPERAND_UPDATED, TN_MASK_FLOAT }
};

static tn_op_def operator_of(const char *name, const tn_operand *in, int32_t n_in, uint64_t flags)
{
    return (
        tn_op_def){ TN_HEAD(tn_op_def), .name = name,  .math = "",           .help = "",
                    .flags = flags,     .inputs = in,  .n_inputs = n_in,     .outputs = one_out,
                    .n_outputs = 1,     .revision = 1, .dispatch_input = -1, .infer = like_infer };
}

/* y = x, total += x. The kernel writes to the memory of total; only the core can count this as a
 * new version. */
static tn_status run_total(const tn_call *call)
{
    const tn_view *x = call->in[0];
    const float *from = (const float *)(const void *)((const char *)x->data + x->byte_offset);
    float *total = (float *)(void *)((char *)call->in[1]->data + call->in[1]->byte_offset);
    float *y = (float *)(void *)((char *)call->out[0]->data + call->out[0]->byte_offset);

    for (int64_t i = 0; i < x->shape[0]; i++) {
        y[i] = from[i];
        total[i] += from[i];
    }
    return TN_OK;
}

static tn_status derive_total(tn_derive *d)
{
    d->gin[0] = d->gout[0];
    return TN_OK;
}

static const tn_op *total_operator(void)
{
    static tn_kernel_def kernel = TN_KERNEL("test_total", "cpu", "test_total", TN_BIT(TN_F32),
                                            run_total);
    tn_op_def def = operator_of("test_total", two_in, 2, 0);

    if (tn_op_find("test_total", 0) != NULL)
        return tn_op_find("test_total", 0);
    tn_error_clear();
    def.derive = derive_total;
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_int_eq(tn_register(&kernel), TN_OK);
    return tn_op_find("test_total", 0);
}

START_TEST(an_input_that_a_kernel_updates_counts_as_changed)
{
    TN_SCOPE;
    const tn_op *op = total_operator();
    tn_tensor *w = LEAF(5, 6), *in[2] = { LEAF(1, 2), VEC(10, 20) }, *y = NULL;
    tn_tensor *before = tn_sum(tn_mul(w, in[1]));
    uint64_t x_version = tn_tensor_version(in[0]), version = tn_tensor_version(in[1]);

    ck_assert_int_eq(tn_op_call(op, in, 2, NULL, &y, 1), TN_OK);
    HAS(y, 1, 2);
    HAS(in[1], 11, 22);
    ck_assert_uint_gt(tn_tensor_version(in[1]), version);
    ck_assert_uint_eq(tn_tensor_version(in[0]), x_version);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK); /* does not need the value of total */
    HAS(tn_tensor_grad(in[0]), 1, 1);
    ck_assert_int_eq(tn_backward(before), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");
}
END_TEST

START_TEST(an_input_that_cannot_be_updated_is_refused)
{
    TN_SCOPE;
    const tn_op *op = total_operator();
    tn_tensor *x = VEC(1, 2), *y = NULL, *leaf = LEAF(3, 4);

    ck_assert_int_ne(tn_op_call(op, (tn_tensor *[]){ x, leaf }, 2, NULL, &y, 1), TN_OK);
    FAILED(TN_ERR_RUNTIME, "requires grad");
    ck_assert_int_ne(tn_op_call(op, (tn_tensor *[]){ x, x }, 2, NULL, &y, 1), TN_OK);
    FAILED(TN_ERR_RUNTIME, "test_total: inputs 0 and 1 share memory, and one is written");
    ck_assert_int_ne(
        tn_op_call(op, (tn_tensor *[]){ x, tn_expand(tn_narrow(VEC(1, 2), 0, 0, 1), TN_SHAPE(2)) },
                   2, NULL, &y, 1),
        TN_OK);
    FAILED(TN_ERR_RUNTIME, "elements share memory");
    HAS(x, 1, 2);
    tn_grad_begin(false);
    ck_assert_int_eq(tn_op_call(op, (tn_tensor *[]){ x, leaf }, 2, NULL, &y, 1), TN_OK);
    tn_grad_end();
    HAS(tn_detach(leaf), 4, 6);
}
END_TEST

START_TEST(running_moments_change_in_training_alone)
{
    TN_SCOPE;
    tn_tensor *x = tn_reshape(LEAF(1, 2), TN_SHAPE(2, 1)),
              *mean = tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL);
    tn_tensor *var = tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL), *weight = VEC(2, 2), *y;
    uint64_t version = tn_tensor_version(mean);

    weight = tn_narrow(weight, 0, 0, 1);
    y = tn_batch_norm(x, mean, var, weight, weight); /* what is read may be shared */
    ck_assert_ptr_nonnull(y);
    ck_assert_uint_eq(tn_tensor_version(mean), version);
    ck_assert_ptr_nonnull(tn_batch_norm(x, mean, var, weight, weight, true));
    ck_assert_uint_gt(tn_tensor_version(mean), version);
    ck_assert_double_eq_tol(tn_tensor_item(mean), 0.15, 1e-6);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_ptr_null(tn_batch_norm(x, mean, mean, weight, weight, true));
    FAILED(TN_ERR_RUNTIME, "inputs 1 and 2 share memory");
}
END_TEST

static void refused(const tn_op_def *def, const char *words)
{
    ck_assert_int_ne(tn_register(def), TN_OK);
    FAILED(tn_error_code(), words);
}

static bool suffices(const tn_op *op, const void *options, tn_dtype dtype)
{
    (void)op, (void)options, (void)dtype;
    return true;
}

START_TEST(flags_that_contradict_each_other_are_refused)
{
    static const tn_operand grad[] = { { "x", TN_OPERAND_UPDATED, TN_MASK_FLOAT } };
    static const tn_operand both[] = { { "x", TN_OPERAND_WRITTEN, TN_MASK_FLOAT },
                                       { "y", TN_OPERAND_UPDATED | TN_OPERAND_NO_GRAD,
                                         TN_MASK_FLOAT } };
    static const tn_operand promoted[] = { { "x", TN_OPERAND_UPDATED | TN_OPERAND_NO_GRAD,
                                             TN_MASK_FLOAT } };
    static const tn_operand index_type[] = { { "x", TN_OPERAND_FROM_I32, TN_MASK_FLOAT } };
    static const tn_operand bool_from_i32[] = { { "x", TN_OPERAND_FROM_I32, TN_BIT(TN_BOOL) } };
    static const tn_operand index_promoted[] = { { "x", TN_OPERAND_FROM_U8, TN_BIT(TN_I64) } };
    static const tn_operand index_written[] = {
        { "x", TN_OPERAND_FROM_I32 | TN_OPERAND_UPDATED | TN_OPERAND_NO_GRAD, TN_BIT(TN_I64) }
    };
    tn_op_def def = operator_of("test_wrong", grad, 1, 0);

    refused(&def, "expected TN_OPERAND_NO_GRAD, and");
    def = operator_of("test_wrong", index_type, 1, 0);
    refused(&def, "expected dtypes TN_BIT(TN_I64)");
    def = operator_of("test_wrong", bool_from_i32, 1, 0);
    refused(&def, "or TN_BIT(TN_BOOL) with TN_OPERAND_FROM_U8");
    def = operator_of("test_wrong", index_promoted, 1, TN_OP_PROMOTE);
    refused(&def, "inputs: TN_OPERAND_FROM_*; expected TN_OPERAND_NO_PROMOTE with it");
    def = operator_of("test_wrong", index_written, 1, 0);
    refused(&def, "expected an input that is only read");
    def = operator_of("test_wrong", both, 2, 0);
    refused(&def, "some are written and some updated");
    def = operator_of("test_wrong", promoted, 1, TN_OP_PROMOTE);
    refused(&def, "TN_OPERAND_NO_PROMOTE if the operator promotes");
    def = operator_of("test_wrong", promoted, 1, TN_OP_INPLACE);
    refused(&def, "cannot be a view or have an in-place form");
    def = operator_of("test_wrong", one_in, 1, TN_OP_POINTWISE | TN_OP_VIEW);
    refused(&def, "pointwise; expected neither a view nor random numbers");
    def = operator_of("test_wrong", one_in, 1, TN_OP_POINTWISE | TN_OP_RANDOM);
    refused(&def, "pointwise; expected neither a view nor random numbers");
    def = operator_of("test_wrong", one_in, 1, (uint64_t)1 << 40);
    refused(&def, "flags");
    def = operator_of("test_wrong", one_in, 1, TN_OP_INPLACE);
    def.derive = derive_total;
    def.result_suffices = suffices;
    refused(&def, "result_suffices; expected one output, an in-place form, and a derivative that");
    def.save_in = 1;
    def.flags = 0;
    refused(&def, "result_suffices; expected one output, an in-place form");
}
END_TEST

START_TEST(programs_find_the_flags_of_operators)
{
    static const struct {
        const char *op;
        uint64_t flag;
    } rows[] = {
        { "relu", TN_OP_POINTWISE },       { "add", TN_OP_POINTWISE },
        { "embedding_bag", TN_OP_READS },  { "ctc_loss", TN_OP_READS },
        { "one_hot", TN_OP_READS },        { "lstm_sequence", TN_OP_READS },
        { "dropout", TN_OP_RANDOM },       { "scaled_dot_product_attention", TN_OP_RANDOM },
        { "test_exchange", TN_OP_ORDERED }
    };
    tn_op_def def = operator_of("test_exchange", one_in, 1, TN_OP_ORDERED);

    ck_assert_int_eq(tn_register(&def), TN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(tn_op_definition(tn_op_find(rows[i].op, 0))->flags & rows[i].flag, "%s",
                      rows[i].op);
    ck_assert_uint_eq(tn_op_definition(tn_op_find("softmax", 0))->flags & TN_OP_POINTWISE, 0);
    ck_assert(tn_op_definition(tn_op_find("batch_norm", 0))->inputs[1].flags & TN_OPERAND_UPDATED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flags");
    TCase *tests = tcase_create("flags");

    tcase_add_test(tests, an_input_that_a_kernel_updates_counts_as_changed);
    tcase_add_test(tests, an_input_that_cannot_be_updated_is_refused);
    tcase_add_test(tests, running_moments_change_in_training_alone);
    tcase_add_test(tests, flags_that_contradict_each_other_are_refused);
    tcase_add_test(tests, programs_find_the_flags_of_operators);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
