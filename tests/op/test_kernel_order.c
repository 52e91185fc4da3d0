/* SPDX-License-Identifier: MIT
 *
 * A kernel can choose the order of strides of images (TN_KERNEL_CHANNELS_LAST and
 * TN_KERNEL_CHANNELS_FIRST). Inference then uses this order in place of the order of the device. */
#include "tests/op/suite.h"
#include "tests/op/toy_device.h"

/* ---- an operator of the test: y is all 1, with x's shape --------------------------------------
 */

static void last(tn_meta *meta)
{
    meta->flags |= TN_META_STRIDED;
    meta->strides[1] = 1;
    meta->strides[3] = meta->shape[1];
    meta->strides[2] = meta->strides[3] * meta->shape[3];
    meta->strides[0] = meta->strides[2] * meta->shape[2];
}

static tn_status image_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].ndim = 4;
    for (int32_t d = 0; d < 4; d++)
        infer->out[0].shape[d] = x->shape[d];
    if (infer->device_flags & TN_BACKEND_CHANNELS_LAST)
        last(&infer->out[0]);
    return TN_OK;
}

static const tn_operand image_in[] = { { "x", 0, 0 }, { "w", TN_OPERAND_NO_PROMOTE, 0 } };
static const tn_operand image_out[] = { { "y", 0, 0 } };
static const tn_op_def image = { TN_HEAD(tn_op_def),     .name = "test_image", .revision = 1,
                                 .flags = TN_OP_PROMOTE, .inputs = image_in,   .n_inputs = 2,
                                 .outputs = image_out,   .n_outputs = 1,       .dispatch_input = -1,
                                 .infer = image_infer };

static const char *ran; /* the name of the last kernel */

static tn_status image_run(const tn_call *call)
{
    ran = call->kernel->name;
    return TN_OK;
}

/* The first kernel is for x of float32, and only for w of float64. */
static const uint64_t narrow[] = { 0, TN_BIT(TN_F64), 0 };
static const tn_kernel_def kernels[] = {
    { TN_HEAD(tn_kernel_def), .op = "test_image", .device = "cpu", .name = "wants_last",
      .revision = 1, .flags = TN_KERNEL_CHANNELS_LAST, .dtypes = TN_BIT(TN_F32), .priority = 2,
      .run = image_run, .operand_dtypes = narrow },
    { TN_HEAD(tn_kernel_def), .op = "test_image", .device = "cpu", .name = "wants_first",
      .revision = 1, .flags = TN_KERNEL_CHANNELS_FIRST, .dtypes = TN_BIT(TN_F32),
      .run = image_run },
    { TN_HEAD(tn_kernel_def), .op = "test_image", .device = "cpu", .name = "says_nothing",
      .revision = 1, .dtypes = TN_BIT(TN_F64), .run = image_run },
    { TN_HEAD(tn_kernel_def), .op = "test_image", .device = "toy", .name = "toy_last",
      .revision = 1, .flags = TN_KERNEL_CHANNELS_LAST, .dtypes = TN_BIT(TN_F32), .run = image_run },
    { TN_HEAD(tn_kernel_def), .op = "test_image", .device = "toy", .name = "toy_plain",
      .revision = 1, .dtypes = TN_BIT(TN_F64), .run = image_run },
};

static void open_all(void)
{
    static bool registered;

    if (registered)
        return;
    registered = true;
    ck_assert_int_eq(tn_register(&toy), TN_OK);
    ck_assert_int_eq(tn_register(&image), TN_OK);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        ck_assert_int_eq(tn_register(&kernels[i]), TN_OK);
}

static void runs(const char *device, tn_dtype x, tn_dtype w, const char *kernel, bool channels_last)
{
    TN_SCOPE;
    const tn_device *there = tn_device_find(device);
    tn_tensor *in[] = { tn_tensor_empty(TN_SHAPE(2, 3, 4, 5), x, there),
                        tn_tensor_empty(TN_SHAPE(1), w, there) };
    tn_tensor *y = NULL;

    ck_assert_msg(tn_op_call(tn_op_find("test_image", 0), in, 2, NULL, &y, 1) == TN_OK, "%s",
                  tn_error_text());
    ck_assert_str_eq(ran, kernel);
    ck_assert_int_eq(tn_tensor_strides(y).at[1], channels_last ? 1 : 20);
    ck_assert_int_eq(tn_tensor_strides(y).at[3], channels_last ? 3 : 1);
}

START_TEST(a_kernel_says_which_order_it_wants)
{
    open_all();
    runs("cpu", TN_F32, TN_F32, "wants_first", false); /* the device prefers the other order */
    runs("cpu", TN_F32, TN_F64, "wants_last", true);   /* by the dtypes of all inputs */
    runs("cpu", TN_F64, TN_F64, "says_nothing", true); /* as the device says */
    runs("toy", TN_F32, TN_F32, "toy_last", true);
    runs("toy", TN_F64, TN_F64, "toy_plain", false);
}
END_TEST

START_TEST(a_kernel_that_wants_both_orders_is_refused)
{
    tn_kernel_def both = kernels[1];

    both.flags = TN_KERNEL_CHANNELS_LAST | TN_KERNEL_CHANNELS_FIRST;
    both.dtypes = TN_BIT(TN_F16);
    ck_assert_int_eq(tn_register(&both), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "flags: both orders of channels, got 0x18; expected one");
}
END_TEST

/* ---- convolutions ---- */

static bool never(const tn_call *call, char *reason, size_t size)
{
    (void)call;
    tn_snprint(reason, size, "it computes nothing");
    return false;
}

static double last_item(tn_tensor *y)
{
    return tn_item(tn_select(tn_reshape(y, TN_SHAPE(-1)), 0, -1));
}

/* The order is that of the kernel with the highest priority, even if another kernel then runs. */
START_TEST(convolutions_give_the_order_that_their_kernel_wants)
{
    TN_SCOPE;
    const tn_kernel_def plain = { TN_HEAD(tn_kernel_def),
                                  .op = "convolution",
                                  .device = "cpu",
                                  .name = "test_convolution",
                                  .revision = 1,
                                  .flags = TN_KERNEL_OVERRIDE | TN_KERNEL_CHANNELS_FIRST,
                                  .dtypes = TN_BIT(TN_F32),
                                  .priority = 1000,
                                  .supports = never,
                                  .run = image_run };
    tn_tensor *x = tn_reshape(tn_tensor_full(TN_SHAPE(2 * 3 * 6 * 7), 0.5, TN_F32, NULL),
                              TN_SHAPE(2, 3, 6, 7));
    tn_tensor *w = tn_tensor_full(TN_SHAPE(4, 3, 2, 2), 0.25, TN_F32, NULL), *y;
    double before;

    y = tn_convolution(x, w);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 1);
    before = last_item(y);
    ck_assert_msg(tn_register(&plain) == TN_OK, "%s", tn_error_text());
    y = tn_convolution(x, w);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 30);
    ck_assert(tn_tensor_is_contiguous(y));
    ck_assert_double_eq(last_item(y), before);
    y = tn_convolution(tn_cast(x, TN_F64), tn_cast(w, TN_F64));
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order of strides");
    TCase *tests = tcase_create("order of strides");

    tcase_add_test(tests, a_kernel_says_which_order_it_wants);
    tcase_add_test(tests, a_kernel_that_wants_both_orders_is_refused);
    tcase_add_test(tests, convolutions_give_the_order_that_their_kernel_wants);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
