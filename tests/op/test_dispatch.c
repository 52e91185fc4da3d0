/* SPDX-License-Identifier: MIT
 *
 * Dispatch: kernels that decline a call, what a kernel may call in the host, decompositions,
 * fallback, observers. */
#include "core/op/internal.h"
#include "tests/op/marked_kernel.h"
#include "tests/op/toy_device.h"
#include "tests/op/suite.h"
#include "tests/op/toy_op.h"

static const tn_device *toy_device(void)
{
    static const tn_device *device;

    if (device == NULL) {
        ck_assert_int_eq(tn_register(&toy), TN_OK);
        device = tn_device_find("toy");
        ck_assert_msg(device != NULL, "%s", tn_error_text());
    }
    return device;
}

START_TEST(a_kernel_that_does_not_support_the_call_is_passed_over)
{
    TN_SCOPE;
    static const tn_op_def def = { TEST_OP("test_supports") };
    static tn__plugin pack = { .id = "pack", .file = "/plugins/pack.so", .active = 1 };
    tn_kernel_def picky = MARK("test_supports", "cpu", "picky", 1);
    tn_kernel_def plain = MARK("test_supports", "cpu", "plain", 2);

    picky.supports = only_pairs;
    picky.priority = 1;
    picky.flags = TN_KERNEL_OVERRIDE;
    tn_register(&def);
    ck_assert_int_eq(tn__op_kernel_add(&picky, &pack), TN_OK);
    HAS(call_op("test_supports", VEC(0, 0)), 1, 1);
    ck_assert_ptr_null(call_op("test_supports", VEC(0, 0, 0)));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "refused: picky: 3 is not two");
    ck_assert_int_eq(tn_register(&plain), TN_OK);
    HAS(call_op("test_supports", VEC(0, 0)), 1, 1);
    HAS(call_op("test_supports", VEC(0, 0, 0)), 2, 2, 2);
    FINE();
}
END_TEST

static size_t want_space(const tn_call *call)
{
    return (size_t)toy_count(call->in[0]) * 16;
}

static tn_status use_space(const tn_call *call)
{
    ck_assert_ptr_nonnull(call->workspace);
    ck_assert_int_eq(call->workspace->shape[0], toy_count(call->in[0]) * 16);
    memset((char *)call->workspace->data + call->workspace->byte_offset, 1,
           (size_t)call->workspace->shape[0]);
    return mark(call);
}

static tn_status open_infer(tn_infer *infer)
{
    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = -1;
    return TN_OK;
}

/* The positive elements, whose number depends on the values. */
static tn_status positives(const tn_call *call)
{
    const float *x = toy_floats(call->in[0]);
    int64_t count = 0;
    tn_status status;

    ck_assert_ptr_null(call->out[0]);
    for (int64_t i = 0; i < toy_count(call->in[0]); i++)
        count += x[i] > 0;
    if (x[0] == -1)
        return TN_OK;
    status = call->make_output(call, 0, TN_SHAPE(count));
    if (status != TN_OK)
        return status;
    for (int64_t i = 0, k = 0; i < toy_count(call->in[0]); i++)
        if (x[i] > 0)
            toy_floats(call->out[0])[k++] = x[i];
    return TN_OK;
}

static tn_status two_open_infer(tn_infer *infer)
{
    open_infer(infer);
    infer->out[1] = infer->out[0];
    infer->out[1].dtype = TN_I64;
    return TN_OK;
}

/* The positive elements and their places; the second output is made first. */
static tn_status positives_at(const tn_call *call)
{
    const float *x = toy_floats(call->in[0]);
    int64_t count = 0;
    tn_status status;

    for (int64_t i = 0; i < toy_count(call->in[0]); i++)
        count += x[i] > 0;
    status = call->make_output(call, 1, TN_SHAPE(count));
    if (status == TN_OK && x[0] != -1)
        status = call->make_output(call, 0, TN_SHAPE(count));
    if (status != TN_OK || x[0] == -1)
        return status;
    int64_t *places = (int64_t *)((char *)call->out[1]->data + call->out[1]->byte_offset);
    for (int64_t i = 0, k = 0; i < toy_count(call->in[0]); i++)
        if (x[i] > 0) {
            toy_floats(call->out[0])[k] = x[i];
            places[k++] = i;
        }
    return TN_OK;
}

