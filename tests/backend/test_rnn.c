/* SPDX-License-Identifier: MIT
 *
 * Recurrent sequences against plain loops in double: every kind, both directions, with lengths and
 * without, batches of one and of several blocks of rows. Gradients by finite differences, first and
 * second; the same bits with any number of threads. */
#include "tests/backend/fused.h"

enum kind { TANH, RELU, LSTM, GRU, KINDS };

static const int64_t gates_of[] = { 1, 1, 4, 3 };

/* L, N, I, H: one row and few steps; one row; no full vector; blocks of rows of both sizes. */
static const int64_t sizes[][4] = { { 3, 1, 4, 5 },   { 20, 1, 7, 33 }, { 1, 3, 4, 6 },
                                    { 9, 13, 8, 16 }, { 4, 30, 5, 40 }, { 3, 50, 6, 17 } };

struct inputs {
    tn_tensor *x, *h, *c, *w_ih, *w_hh, *b_ih, *b_hh, *lengths;
};

static struct inputs inputs_of(const int64_t *s, enum kind kind, tn_dtype dtype, bool lengths)
{
    int64_t rows = gates_of[kind] * s[3], *ends = malloc((size_t)s[1] * sizeof *ends);
    struct inputs in = { drawn(TN_SHAPE(s[0], s[1], s[2]), dtype, 1),
                         drawn(TN_SHAPE(s[1], s[3]), dtype, 2),
                         drawn(TN_SHAPE(s[1], s[3]), dtype, 3),
                         tn_mul_scalar(drawn(TN_SHAPE(rows, s[2]), dtype, 4), 0.4),
                         tn_mul_scalar(drawn(TN_SHAPE(rows, s[3]), dtype, 5), 0.12),
                         drawn(TN_SHAPE(rows), dtype, 6),
                         drawn(TN_SHAPE(rows), dtype, 7),
                         TN_NONE };

    for (int64_t i = 0; i < s[1]; i++)
        ends[i] = 1 + (i * 7 + 2) % s[0];
    if (lengths) {
        in.lengths = tn_tensor_empty(TN_SHAPE(s[1]), TN_I64, tn_device_find("cpu"));
        ok(tn_tensor_copy_in(in.lengths, ends, (size_t)s[1] * sizeof *ends));
    }
    free(ends);
    return in;
}

static tn_status call(enum kind kind, const struct inputs *in, bool reverse, tn_tensor **out)
{
    tn_rnn_sequence_options plain = TN_RNN_SEQUENCE_OPTIONS;
    tn_lstm_sequence_options lstm = TN_LSTM_SEQUENCE_OPTIONS;
    tn_gru_sequence_options gru = TN_GRU_SEQUENCE_OPTIONS;

    plain.reverse = lstm.reverse = gru.reverse = reverse;
    plain.nonlinearity = kind == RELU ? "relu" : "tanh";
    if (kind == LSTM)
        return tn_lstm_sequence(in->x, in->h, in->c, in->w_ih, in->w_hh, in->b_ih, in->b_hh,
                                TN_NONE, in->lengths, &out[0], &out[1], &out[2], lstm.reverse);
    if (kind == GRU)
        return tn_gru_sequence(in->x, in->h, in->w_ih, in->w_hh, in->b_ih, in->b_hh, in->lengths,
                               &out[0], &out[1], gru.reverse);
    return tn_rnn_sequence(in->x, in->h, in->w_ih, in->w_hh, in->b_ih, in->b_hh, in->lengths,
                           &out[0], &out[1], plain.nonlinearity, plain.reverse);
}

/* ---- the reference --------------------------------------------------------------------------- */

