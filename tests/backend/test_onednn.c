/* SPDX-License-Identifier: MIT
 *
 * The kernel pack of oneDNN: convolutions in float32 whose activations are channels last, forward
 * and backward, against the same in float64, which the device computes itself. Checks also that the
 * pack was called, and that the bits are the same with any number of threads. */
#include "backend.h"

typedef struct figure {
    int64_t images, inputs, outputs, groups, size, kernel, stride, padding, dilation;
    bool bias;
} figure;

static const figure figures[] = {
    { 4, 16, 32, 1, 9, 3, 1, 1, 1, true },  { 8, 8, 16, 1, 8, 1, 2, 0, 1, false },
    { 6, 3, 16, 1, 14, 7, 2, 3, 1, true },  { 2, 16, 16, 16, 7, 3, 1, 1, 1, true },
    { 10, 16, 32, 2, 8, 3, 2, 1, 1, true }, { 4, 16, 16, 1, 11, 3, 1, 2, 2, true },
    { 9, 5, 7, 1, 6, 3, 1, 0, 1, true },    { 4, 64, 64, 1, 16, 3, 1, 1, 1, false },
};

static int plans;

static void listen(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)level;
    if (strcmp(plugin, "tenon.onednn") == 0 && strstr(text, "plan") != NULL)
        plans++;
}

/* [N, C, H, W] with the channels next to one another. */
static tn_tensor *last(tn_tensor *x)
{
    int64_t n = tn_tensor_size(x, 0), c = tn_tensor_size(x, 1), h = tn_tensor_size(x, 2),
            w = tn_tensor_size(x, 3);
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(n, h, w, c), tn_tensor_dtype(x), tn_tensor_device(x));

    to = tn_permute(to, TN_INTS(0, 3, 1, 2));
    return tn_copy_(to, x);
}

static tn_tensor *some(tn_ints shape, tn_dtype dtype, const double *numbers_)
{
    return put(tn_device_find("cpu"), dtype, shape, numbers_, DENSE);
}

/* y, gx, gw of one figure in a dtype. */
static void compute(const figure *f, tn_dtype dtype, double *const *from, tn_tensor **out)
{
    tn_convolution_options o = TN_CONVOLUTION_OPTIONS;
    tn_convolution_grad_input_options oi = TN_CONVOLUTION_GRAD_INPUT_OPTIONS;
    tn_convolution_grad_weight_options ow = TN_CONVOLUTION_GRAD_WEIGHT_OPTIONS;
    int64_t reach = (f->kernel - 1) * f->dilation + 1;
    int64_t after = (f->size + 2 * f->padding - reach) / f->stride + 1;
    tn_ints stride = TN_INTS(f->stride, f->stride), padding = TN_INTS(f->padding, f->padding),
            dilation = TN_INTS(f->dilation, f->dilation);
    tn_tensor *x = last(some(TN_SHAPE(f->images, f->inputs, f->size, f->size), dtype, from[0]));
    tn_tensor *w = some(TN_SHAPE(f->outputs, f->inputs / f->groups, f->kernel, f->kernel), dtype,
                        from[1]);
    tn_tensor *b = f->bias ? some(TN_SHAPE(f->outputs), dtype, from[2]) : TN_NONE;
    tn_tensor *gy = last(some(TN_SHAPE(f->images, f->outputs, after, after), dtype, from[3]));

    o.stride = oi.stride = ow.stride = stride;
    o.padding = oi.padding = ow.padding = padding;
    o.dilation = oi.dilation = ow.dilation = dilation;
    o.groups = oi.groups = ow.groups = f->groups;
    out[0] = tn_convolution(x, w, b, o.stride, o.padding, o.dilation, o.groups);
    out[1] = tn_convolution_grad_input(gy, w, TN_INTS(f->size, f->size), oi.stride, oi.padding,
                                       oi.dilation, oi.groups);
    out[2] = tn_convolution_grad_weight(gy, x, TN_INTS(f->kernel, f->kernel), ow.stride, ow.padding,
                                        ow.dilation, ow.groups);
}

static void draw(const figure *f, double **from)
{
    int64_t sizes[] = { f->images * f->inputs * f->size * f->size,
                        f->outputs * f->inputs / f->groups * f->kernel * f->kernel, f->outputs,
                        f->images * f->outputs * (f->size + 8) * (f->size + 8) };

    for (int i = 0; i < 4; i++) {
        from[i] = calloc((size_t)sizes[i], sizeof(double));
        ck_assert_ptr_nonnull(from[i]);
        numbers(from[i], sizes[i], -1, 1, TN_F32);
    }
}

/* Returns how many of the three operators the pack computes for all shapes: not the gradient of a
 * 1x1 weight with a stride, which varies from run to run. */
static int taken_of_all(const figure *f)
{
    return f->kernel == 1 && f->stride != 1 ? 2 : 3;
}

START_TEST(convolutions_are_those_in_float64)
{
    static const char *const names[] = { "y", "gx", "gw" };

    setenv("TENON_LOG", "debug", 1); /* read with the first call */
    setenv("TENON_ONEDNN_SHAPES", "all", 1);
    tn_set_log_sink(listen, NULL);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        TN_SCOPE;
        double *from[4];
        tn_tensor *single[3], *twice[3];
        int before = plans;

        draw(&figures[i], from);
        compute(&figures[i], TN_F32, from, single);
        const int expected = taken_of_all(&figures[i]);
        ck_assert_msg(plans == before + expected, "figure %zu: %d plans were made, %d expected", i,
                      plans - before, expected);
        compute(&figures[i], TN_F64, from, twice);
        ck_assert_int_eq(plans, before + expected);
        for (int k = 0; k < 3; k++) {
            there(single[k]);
            there(twice[k]);
            same(names[k], tn_device_find("cpu"), TN_F32, single[k], get(twice[k]), 64, 8);
        }
        for (int k = 0; k < 4; k++)
            free(from[k]);
    }
}
END_TEST