START_TEST(a_kernel_sizes_several_outputs)
{
    TN_SCOPE;
    static const tn_operand outputs[] = { { "y", 0, 0 }, { "places", 0, 0 } };
    tn_op_def op = { TEST_OP("test_two_open") };
    tn_kernel_def kernel = MARK("test_two_open", "cpu", "positives_at", 0);
    tn_tensor *in[] = { VEC(1, -2, 3) }, *out[2];
    int64_t places[2];

    op.outputs = outputs;
    op.n_outputs = 2;
    op.infer = two_open_infer;
    op.dispatch_input = 0;
    kernel.run = positives_at;
    ck_assert_int_eq(tn_register(&op), TN_OK);
    ck_assert_int_eq(tn_register(&kernel), TN_OK);
    ck_assert_int_eq(tn_op_call(tn_op_find("test_two_open", 0), in, 1, NULL, out, 2), TN_OK);
    HAS(out[0], 1, 3);
    ck_assert_int_eq(tn_tensor_copy_out(out[1], places, sizeof places), TN_OK);
    ck_assert(places[0] == 0 && places[1] == 2);
    in[0] = VEC(-1, 2);
    ck_assert_int_ne(tn_op_call(tn_op_find("test_two_open", 0), in, 1, NULL, out, 2), TN_OK);
    ck_assert(out[0] == NULL && out[1] == NULL);
    FAILED(TN_ERR_ASSERT, "did not make output 0");
}
END_TEST

static tn_status broken(const tn_call *call)
{
    (void)call;
    return TN_ERR_DEVICE;
}

START_TEST(kernels_get_workspace_and_may_size_their_outputs)
{
    TN_SCOPE;
    static const tn_op_def spacious = { TEST_OP("test_space") };
    tn_op_def open = { TEST_OP("test_positive") }, breaks = { TEST_OP("test_broken") };
    tn_kernel_def space = MARK("test_space", "cpu", "space", 5),
                  sized = MARK("test_positive", "cpu", "positives", 0);
    tn_kernel_def broke = MARK("test_broken", "cpu", "broke", 0);

    space.workspace = want_space;
    space.run = use_space;
    tn_register(&spacious);
    tn_register(&space);
    HAS(call_op("test_space", VEC(0, 0)), 5, 5);

    open.infer = open_infer;
    open.dispatch_input = 0;
    sized.run = positives;
    tn_register(&open);
    tn_register(&sized);
    HAS(call_op("test_positive", VEC(1, -2, 3)), 1, 3);
    ck_assert_int_eq(tn_tensor_numel(call_op("test_positive", VEC(-2, -3))), 0);
    FINE();
    ck_assert_ptr_null(call_op("test_positive", VEC(-1)));
    FAILED(TN_ERR_ASSERT, "did not make output 0");
    ck_assert_ptr_null(
        call_op("test_positive", tn_tensor_empty(TN_SHAPE(2), TN_F32, tn_device_find("meta"))));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "depends on values");

    broke.run = broken;
    tn_register(&breaks);
    tn_register(&broke);
    ck_assert_ptr_null(call_op("test_broken", VEC(1)));
    FAILED(TN_ERR_DEVICE, "broke");
}
END_TEST

