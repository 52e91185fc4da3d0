/* SPDX-License-Identifier: MIT
 *
 * Modules that are called one after the other: convolutions compute the norm, the sum and the
 * activation after them where no gradient is recorded, with the bits of the parts. test_chain.c has
 * what holds for all layers. */
#include "tests/module/chains.h"

/* A kernel that counts the calls of convolution_activation. With `takes` the core then decomposes
 * them, else another kernel computes them. (With an observer instead, nothing would be fused.) */
static int fused_calls;
static bool takes;

static bool counts(const tn_call *call, char *reason, size_t size)
{
    (void)call;
    fused_calls++;
    tn_snprint(reason, size, "it only counts");
    return takes;
}

static const tn_kernel_def counter = { TN_HEAD(tn_kernel_def),
                                       .op = "convolution_activation",
                                       .device = "cpu",
                                       .name = "counts",
                                       .revision = 1,
                                       .flags = TN_KERNEL_OVERRIDE | TN_KERNEL_DECOMPOSE,
                                       .dtypes = TN_BIT(TN_F32),
                                       .priority = 20,
                                       .supports = counts };

static void count_calls(void)
{
    static bool on; /* for tests that run in one process */

    if (!on)
        ck_assert_int_eq(tn_register(&counter), TN_OK);
    on = true;
}

/* Fused steps of a call in evaluation without gradients. */
static const struct {
    const char *spec;
    int steps;
} convs[] = {
    { "Sequential(Conv2d(4, 4, 3, padding=1), BatchNorm2d(4), ReLU())", 1 },
    { "Sequential(Conv2d(4, 4, 3, padding=1), BatchNorm2d(4), Identity(), Dropout(), SiLU())", 1 },
    { "Sequential(Conv2d(4, 4, 3, padding='same', bias=False), BatchNorm2d(4, affine=False))", 1 },
    { "Sequential(Conv2d(4, 4, 1), Conv2d(4, 4, 1), ReLU6(), Conv2d(4, 4, 1), Hardswish())", 2 },
    { "Residual(Conv2d(4, 4, 1), BatchNorm2d(4))", 1 },
    { "Residual(Conv2d(4, 4, 1), BatchNorm2d(4), shortcut=Sequential(Conv2d(4, 4, 1), "
      "BatchNorm2d(4)), activation=ReLU())",
      2 },
    { "resnet.BasicBlock(4, 4)", 2 },
    { "resnet.BasicBlock(4, 8)", 3 },
    { "resnet.Bottleneck(16, 4)", 3 },
    { "mobilenet.InvertedResidual(4, 8)", 3 },
    /* not fused: norms without fixed statistics, other activations, padding on one side or by
     * reflection, transposed convolutions */
    { "Sequential(Conv2d(4, 4, 1), BatchNorm2d(4, track_running_stats=False))", 0 },
    { "Sequential(Conv2d(4, 4, 1), InstanceNorm2d(4), ReLU())", 0 },
    { "Sequential(Conv2d(4, 4, 1), GELU())", 0 },
    { "Sequential(Conv2d(4, 4, 2, padding='same'), ReLU())", 0 },
    { "Sequential(Conv2d(4, 4, 3, padding=1, padding_mode='reflect'), ReLU())", 0 },
    { "Sequential(ConvTranspose2d(4, 4, 1), ReLU())", 0 },
    /* a sum that would broadcast */
    { "Residual(Conv2d(4, 1, 1))", 0 },
    /* the shortcut writes its input, or its layer does not declare that it does not */
    { "Residual(Conv2d(4, 4, 1), shortcut=ReLU(inplace=True))", 0 },
    { "Residual(Conv2d(4, 4, 1), shortcut=Sequential(Identity(), SiLU(inplace=True)))", 0 },
    { "Residual(Conv2d(4, 4, 1), shortcut=AvgPool2d(1))", 0 },
};
enum { CONVS = sizeof convs / sizeof *convs };

/* Calls a module between tn_grad_begin(false) and its end. Its input is a copy, because modules may
 * write into it. */
static tn_tensor *call_plainly(tn_module *m, tn_tensor *x)
{
    tn_tensor *y;

    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    y = tn_module_call(m, tn_clone(x));
    tn_grad_end();
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    return y;
}

static tn_tensor *call_parts(tn_module *m, tn_tensor *x)
{
    tn_hook_handle all = hooked(NULL, GLOBAL);
    tn_tensor *y = call_plainly(m, x);

    tn_hook_remove(all);
    return y;
}

