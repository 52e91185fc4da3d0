/* SPDX-License-Identifier: MIT
 *
 * Plugins for tests of tenon check. Each value of WRONG compiles a plugin with one error, which
 * tenon check must find; with RIGHT, CUBE, PAIR and STRAIGHT it has none. Most of them bring a relu
 * for the cpu. */
#include <fenv.h>
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
#define PICKY 19
#define LAZY 20
#define LEAVES 21
#define ELSEWHERE 22
#define NO_SLOPE 23
#define CUT 24
#define STARVES 25
#define LEAKS 26
#define BROODS 27
#define UNFED 28
#define FORGETS 29
#define SULKS 30
#define PAIR 31
#define DEAF 32
#define FIRST_ONLY 33
#define HUSHED 34
#define ROUNDS 35 /* from here on: a kernel leaves the state of its thread changed */
#define UNGRADED 36
#define OPENS 37
#define ROUNDS_EARLY 38 /* from here on: the activation does */
#define UNGRADED_EARLY 39
#define OPENS_EARLY 40
#define THREAD_EARLY 41
#define STRAIGHT 42 /* right: the derivative is another function, and is declared so */

#if WRONG == GRADIENT || WRONG == CUBE || WRONG == NO_SLOPE || WRONG == CUT || WRONG == UNFED ||   \
    WRONG == FORGETS || WRONG == SULKS || WRONG == HUSHED || WRONG == STRAIGHT

/* ---- an operator: y = x^3 ---- */

static bool sulks;

static tn_status cube_infer(tn_infer *infer)
{
    if (WRONG == SULKS && infer->in[0]->ndim == 0) {
        sulks = true; /* and fails all later calls */
        return tn_fail(TN_ERR_VALUE, "a number has no cube here");
    }
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    for (int32_t d = 0; d < infer->in[0]->ndim; d++)
        infer->out[0].shape[d] = infer->in[0]->shape[d];
    return TN_OK;
}

static tn_status cube_derive(tn_derive *d)
{
    tn_tensor *x = WRONG == CUT ? tn_detach(d->in[0]) : d->in[0];
    tn_tensor *g = WRONG == CUT ? tn_detach(d->gout[0]) : d->gout[0];

    if (WRONG == UNFED || WRONG == HUSHED) { /* no memory, no gradient, no error */
        void *block = tn_malloc(64);

        tn_free(block);
        if (block == NULL) {
            tn_error_clear();
            d->gin[0] = WRONG == UNFED ? TN_NONE : NULL;
            return TN_OK;
        }
    }
    if (WRONG == FORGETS) { /* if one allocation fails, the other block is lost */
        void *first = tn_malloc(64), *second = tn_malloc(64);

        if (first == NULL || second == NULL)
            return TN_ERR_MEMORY;
        tn_free(first);
        tn_free(second);
    }
    if (WRONG == NO_SLOPE) /* 0 / 0 */
        x = tn_div(tn_sub(x, x), tn_sub(x, x));
    d->gin[0] = tn_mul(g,
                       tn_mul_scalar(tn_mul(x, x), WRONG == GRADIENT || WRONG == STRAIGHT ? 2 : 3));
    return TN_OK;
}

static tn_status cube_decompose(const tn_decompose *call)
{
    call->out[0] = tn_mul(tn_mul(call->in[0], call->in[0]),
                          sulks ? tn_neg(call->in[0]) : call->in[0]);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand cube_in[] = { { "x", 0, TN_MASK_FLOAT } }, cube_out[] = { { "y", 0, 0 } };
static const tn_op_def cube = {
    TN_HEAD(tn_op_def),    .name = "cube",
    .math = "y = x^3",     .help = "the third power",
    .revision = 1,         .flags = WRONG == STRAIGHT ? TN_OP_STRAIGHT_THROUGH : 0,
    .inputs = cube_in,     .outputs = cube_out,
    .n_inputs = 1,         .n_outputs = 1,
    .save_in = 1,          .infer = cube_infer,
    .derive = cube_derive, .decompose = cube_decompose
};
TN_PLUGIN("org.example.wrong", "1.0.0", &cube);

#elif WRONG == PAIR || WRONG == DEAF || WRONG == FIRST_ONLY

/* ---- an operator of two outputs: y = x^2, z = x^3 ---- */

static tn_status pair_infer(tn_infer *infer)
{
    for (int32_t i = 0; i < 2; i++) {
        infer->out[i].dtype = tn_view_dtype(infer->in[0]);
        infer->out[i].ndim = infer->in[0]->ndim;
        for (int32_t d = 0; d < infer->in[0]->ndim; d++)
            infer->out[i].shape[d] = infer->in[0]->shape[d];
    }
    return TN_OK;
}

static tn_status pair_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *sum = TN_NONE;

    if (WRONG == FIRST_ONLY && d->gout[0] == TN_NONE)
        return tn_fail(TN_ERR_VALUE, "pair: no gradient of y");
    if (d->gout[0] != TN_NONE)
        sum = tn_mul(d->gout[0], tn_mul_scalar(x, 2));
    if (d->gout[1] != TN_NONE && WRONG != DEAF) {
        tn_tensor *more = tn_mul(d->gout[1], tn_mul_scalar(tn_mul(x, x), 3));

        sum = sum == TN_NONE ? more : tn_add(sum, more);
    }
    d->gin[0] = sum;
    return TN_OK;
}

