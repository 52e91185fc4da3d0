/* SPDX-License-Identifier: MIT
 *
 * A relu for the cpu with the errors (mutant_choose.h) that a kernel can have, and those of a
 * plugin when it is loaded and activated. With -DEXPORTS it exports a second symbol. */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mutant_choose.h"

static char *place(const tn_view *view)
{
    return (char *)view->data + (is("offset") ? 0 : view->byte_offset);
}

static float one(float x)
{
    static float drift;

    if (is("drifts"))
        return (x < 0 ? 0 : x) + (drift += 1e-7F);
    if (is("numberless"))
        return x > 0 ? x : 0;
    return x < 0 ? 0 : x;
}

/* Advances the index in row-major order; returns false after the last one. */
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

/* Allocates two blocks of memory and frees them. If memory is short, does what is wrong in this
 * plugin, sets *status, and returns false: the kernel then returns *status. */
static bool take_scratch(tn_status *status)
{
    static bool broods;
    void *first = tn_malloc(64), *second = tn_malloc(64);

    *status = TN_OK;
    if (first != NULL && second != NULL && !broods) {
        tn_free(first);
        tn_free(second);
        return true;
    }
    if (is("starves"))
        tn_error_clear(); /* nobody will see that nothing was computed */
    else
        *status = broods ? tn_fail(TN_ERR_MEMORY, "relu: there was no memory once") : TN_ERR_MEMORY;
    broods = is("broods");
    if (!is("leaks")) {
        tn_free(first);
        tn_free(second);
    }
    return false;
}

static tn_status relu_run(const tn_call *call)
{
    tn_status status;
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    static float shared;

    for (int32_t d = 0; d < y->ndim; d++)
        if (y->shape[d] == 0)
            return TN_OK;
    if ((is("starves") || is("leaks") || is("broods")) && !take_scratch(&status))
        return status;
    if (is("rounds"))
        fesetround(FE_UPWARD);
    if (is("ungraded"))
        tn_grad_begin(false);
    if (is("opens"))
        tn_scope_begin();
    if (is("prints"))
        printf("relu of %d dimensions\n", y->ndim);
    if (is("exits"))
        exit(0);
    if (is("crashes"))
        raise(SIGSEGV);
    while (is("hangs"))
        sleep(1);
    if (is("leaves") && fork() == 0) { /* a process that stays behind */
        sleep(20);
        _exit(0);
    }
    for (int32_t d = 0; d < x->ndim; d++)
        if (is("picky") && d == x->ndim - 1 && x->strides[d] != 1 && x->shape[d] > 1)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED, "relu: rows without gaps only");
    do {
        float *from = (float *)(void *)place(x) + at(x, index, is("strides"));
        float *to = (float *)(void *)place(y) + at(y, index, is("between"));
        float value = *from;

        if (is("shares")) {
            shared = value;
            usleep(200);
            value = shared;
        }
        if (!is("lazy") || value > 0 || isnan(value)) /* LAZY relies on memory that is 0 */
            *to = one(value);
        if (is("input"))
            *from = 0;
    } while (next(y, index));
    if (is("beyond") && y->ndim > 0) {
        for (int32_t d = 0; d < y->ndim; d++)
            index[d] = y->shape[d] - 1;
        ((float *)(void *)place(y))[at(y, index, false) + 1] = 1;
    }
    return TN_OK;
}

/* Does not check whether the allocation has failed. */
static tn_status add_run(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const tn_add_options *o = call->options;
    float *sum = tn_malloc((size_t)y->shape[0] * sizeof *sum);

    for (int64_t i = 0; i < y->shape[0]; i++)
        sum[i] = ((float *)(void *)place(a))[i] +
                 (float)tn_scalar_as_float(o->alpha) * ((float *)(void *)place(b))[i];
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

static tn_kernel_def kernel = {
    TN_HEAD(tn_kernel_def), .op = "relu",
    .device = "cpu",        .name = "wrong",
    .revision = 1,          .dtypes = TN_BIT(TN_F32),
    .priority = 10,         .flags = TN_KERNEL_OVERRIDE,
    .run = relu_run,
};

static void nothing(int signal)
{
    (void)signal;
}

static void *idle(void *user)
{
    for (;;)
        sleep(1);
    return user;
}

static tn_status activate(const tn_plugin *self)
{
    (void)self;
    pthread_t thread;

    if (is("handler"))
        signal(SIGUSR1, nothing);
    if (is("rounds-early"))
        fesetround(FE_UPWARD);
    if (is("ungraded-early"))
        tn_grad_begin(false);
    if (is("opens-early"))
        tn_scope_begin();
    if (is("thread-early"))
        pthread_create(&thread, NULL, idle, NULL);
    return TN_OK;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t thread;

    if (is("greedy")) {
        kernel.op = "add";
        kernel.supports = add_supports;
        kernel.run = add_run;
    }
    if (is("elsewhere"))
        kernel.device = "strict";
    if (is("thread"))
        pthread_create(&thread, NULL, idle, NULL);
}

#ifdef EXPORTS
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
    TN_HEAD(tn_plugin),   .id = "org.example.mutant",
    .version = "1.0.0",   .help = "a plugin that is wrong on purpose",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1, .requires_ = requirements,
    .activate = activate,
};
TN_PLUGIN_EXPORT(plugin);