START_TEST(convolutions_compute_what_follows_them)
{
    count_calls();
    for (int i = 0; i < CONVS; i++)
        for (int way = 0; way < 4; way++) {
            TN_SCOPE;
            tn_module *m = parsed(convs[i].spec);
            tn_tensor *x = input(TN_SHAPE(2, strstr(convs[i].spec, "(16") != NULL ? 16 : 4, 5, 6),
                                 way & 1);

            takes = way & 2;
            tn_module_call(m, tn_clone(x)); /* running statistics of its own */
            tn_module_train(m, false);
            fused_calls = 0;
            tn_module_call(m, tn_clone(x)); /* records gradients */
            ck_assert_int_eq(fused_calls, 0);
            same_bits(call_plainly(m, x), call_parts(m, x), convs[i].spec);
            ck_assert_msg(fused_calls == convs[i].steps, "%s: %d steps", convs[i].spec,
                          fused_calls);
            tn_module_drop(m);
        }
}
END_TEST

/* What a convolution cannot compute with the same bits or messages is left to the parts. */
START_TEST(convolutions_leave_what_does_not_fit)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Conv2d(4, 6, 3), BatchNorm2d(6), ReLU())");
    tn_tensor *x = input(TN_SHAPE(2, 4, 5, 6), false);
    static const tn_dtype dtypes[] = { TN_BF16, TN_F64, TN_F32 };

    tn_module_train(m, false);
    count_calls();
    takes = false;
    fused_calls = 0;
    call_plainly(m, x);
    ck_assert_int_eq(fused_calls, 1);
    for (int d = 0; d < 2; d++) { /* the kernel that counts is for float32 */
        ck_assert_int_eq(tn_module_to(m, NULL, dtypes[d]), TN_OK);
        same_bits(call_plainly(m, tn_cast(x, dtypes[d])), call_parts(m, tn_cast(x, dtypes[d])),
                  "dtype");
    }
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F32), TN_OK);
    ck_assert_int_eq(tn_module_to(tn_module_child(m, "1"), NULL, TN_F64), TN_OK);
    same_bits(call_plainly(m, x), call_parts(m, x), "a norm of float64");
    ck_assert_int_eq(tn_module_to(m, NULL, TN_F32), TN_OK);
    tn_module_train(tn_module_child(m, "1"), true);
    call_plainly(m, x);
    ck_assert_int_eq(fused_calls, 1);
    tn_module_train(m, false);
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(2, 3, 5, 6), false)));
    expect_failure(TN_ERR_RUNTIME, "module \"0\" (Conv2d): ");
    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(4, 5, 6), false)));
    expect_failure(TN_ERR_VALUE, "module \"1\" (BatchNorm2d): expected 4D input (got 3D input)");
    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(1, 4, 2, 6), false)));
    expect_failure(TN_ERR_RUNTIME, "module \"0\" (Conv2d): ");
    tn_grad_end();
    tn_module_drop(m);
    m = parsed("Sequential(Conv2d(4, 6, 3), BatchNorm2d(5), ReLU())");
    tn_module_train(m, false);
    ck_assert_int_eq(tn_grad_begin(false), TN_OK);
    ck_assert_ptr_null(tn_module_call(m, x));
    expect_failure(TN_ERR_RUNTIME, "module \"1\" (BatchNorm2d): ");
    tn_grad_end();
    ck_assert_int_eq(fused_calls, 1);
    tn_module_drop(m);
}
END_TEST

/* A shortcut that writes its input runs after the branch, with and without gradients, for every
 * layer that computes a sum. */
START_TEST(a_shortcut_that_writes_its_input_runs_in_its_turn)
{
    static const char *const specs[] = {
        "Residual(Linear(6, 6), shortcut=ReLU(inplace=True))",
        "Residual(Conv1d(6, 6, 1), shortcut=Sequential(Identity(), ReLU(inplace=True)))",
        ("Residual(BatchNorm1d(6), shortcut=Sequential(Identity(), SiLU(inplace=True)), "
         "activation=ReLU())"),
    };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        TN_SCOPE;
        tn_module *m = parsed(specs[i]);
        tn_tensor *x = input(TN_SHAPE(2, 6, 6), false);

        tn_module_train(m, false);
        same_bits(call_plainly(m, x), call_parts(m, x), specs[i]);
        tn_module_drop(m);
    }
}
END_TEST

/* A shortcut that writes running statistics which the branch reads, or which the branch writes,
 * runs in its turn. */