static double gate(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step of one row: replaces h and c, of `size` numbers each, by those after the step. */
static void step(enum kind kind, int64_t inputs, int64_t size, const double *x, double *h,
                 double *c, double *const *w)
{
    double *gx = room(4 * size), *gh = room(4 * size);

    for (int64_t r = 0; r < gates_of[kind] * size; r++) {
        gx[r] = w[2][r];
        gh[r] = w[3][r];
        for (int64_t k = 0; k < inputs; k++)
            gx[r] += w[0][r * inputs + k] * x[k];
        for (int64_t k = 0; k < size; k++)
            gh[r] += w[1][r * size + k] * h[k];
    }
    for (int64_t k = 0; k < size; k++) {
        double a = gx[k] + gh[k];
        if (kind == LSTM) {
            double f = gate(gx[size + k] + gh[size + k]),
                   g = tanh(gx[2 * size + k] + gh[2 * size + k]),
                   o = gate(gx[3 * size + k] + gh[3 * size + k]);
            c[k] = f * c[k] + gate(a) * g;
            h[k] = o * tanh(c[k]);
        } else if (kind == GRU) {
            double z = gate(gx[size + k] + gh[size + k]),
                   n = tanh(gx[2 * size + k] + gate(a) * gh[2 * size + k]);
            h[k] = (1 - z) * n + z * h[k];
        } else {
            h[k] = kind == TANH ? tanh(a) : a > 0 ? a : 0;
        }
    }
}

static void reference(enum kind kind, const int64_t *s, const struct inputs *in, bool reverse,
                      double *y, double *h, double *c)
{
    double *x = get(in->x), *ends = in->lengths != TN_NONE ? get(in->lengths) : NULL,
           *w[] = { get(in->w_ih), get(in->w_hh), get(in->b_ih), get(in->b_hh) };

    for (int64_t i = 0; i < s[0]; i++)
        for (int64_t n = 0; n < s[1]; n++) {
            int64_t t = reverse ? s[0] - 1 - i : i;

            if (ends != NULL && (double)t >= ends[n])
                continue; /* y is 0 there */
            step(kind, s[2], s[3], x + (t * s[1] + n) * s[2], h + n * s[3], c + n * s[3], w);
            memcpy(y + (t * s[1] + n) * s[3], h + n * s[3], (size_t)s[3] * sizeof *y);
        }
}

START_TEST(sequences_are_their_steps)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
    const tn_device *cpu = tn_device_find("cpu");
    char what[100];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int how = 0; how < 16; how++) {
                TN_SCOPE;
                const int64_t *s = sizes[i];
                tn_dtype dtype = dtypes[how >> 2];
                struct inputs in = inputs_of(s, (enum kind)kind, dtype, how & 1);
                double *y = room(s[0] * s[1] * s[3]), *h = get(in.h), *c = get(in.c);
                /* sums of tens of products, after at most 20 steps; rounded inputs of narrow types
                 */
                double ulps = dtype == TN_F32 || dtype == TN_F64 ? 200 : 8;
                tn_tensor *out[3];

                snprintf(what, sizeof what, "size %d, kind %d, way %d", (int)i, kind, how);
                ok(call((enum kind)kind, &in, (how & 2) != 0, out));
                reference((enum kind)kind, s, &in, (how & 2) != 0, y, h, c);
                same(what, cpu, dtype, out[0], y, ulps, 1);
                same(what, cpu, dtype, out[1], h, ulps, 1);
                if (kind == LSTM)
                    same(what, cpu, dtype, out[2], c, ulps, 1);
            }
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------------- */

struct way {
    enum kind kind;
    bool reverse;
    tn_tensor *lengths;
};

static tn_status checked(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const struct way *way = user;
    struct inputs all = { in[0], in[1], TN_NONE, in[2], in[3], in[4], in[5], way->lengths };

    if (way->kind == LSTM)
        all.c = in[6];
    return call(way->kind, &all, way->reverse, out);
}

START_TEST(gradients_are_finite_differences)
{
    static const int64_t small[] = { 3, 2, 2, 3 };

    for (int kind = 0; kind < KINDS; kind++)
        for (int how = 0; how < 4; how++) {
            TN_SCOPE;
            struct inputs in = inputs_of(small, (enum kind)kind, TN_F64, how & 1);
            struct way way = { (enum kind)kind, (how & 2) != 0, in.lengths };
            tn_tensor *all[] = { in.x, in.h, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.c };
            int64_t count = kind == LSTM ? 7 : 6, outs = kind == LSTM ? 3 : 2;

            for (int64_t i = 0; i < count; i++)
                leaf(all[i]);
            ok(tn_gradcheck(checked, &way, all, count, outs, 0, 0));
            if (kind != RELU) /* its second derivatives are 0 */
                ok(tn_gradgradcheck(checked, &way, all, count, outs, 0, 0));
        }
}
END_TEST

