/* SPDX-License-Identifier: MIT
 *
 * Plugins that are wrong on purpose, one for each value of WRONG, and two that are right: what tenon check has to find.
 * Most of them bring a relu for the cpu. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/plugin.h>

#define RIGHT 0
#define STRIDES 1
#define OFFSET 2
#define INPUT 3
#define BETWEEN 4
#define NUMBERLESS 5
#define DRIFTS 6
#define SHARES 7
#define PRINTS 8
#define EXITS 9
#define CRASHES 10
#define HANGS 11
#define THREAD 12
#define HANDLER 13
#define EXPORTS 14
#define GREEDY 15
#define GRADIENT 16
#define CUBE 17
#define BEYOND 18

#if WRONG == GRADIENT || WRONG == CUBE

/* ---- an operator: y = x^3 ---- */

static tn_status cube_infer(tn_infer *infer)
{
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    for (int32_t d = 0; d < infer->in[0]->ndim; d++)
        infer->out[0].shape[d] = infer->in[0]->shape[d];
    return TN_OK;
}

static tn_status cube_derive(tn_derive *d)
{
    d->gin[0] = tn_mul(d->gout[0],
                       tn_mul_scalar(tn_mul(d->in[0], d->in[0]), WRONG == GRADIENT ? 2 : 3));
    return TN_OK;
}

static tn_status cube_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    (void)n_in;
    (void)options;
    out[0] = tn_mul(tn_mul(in[0], in[0]), in[0]);
    return out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static const tn_operand cube_in[] = { { "x", 0, TN_MASK_FLOAT } }, cube_out[] = { { "y", 0, 0 } };
static const tn_op_def cube = { TN_HEAD(tn_op_def),
                                .name = "cube",
                                .math = "y = x^3",
                                .help = "the third power",
                                .revision = 1,
                                .inputs = cube_in,
                                .outputs = cube_out,
                                .n_inputs = 1,
                                .n_outputs = 1,
                                .save_in = 1,
                                .infer = cube_infer,
                                .derive = cube_derive,
                                .decompose = cube_decompose };
TN_PLUGIN("org.example.wrong", "1.0.0", &cube);

#else

/* ---- a kernel for the cpu ---- */

static char *place(const tn_view *view)
{
    return (char *)view->data + (WRONG == OFFSET ? 0 : view->byte_offset);
}

static float one(float x)
{
    static float drift;

    if (WRONG == DRIFTS)
        return (x < 0 ? 0 : x) + (drift += 1e-7F);
    if (WRONG == NUMBERLESS)
        return x > 0 ? x : 0;
    return x < 0 ? 0 : x;
}

/* An index counted up in the shape of `view`; false behind the last one. */
static bool next(const tn_view *view, int64_t *index)
{
    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        if (++index[d] < view->shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static int64_t at(const tn_view *view, const int64_t *index, bool packed)
{
    int64_t sum = 0;

    for (int32_t d = 0; d < view->ndim; d++)
        sum = packed ? sum * view->shape[d] + index[d] : sum + index[d] * view->strides[d];
    return sum;
}

static tn_status relu_run(const tn_call *call)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    static float shared;

    for (int32_t d = 0; d < y->ndim; d++)
        if (y->shape[d] == 0)
            return TN_OK;
    if (WRONG == PRINTS)
        printf("relu of %d dimensions\n", y->ndim);
    if (WRONG == EXITS)
        exit(0);
    if (WRONG == CRASHES)
        raise(SIGSEGV);
    while (WRONG == HANGS)
        sleep(1);
    do {
        float *from = (float *)(void *)place(x) + at(x, index, WRONG == STRIDES);
        float *to = (float *)(void *)place(y) + at(y, index, WRONG == BETWEEN);
        float value = *from;

        if (WRONG == SHARES) {
            shared = value;
            usleep(200);
            value = shared;
        }
        *to = one(value);
        if (WRONG == INPUT)
            *from = 0;
    } while (next(y, index));
    if (WRONG == BEYOND && y->ndim > 0) {
        for (int32_t d = 0; d < y->ndim; d++)
            index[d] = y->shape[d] - 1;
        ((float *)(void *)place(y))[at(y, index, false) + 1] = 1;
    }
    return TN_OK;
}

/* Takes memory and does not look whether it got any. */
static tn_status add_run(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const tn_add_options *o = call->options;
    float *sum = tn_malloc((size_t)y->shape[0] * sizeof *sum);

    for (int64_t i = 0; i < y->shape[0]; i++)
        sum[i] = ((float *)(void *)place(a))[i] + (float)o->alpha * ((float *)(void *)place(b))[i];
    for (int64_t i = 0; i < y->shape[0]; i++)
        ((float *)(void *)place(y))[i] = sum[i];
    tn_free(sum);
    return TN_OK;
}

static bool add_supports(const tn_call *call, char *reason, size_t size)
{
    if (call->out[0]->ndim == 1 && call->in[0]->ndim == 1 && call->in[1]->ndim == 1 &&
        call->in[0]->shape[0] == call->in[1]->shape[0] && call->in[0]->strides[0] == 1 &&
        call->in[1]->strides[0] == 1 && call->out[0]->strides[0] == 1)
        return true;
    tn_snprint(reason, size, "rows only");
    return false;
}

static const tn_kernel kernel = {
    TN_HEAD(tn_kernel),
    .op = WRONG == GREEDY ? "add" : "relu",
    .device = "cpu",
    .name = "wrong",
    .revision = 1,
    .dtypes = TN_BIT(TN_F32),
    .priority = 10,
    .flags = TN_KERNEL_OVERRIDE,
    .supports = WRONG == GREEDY ? add_supports : NULL,
    .run = WRONG == GREEDY ? add_run : relu_run,
};

static void nothing(int signal)
{
    (void)signal;
}

static tn_status activate(void)
{
    if (WRONG == HANDLER)
        signal(SIGUSR1, nothing);
    return TN_OK;
}

static void *idle(void *user)
{
    for (;;)
        sleep(1);
    return user;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t thread;

    if (WRONG == THREAD)
        pthread_create(&thread, NULL, idle, NULL);
}

#if WRONG == EXPORTS
__attribute__((visibility("default"))) int helper_of_mine(void);
int helper_of_mine(void)
{
    return 1;
}
#endif

static const tn_requirement requirements[] = { { "tenon.cpu", "", "", NULL },
                                               { NULL, NULL, NULL, NULL } };
static const void *const contributions[] = { &kernel };
static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),   .id = "org.example.wrong",
    .version = "1.0.0",   .help = "a plugin that is wrong on purpose",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1, .requires_ = requirements,
    .activate = activate,
};
TN_PLUGIN_EXPORT(plugin);

#endif