static tn_status twice(const tn_decompose *call)
{
    call->out[0] = tn_mul_scalar(call->in[0], 2);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status misshapen(const tn_decompose *call)
{
    call->out[0] = tn_sum(call->in[0]);
    return TN_OK;
}

START_TEST(what_has_no_kernel_comes_apart_into_operators)
{
    TN_SCOPE;
    tn_op_def def = { TEST_OP("test_twice") }, wrong = { TEST_OP("test_misshapen") };
    tn_kernel_def kernel = MARK("test_twice", "cpu", "mark", 7);
    tn_tensor *x = LEAF(1, 2);

    def.decompose = twice;
    wrong.decompose = misshapen;
    tn_register(&def);
    tn_register(&wrong);
    HAS(call_op("test_twice", VEC(1, 2)), 2, 4);
    ck_assert_int_eq(tn_register(&kernel), TN_OK);
    HAS(call_op("test_twice", VEC(1, 2)), 7, 7); /* the kernel runs, not the decomposition */
    tn_backward(
        tn_sum(call_op("test_twice", x))); /* but the derivative is that of the decomposition */
    HAS(tn_tensor_grad(x), 2, 2);
    ck_assert_ptr_null(call_op("test_misshapen", VEC(1, 2)));
    FAILED(TN_ERR_ASSERT, "expected float32[2]");
}
END_TEST

/* ---- operands with flags ---- */

static tn_status like_second(tn_infer *infer)
{
    tn_infer second = *infer;

    second.in = infer->in + 1;
    return like_infer(&second);
}

/* The first input may be elsewhere or absent: the message compares the two that may not differ. */
START_TEST(an_input_on_another_device_is_compared_with_the_first_that_counts)
{
    TN_SCOPE;
    static const tn_operand operands[] = {
        { "place", TN_OPERAND_ANY_DEVICE | TN_OPERAND_OPTIONAL, TN_MASK_FLOAT },
        { "x", 0, TN_MASK_FLOAT },
        { "y", 0, TN_MASK_FLOAT },
    };
    tn_op_def def = { TEST_OP("test_elsewhere") };
    tn_tensor *x = VEC(1, 2), *out = x;
    tn_tensor *elsewhere = tn_tensor_empty(TN_SHAPE(2), TN_F32, tn_device_find("meta"));
    tn_tensor *const places[] = { elsewhere, TN_NONE, x };

    def.inputs = operands;
    def.n_inputs = 3;
    def.infer = like_second;
    ck_assert_int_eq(tn_register(&def), TN_OK);
    for (int i = 0; i < 3; i++) {
        tn_tensor *in[3] = { places[i], x, elsewhere };

        ck_assert_int_eq(tn_op_call(tn_op_find("test_elsewhere", 0), in, 3, NULL, &out, 1),
                         TN_ERR_RUNTIME);
        ck_assert_ptr_null(out);
        FAILED(TN_ERR_RUNTIME,
               "test_elsewhere: x is float32[2] on cpu:0, y is float32[2] on meta:0");
    }
}
END_TEST

static tn_status nothing_to_infer(tn_infer *infer)
{
    (void)infer;
    return TN_OK;
}

static tn_status add_to_first(const tn_call *call)
{
    for (int64_t i = 0; i < toy_count(call->in[0]); i++)
        toy_floats(call->in[0])[i] += toy_floats(call->in[1])[i];
    return TN_OK;
}

/* An operator without outputs that adds its second input to the first, and its kernel. */
static void register_accumulate(const char *name)
{
    static const tn_operand operands[] = { { "sum", TN_OPERAND_WRITTEN, TN_MASK_FLOAT },
                                           { "x", 0, TN_MASK_FLOAT } };
    tn_op_def def = { TEST_OP(name) };
    tn_kernel_def kernel = MARK(name, "cpu", name, 0);

    def.inputs = operands;
    def.n_inputs = 2;
    def.n_outputs = 0;
    def.dispatch_input = 0;
    def.infer = nothing_to_infer;
    kernel.run = add_to_first;
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_int_eq(tn_register(&kernel), TN_OK);
}

/* An input that is only read may have been saved for a derivative, and can still be used there. */
START_TEST(only_inputs_that_are_written_count_as_changed)
{
    TN_SCOPE;
    tn_tensor *in[2] = { VEC(1, 2), VEC(3, 4) }, *w = LEAF(5, 6);
    tn_tensor *read = tn_sum(tn_mul(w, in[1])), *written = tn_sum(tn_mul(w, in[0]));

    register_accumulate("test_accumulate");
    ck_assert_int_eq(tn_op_call(tn_op_find("test_accumulate", 0), in, 2, NULL, NULL, 0), TN_OK);
    HAS(in[0], 4, 6);
    HAS(in[1], 3, 4);
    ck_assert_int_eq(tn_backward(read), TN_OK);
    HAS(tn_tensor_grad(w), 3, 4);
    ck_assert_int_eq(tn_backward(written), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");
}
END_TEST

START_TEST(an_operator_without_derivative_is_an_error_in_backward)
{
    TN_SCOPE;
    tn_op_def def = { TEST_OP("test_opaque") };
    tn_kernel_def kernel = MARK("test_opaque", "cpu", "mark", 7);
    tn_tensor *x = LEAF(1, 2), *y;

    tn_register(&def);
    tn_register(&kernel);
    y = call_op("test_opaque", x);
    ck_assert(tn_tensor_requires_grad(y));
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "the derivative for 'test_opaque' is not implemented");
}
END_TEST

START_TEST(nothing_runs_elsewhere_unless_it_is_asked_for_and_then_it_is_counted) /* rule 19 */
{
    TN_SCOPE;
    tn_fallback_count rows[4];
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2), TN_F32, toy_device()), *y;
    const float values[2] = { 1, -2 };

    ck_assert_int_eq(tn_tensor_copy_in(x, values, sizeof values), TN_OK);
    ck_assert_ptr_null(tn_relu(x));
    FAILED(TN_ERR_NOT_IMPLEMENTED,
           "operator \"relu\": no kernel on device type \"toy\" for float32");
    ck_assert_int_eq(tn_set_fallback("nowhere"), tn_error_code());
    FAILED(tn_error_code(), "fallback to \"nowhere\"");
    ck_assert_int_eq(tn_set_fallback("cpu"), TN_OK);
    y = tn_relu(x);
    FINE();
    ck_assert_ptr_eq(tn_tensor_device(y), toy_device());
    ck_assert_float_eq(toy_floats(tn_tensor_view(y))[0], 1);
    ck_assert_float_eq(toy_floats(tn_tensor_view(y))[1], 0);
    ck_assert_ptr_eq(tn_relu_(x), x);
    ck_assert_float_eq(toy_floats(tn_tensor_view(x))[1], 0);
    ck_assert_int_eq(tn_fallback_counts(rows, 4), 1);
    ck_assert_str_eq(rows[0].op, "relu");
    ck_assert_str_eq(rows[0].from, "toy:0");
    ck_assert_str_eq(rows[0].to, "cpu:0");
    ck_assert_uint_eq(rows[0].calls, 2);
    ck_assert_uint_eq(rows[0].bytes, 32);
    ck_assert_int_eq(tn_set_fallback("error"), TN_OK);
    ck_assert_ptr_null(tn_relu(x));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "TENON_FALLBACK");
}
END_TEST