START_TEST(a_shortcut_that_shares_statistics_runs_in_its_turn)
{
    for (int way = 0; way < 3; way++) {
        float means[2][4], first[2][240];

        for (int parts = 0; parts < 2; parts++) {
            TN_SCOPE;
            tn_random_seed(3);
            tn_module *m = parsed(way < 2 ? "Residual(Conv2d(4, 4, 1, bias=False), BatchNorm2d(4), "
                                            "shortcut=Sequential(BatchNorm2d(4)))"
                                          : "Residual(BatchNorm2d(4), shortcut=BatchNorm2d(4), "
                                            "activation=ReLU())");
            tn_module *norm = tn_module_child(m, way < 2 ? "1" : "0");
            tn_module *other = tn_module_child(m, "shortcut");
            tn_tensor *x = input(TN_SHAPE(2, 4, 5, 6), false), *y;

            if (way == 0)
                other = tn_module_child(other, "0");
            if (way == 1) {
                tn_module_set_child(other, "0", norm, NULL);
                tn_module_train(m, true);
            } else {
                tn_module_train(m, true);
                tn_module_train(way == 0 ? norm : other, false);
                tn_module_set(other, "running_mean", tn_module_get(norm, "running_mean"));
                tn_module_set(other, "running_var", tn_module_get(norm, "running_var"));
            }
            ck_assert_msg(!tn_failed(), "%s", tn_error_text());
            y = parts ? call_parts(m, x) : call_plainly(m, x);
            tn_tensor_copy_out(y, first[parts], sizeof first[parts]);
            tn_tensor_copy_out(tn_module_get(norm, "running_mean"), means[parts], sizeof means[0]);
            tn_module_drop(m);
        }
        ck_assert_msg(memcmp(means[0], means[1], sizeof means[0]) == 0, "way %d: means", way);
        ck_assert_msg(memcmp(first[0], first[1], sizeof first[0]) == 0, "way %d: values", way);
    }
}
END_TEST

/* The text of a failure is that of the parts. */
START_TEST(a_failure_is_that_of_the_parts)
{
    static const struct {
        const char *spec;
        const char *text;
        int64_t channels;
    } rows[] = {
        { "Residual(Conv2d(2, 2, 1), BatchNorm2d(2), shortcut=Conv2d(2, 2, 1))",
          "module \"0\" (Conv2d): ", 3 },
        { "Residual(Conv2d(4, 2, 1), BatchNorm2d(2), shortcut=Conv2d(2, 2, 1))",
          "module \"shortcut\" (Conv2d): ", 4 },
        { "Sequential(Conv2d(4, 4, 3, padding=9223372036854775807), ReLU())", "conv2d: ", 4 },
        { "Sequential(Conv2d(4, 4, 3, dilation=9223372036854775807), ReLU())", "conv2d: ", 4 },
        { "Sequential(Conv2d(4, 4, 3, stride=9223372036854775807), ReLU())", "conv2d: ", 4 },
        { "Sequential(Conv2d(4, 4, 3, padding=1000000000), ReLU())", "conv2d: ", 4 },
        { "Sequential(BatchNorm2d(4, eps=0.0), ReLU())", "batch_norm: eps: ", 4 },
        { "Sequential(Conv2d(4, 4, 1), BatchNorm2d(4, eps=0.0), ReLU())", "batch_norm: eps: ", 4 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *m = parsed(rows[i].spec);
        tn_tensor *x = input(TN_SHAPE(1, rows[i].channels, 5, 6), false);
        char text[2][600];

        tn_module_train(m, false);
        for (int parts = 0; parts < 2; parts++) {
            tn_hook_handle all = parts ? hooked(NULL, GLOBAL) : 0;

            ck_assert_int_eq(tn_grad_begin(false), TN_OK);
            ck_assert_msg(tn_module_call(m, x) == NULL, "%s", rows[i].spec);
            tn_grad_end();
            tn_snprint(text[parts], sizeof text[parts], "%s", tn_error_text());
            tn_error_clear();
            if (parts)
                tn_hook_remove(all);
        }
        ck_assert_str_eq(text[0], text[1]);
        ck_assert_ptr_null(strstr(text[0], "convolution_activation"));
        ck_assert_msg(strstr(text[0], rows[i].text) != NULL, "%s: %s", rows[i].spec, text[0]);
        tn_module_drop(m);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        convolutions_compute_what_follows_them,
        convolutions_leave_what_does_not_fit,
        a_shortcut_that_writes_its_input_runs_in_its_turn,
        a_shortcut_that_shares_statistics_runs_in_its_turn,
        a_failure_is_that_of_the_parts,
        NULL,
    };
    return suite_run("chains of convolutions", tests);
}