/* The gradients of many rows and of long sequences: the product over all steps, several blocks. */
START_TEST(gradients_of_float32_are_those_of_float64)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int how = 0; how < 4; how++) {
                TN_SCOPE;
                const int64_t *s = sizes[i];
                struct inputs in[2];
                tn_tensor *grads[2][7];

                for (int d = 0; d < 2; d++) {
                    tn_tensor *out[3], *sum;
                    in[d] = inputs_of(s, (enum kind)kind, TN_F32, how & 1);
                    tn_tensor **all[] = { &in[d].x,    &in[d].h,    &in[d].c,   &in[d].w_ih,
                                          &in[d].w_hh, &in[d].b_ih, &in[d].b_hh };
                    for (int k = 0; k < 7; k++) {
                        *all[k] = tn_cast(*all[k], d == 0 ? TN_F32 : TN_F64);
                        leaf(*all[k]);
                    }
                    ok(call((enum kind)kind, &in[d], (how & 2) != 0, out));
                    sum = tn_add(tn_sum(tn_square(out[0])), tn_sum(out[1]));
                    if (kind == LSTM)
                        sum = tn_add(sum, tn_sum(out[2]));
                    ok(tn_backward(sum));
                    for (int k = 0; k < 7; k++)
                        if (k != 2 || kind == LSTM)
                            there(grads[d][k] = tn_tensor_grad(*all[k]));
                }
                for (int k = 0; k < 7; k++)
                    if (k != 2 || kind == LSTM)
                        ck_assert_msg(
                            tn_allclose(tn_cast(grads[0][k], TN_F64), grads[1][k], 1e-3, 1e-3) == 1,
                            "size %d, kind %d, way %d, gradient %d", (int)i, kind, how, k);
            }
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    static const int64_t many[] = { 6, 60, 24, 40 };

    for (int kind = 0; kind < KINDS; kind++) {
        TN_SCOPE;
        tn_tensor *first[8] = { NULL };

        for (int threads = 1; threads <= 4; threads *= 2) {
            struct inputs in = inputs_of(many, (enum kind)kind, TN_F32, true);
            tn_tensor *all[] = { in.x, in.h, in.w_ih, in.w_hh, in.b_ih, in.b_hh }, *out[3];

            ok(tn_set_num_threads(threads));
            for (int k = 0; k < 6; k++)
                leaf(all[k]);
            ok(call((enum kind)kind, &in, false, out));
            ok(tn_backward(tn_sum(tn_square(out[0]))));
            tn_tensor *got[8] = { out[0], out[1] };
            for (int k = 0; k < 6; k++)
                there(got[2 + k] = tn_tensor_grad(all[k]));
            if (threads == 1)
                memcpy(first, got, sizeof first);
            for (int k = 0; k < 8; k++)
                same_bits(got[k], first[k], "threads");
        }
    }
    ok(tn_set_num_threads(1));
}
END_TEST

/* What a layer returns may be changed in place before the gradient is taken. */
START_TEST(results_may_be_changed_in_place)
{
    for (int kind = 0; kind < KINDS; kind++) {
        TN_SCOPE;
        static const int64_t size[] = { 4, 3, 2, 5 };
        tn_tensor *grads[2];

        for (int way = 0; way < 2; way++) {
            struct inputs in = inputs_of(size, (enum kind)kind, TN_F32, false);
            tn_tensor *out[3];

            leaf(in.w_hh);
            ok(call((enum kind)kind, &in, false, out));
            there(way == 0 ? tn_mul_scalar_(out[0], 3) : (out[0] = tn_mul_scalar(out[0], 3)));
            ok(tn_backward(tn_sum(out[0])));
            there(grads[way] = tn_tensor_grad(in.w_hh));
        }
        same_bits(grads[0], grads[1], "in place");
    }
}
END_TEST