static tn_status pair_decompose(const tn_decompose *call)
{
    call->out[0] = tn_mul(call->in[0], call->in[0]);
    call->out[1] = tn_mul(call->out[0], call->in[0]);
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_operand pair_in[] = { { "x", 0, TN_MASK_FLOAT } },
                        pair_out[] = { { "y", 0, 0 }, { "z", 0, 0 } };
static const tn_op_def pair = { TN_HEAD(tn_op_def),
                                .name = "pair",
                                .math = "y = x^2, z = x^3",
                                .help = "the second and the third power",
                                .revision = 1,
                                .inputs = pair_in,
                                .outputs = pair_out,
                                .n_inputs = 1,
                                .n_outputs = 2,
                                .save_in = 1,
                                .infer = pair_infer,
                                .derive = pair_derive,
                                .decompose = pair_decompose };
TN_PLUGIN("org.example.wrong", "1.0.0", &pair);

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
    if (WRONG == STARVES)
        tn_error_clear(); /* nobody will see that nothing was computed */
    else
        *status = broods ? tn_fail(TN_ERR_MEMORY, "relu: there was no memory once") : TN_ERR_MEMORY;
    broods = WRONG == BROODS;
    if (WRONG != LEAKS) {
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
    if ((WRONG == STARVES || WRONG == LEAKS || WRONG == BROODS) && !take_scratch(&status))
        return status;
    if (WRONG == ROUNDS)
        fesetround(FE_UPWARD);
    if (WRONG == UNGRADED)
        tn_grad_begin(false);
    if (WRONG == OPENS)
        tn_scope_begin();
    if (WRONG == PRINTS)
        printf("relu of %d dimensions\n", y->ndim);
    if (WRONG == EXITS)
        exit(0);
    if (WRONG == CRASHES)
        raise(SIGSEGV);
    while (WRONG == HANGS)
        sleep(1);
    if (WRONG == LEAVES && fork() == 0) { /* a process that stays behind */
        sleep(20);
        _exit(0);
    }
    for (int32_t d = 0; d < x->ndim; d++)
        if (WRONG == PICKY && d == x->ndim - 1 && x->strides[d] != 1 && x->shape[d] > 1)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED, "relu: rows without gaps only");
    do {
        float *from = (float *)(void *)place(x) + at(x, index, WRONG == STRIDES);
        float *to = (float *)(void *)place(y) + at(y, index, WRONG == BETWEEN);
        float value = *from;

        if (WRONG == SHARES) {
            shared = value;
            usleep(200);
            value = shared;
        }
        if (WRONG != LAZY || value > 0 || isnan(value)) /* LAZY relies on memory that is 0 */
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

static const tn_kernel_def kernel = {
    TN_HEAD(tn_kernel_def),
    .op = WRONG == GREEDY ? "add" : "relu",
    .device = WRONG == ELSEWHERE ? "strict" : "cpu",
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

    if (WRONG == HANDLER)
        signal(SIGUSR1, nothing);
    if (WRONG == ROUNDS_EARLY)
        fesetround(FE_UPWARD);
    if (WRONG == UNGRADED_EARLY)
        tn_grad_begin(false);
    if (WRONG == OPENS_EARLY)
        tn_scope_begin();
    if (WRONG == THREAD_EARLY)
        pthread_create(&thread, NULL, idle, NULL);
    return TN_OK;
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