static int begins, ends, last_status;
static int64_t last_count;
static const tn_kernel_def *last_kernel;

static uint64_t saw_begin(void *user, const tn_op_event *event)
{
    (void)user;
    ck_assert_int_ge(event->n_in, 1);
    ck_assert_ptr_nonnull(event->op);
    ck_assert_ptr_nonnull(event->device);
    ck_assert_ptr_null(event->kernel);
    ck_assert_ptr_null(event->module);
    begins++;
    return 42;
}

static void saw_end(void *user, uint64_t token, const tn_op_event *event)
{
    (void)user;
    ck_assert_uint_eq(token, 42);
    ends++;
    last_status = event->status;
    last_kernel = event->kernel;
    last_count = event->n_out;
}

START_TEST(what_an_operator_writes_elsewhere_comes_back)
{
    TN_SCOPE;
    tn_tensor *in[2];
    const float values[2] = { 1, -2 };

    register_accumulate("test_away");
    for (int i = 0; i < 2; i++) {
        in[i] = tn_tensor_empty(TN_SHAPE(2), TN_F32, toy_device());
        ck_assert_int_eq(tn_tensor_copy_in(in[i], values, sizeof values), TN_OK);
    }
    ck_assert_int_eq(tn_set_fallback("cpu"), TN_OK);
    ck_assert_msg(tn_op_call(tn_op_find("test_away", 0), in, 2, NULL, NULL, 0) == TN_OK, "%s",
                  tn_error_text());
    ck_assert_int_eq(tn_set_fallback("error"), TN_OK);
    ck_assert_float_eq(toy_floats(tn_tensor_view(in[0]))[1], -4);
    ck_assert_float_eq(toy_floats(tn_tensor_view(in[1]))[1], -2);
}
END_TEST