START_TEST(bits_do_not_depend_on_the_threads)
{
    const figure *f = &figures[7];
    double *from[4], *first[3] = { NULL };

    setenv("TENON_ONEDNN_SHAPES", "all", 1);
    draw(f, from);
    for (int threads = 1; threads <= 4; threads *= 2) {
        TN_SCOPE;
        tn_tensor *out[3];

        ok(tn_set_num_threads(threads));
        compute(f, TN_F32, from, out);
        for (int k = 0; k < 3; k++) {
            double *now;

            there(out[k]);
            now = get(out[k]);
            if (first[k] == NULL)
                first[k] = now;
            else
                ck_assert_mem_eq(now, first[k], (size_t)tn_tensor_numel(out[k]) * sizeof(double));
        }
    }
    for (int k = 0; k < 4; k++)
        free(from[k]);
}
END_TEST

/* A convolution and its activation in one operator have the bits of the parts, the first of which
 * is oneDNN's (its plan is made once), and of the device's own kernel for one image. */
START_TEST(what_follows_a_convolution_has_the_bits_of_the_parts)
{
    setenv("TENON_LOG", "debug", 1);
    setenv("TENON_ONEDNN_SHAPES", "all", 1);
    tn_set_log_sink(listen, NULL);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        for (int one = 0; one < 2; one++) {
            TN_SCOPE;
            const figure *f = &figures[i];
            double *from[4];
            int before = plans;
            tn_convolution_options o = TN_CONVOLUTION_OPTIONS;
            tn_convolution_activation_options a = TN_CONVOLUTION_ACTIVATION_OPTIONS;
            tn_tensor *x, *w, *y[2];

            draw(f, from);
            o.stride = a.stride = TN_INTS(f->stride, f->stride);
            o.padding = a.padding = TN_INTS(f->padding, f->padding);
            o.dilation = a.dilation = TN_INTS(f->dilation, f->dilation);
            o.groups = a.groups = f->groups;
            x = last(
                some(TN_SHAPE(one ? 1 : f->images, f->inputs, f->size, f->size), TN_F32, from[0]));
            w = some(TN_SHAPE(f->outputs, f->inputs / f->groups, f->kernel, f->kernel), TN_F32,
                     from[1]);
            y[0] = tn_convolution_activation(x, w, TN_NONE, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                                             TN_NONE, "relu", a.stride, a.padding, a.dilation,
                                             a.groups);
            ck_assert_int_eq(plans, before + !one);
            y[1] = tn_relu(
                tn_convolution(x, w, TN_NONE, o.stride, o.padding, o.dilation, o.groups));
            ck_assert_int_eq(plans, before + !one);
            there(y[0]);
            there(y[1]);
            ck_assert_mem_eq(get(y[0]), get(y[1]), (size_t)tn_tensor_numel(y[0]) * sizeof(double));
            for (int k = 0; k < 4; k++)
                free(from[k]);
        }
}
END_TEST

/* Returns how many of the three passes (forward and two gradients) oneDNN computes if it is used
 * only for shapes for which it was measured to be faster. */
static int taken(figure f)
{
    TN_SCOPE;
    double *from[4];
    tn_tensor *out[3];
    int before = plans;

    draw(&f, from);
    compute(&f, TN_F32, from, out);
    for (int k = 0; k < 3; k++)
        there(out[k]);
    for (int k = 0; k < 4; k++)
        free(from[k]);
    return plans - before;
}

START_TEST(only_shapes_that_measured_faster_are_taken)
{
    setenv("TENON_LOG", "debug", 1);
    tn_set_log_sink(listen, NULL);
    ck_assert_int_eq(taken((figure){ 4, 1, 6, 1, 12, 5, 1, 2, 1, false }), 3);
    ck_assert_int_eq(taken((figure){ 4, 32, 32, 32, 8, 3, 1, 1, 1, false }), 3);
    ck_assert_int_eq(taken((figure){ 4, 64, 128, 1, 8, 1, 2, 0, 1, false }), 2);
    /* Winograd's, and products that are large enough, are the device's own. */
    ck_assert_int_eq(taken((figure){ 4, 64, 64, 1, 16, 3, 1, 1, 1, false }), 0);
    ck_assert_int_eq(taken((figure){ 4, 256, 512, 1, 4, 1, 1, 0, 1, false }), 0);
    /* With strides, all but the gradient of a large weight. */
    ck_assert_int_eq(taken((figure){ 4, 64, 64, 1, 8, 3, 2, 1, 1, false }), 2);
}
END_TEST

START_TEST(an_unknown_choice_of_shapes_is_refused)
{
    setenv("TENON_ONEDNN_SHAPES", "some", 1);
    setenv("TENON_LOG", "debug", 1);
    tn_set_log_sink(listen, NULL);
    ck_assert_int_eq(taken((figure){ 4, 1, 6, 1, 12, 5, 1, 2, 1, false }), 0);
}
END_TEST

RUN_SUITE("onednn", only_shapes_that_measured_faster_are_taken,
          an_unknown_choice_of_shapes_is_refused, convolutions_are_those_in_float64,
          what_follows_a_convolution_has_the_bits_of_the_parts, bits_do_not_depend_on_the_threads)