START_TEST(a_gradient_needs_what_the_steps_keep)
{
    TN_SCOPE;
    tn_tensor *gx = leaf(drawn(TN_SHAPE(2, 3, 4), TN_F32, 1)),
              *h = drawn(TN_SHAPE(3, 4), TN_F32, 2), *w = drawn(TN_SHAPE(4, 4), TN_F32, 3), *out[6];

    ok(tn_recurrent_steps(gx, h, TN_NONE, w, TN_NONE, TN_NONE, "tanh", &out[0], &out[1], &out[2],
                          &out[3], &out[4], &out[5], false, false));
    ck_assert_int_eq(tn_tensor_numel(out[3]), 0);
    ck_assert_int_ne(tn_backward(tn_sum(out[0])), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "keep"));
    tn_error_clear();
    ck_assert_int_ne(tn_recurrent_steps(gx, h, TN_NONE, w, TN_NONE, TN_NONE, "elman", &out[0],
                                        &out[1], &out[2], &out[3], &out[4], &out[5]),
                     TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "expected tanh, relu, lstm or gru"));
    tn_error_clear();
    ck_assert_int_ne(tn_recurrent_steps(gx, h, h, w, TN_NONE, TN_NONE, "tanh", &out[0], &out[1],
                                        &out[2], &out[3], &out[4], &out[5]),
                     TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "c: not used"));
    tn_error_clear();
}
END_TEST

/* ---- memory runs out ------------------------------------------------------------------------- */

static int64_t left = INT64_MAX; /* allocations until one fails */

static void *limited_alloc(void *user, size_t size, size_t alignment)
{
    void *block = NULL;

    (void)user;
    if (left-- == 0)
        return NULL;
    return posix_memalign(&block, alignment < sizeof block ? sizeof block : alignment, size) == 0
               ? block
               : NULL;
}

static void *limited_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *moved = limited_alloc(user, size, alignment);

    if (moved != NULL) {
        memcpy(moved, block, old_size < size ? old_size : size);
        free(block);
    }
    return moved;
}

static void limited_free(void *user, void *block, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    free(block);
}

/* Training with sequences of float32, and products of bfloat16: if memory runs out, the call fails
 * with TN_ERR_MEMORY, and later calls give the same results. */
START_TEST(memory_that_runs_out_is_an_error)
{
    static const int64_t size[] = { 300, 60, 8, 160 };
    const tn_allocator own = { limited_alloc, limited_resize, limited_free, NULL, { NULL } };
    int failures = 0;

    ok(tn_set_allocator(&own));
    for (int64_t at = -1; at < 60; at++) {
        TN_SCOPE;
        enum kind kind = (enum kind)(at % KINDS >= 0 ? at % KINDS : GRU);
        struct inputs in = inputs_of(size, kind, TN_F32, true);
        tn_tensor *out[3], *x = drawn(TN_SHAPE(40, 64), TN_BF16, 1);
        tn_status status;

        leaf(in.w_hh);
        left = at < 0 ? INT64_MAX : at;
        status = call(kind, &in, false, out);
        if (status == TN_OK)
            status = tn_backward(tn_sum(out[0]));
        if (status == TN_OK && tn_matmul(x, tn_transpose(x, 0, 1)) == NULL)
            status = tn_error_last_code();
        if (left < 0) {
            ck_assert_msg(status == TN_ERR_MEMORY || status == TN_OK, "allocation %lld: %s",
                          (long long)at, tn_error_text());
            failures += status == TN_ERR_MEMORY;
        } else {
            ok(status);
        }
        left = INT64_MAX;
        tn_error_clear();
    }
    ck_assert_int_gt(failures, 5);
}
END_TEST

RUN_SUITE("rnn", memory_that_runs_out_is_an_error, sequences_are_their_steps,
          gradients_are_finite_differences, gradients_of_float32_are_those_of_float64,
          threads_do_not_change_a_bit, results_may_be_changed_in_place,
          a_gradient_needs_what_the_steps_keep)