START_TEST(observers_see_calls_and_their_outcome)
{
    TN_SCOPE;
    static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "test",
                                              .op_begin = saw_begin, .op_end = saw_end };
    tn_tensor *x = VEC(1, 2);

    ck_assert_int_eq(tn_register(&observer), TN_OK);
    begins = ends = 0;
    tn_relu(x);
    ck_assert_int_eq(begins, 1);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last_status, TN_OK);
    ck_assert_int_eq(last_count, 1);
    ck_assert_ptr_nonnull(last_kernel);
    ck_assert_str_eq(last_kernel->op, "relu");
    tn_relu_(x);
    ck_assert_int_eq(begins, 2);
    tn_add(x, VEC(1, 2, 3));
    ck_assert_int_eq(last_status, TN_ERR_RUNTIME);
    tn_error_clear();
    tn__observers_shutdown();
}
END_TEST

/* A cast on the way, or a step of a decomposition, is no kernel of the operator. */
START_TEST(an_observer_is_told_the_operators_own_kernel)
{
    TN_SCOPE;
    static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "test.own_kernel",
                                              .op_begin = saw_begin, .op_end = saw_end };
    tn_op_def def = { TEST_OP("test_seen_twice") };
    tn_tensor *x = VEC(1, 2), *wide = tn_cast(VEC(0, 0), TN_F64);
    tn_tensor *in[] = { x, x };

    ck_assert_int_eq(tn_register(&observer), TN_OK);
    ck_assert_ptr_nonnull(tn_add(x, wide)); /* x is cast first */
    ck_assert_str_eq(last_kernel->op, "add");
    ck_assert_int_eq(tn_op_call_into(tn_op_find("add", 0), in, 2, NULL, wide), TN_OK);
    ck_assert(last_kernel == NULL || strcmp(last_kernel->op, "add") == 0);
    def.decompose = twice;
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_ptr_nonnull(call_op("test_seen_twice", x));
    ck_assert_ptr_null(last_kernel);
    tn__observers_shutdown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dispatch");
    TCase *tests = tcase_create("dispatch");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_kernel_that_does_not_support_the_call_is_passed_over);
    tcase_add_test(tests, kernels_get_workspace_and_may_size_their_outputs);
    tcase_add_test(tests, a_kernel_sizes_several_outputs);
    tcase_add_test(tests, what_has_no_kernel_comes_apart_into_operators);
    tcase_add_test(tests, an_input_on_another_device_is_compared_with_the_first_that_counts);
    tcase_add_test(tests, only_inputs_that_are_written_count_as_changed);
    tcase_add_test(tests, an_operator_without_derivative_is_an_error_in_backward);
    tcase_add_test(tests, nothing_runs_elsewhere_unless_it_is_asked_for_and_then_it_is_counted);
    tcase_add_test(tests, what_an_operator_writes_elsewhere_comes_back);
    tcase_add_test(tests, observers_see_calls_and_their_outcome);
    tcase_add_test(tests, an_observer_is_told_the_operators_own_kernel);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
