/* SPDX-License-Identifier: MIT
 *
 * Every layer in eval mode, called by several threads on one module: each thread gets the values
 * that one thread alone gets, and ThreadSanitizer finds no race. Without gradients, and with them
 * recorded. */
#include <math.h>
#include <pthread.h>

#include "tests/module/each_oracle_layer.h"

enum { THREADS = 8, ROUNDS = 2, RESULTS = 8 };

struct job {
    pthread_t thread;
    tn_module *module;
    const struct subject *subject;
    pthread_barrier_t *start;
    bool grad;
    tn_tensor *out[ROUNDS][RESULTS];
    int64_t n_out;
    const char *failure;
};

/* Stores the results that are tensors, and keeps them. Returns how many, or -1 after a failure. */
static int64_t call(tn_module *module, const struct subject *s, tn_tensor **out)
{
    TN_SCOPE;
    tn_pack *in = tn_pack_new(), *results = tn_pack_new();
    int64_t count = -1;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < s->n_in && status == TN_OK; i++)
        status = tn_pack_add(in, NULL, tn_value_tensor(s->in[i]));
    if (status == TN_OK && tn_module_call_pack(module, in, results) == TN_OK) {
        count = 0;
        for (int64_t i = 0; i < tn_pack_count(results) && count < RESULTS; i++)
            if (tn_pack_at(results, i).kind == TN_VALUE_TENSOR)
                out[count++] = tn_tensor_keep(tn_pack_tensor(results, i));
    }
    tn_pack_drop(in);
    tn_pack_drop(results);
    return count;
}

static void *call_often(void *user)
{
    struct job *job = user;
    pthread_barrier_wait(job->start);
    tn_grad_begin(job->grad);
    for (int i = 0; i < ROUNDS && job->failure == NULL; i++) {
        job->n_out = call(job->module, job->subject, job->out[i]);
        if (job->n_out < 0)
            job->failure = strdup(tn_error_text());
    }
    tn_grad_end();
    return NULL;
}

static char *bytes_of(tn_tensor *tensor, size_t *size)
{
    *size = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    char *bytes = malloc(*size + 1);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, bytes, *size), TN_OK);
    return bytes;
}

static bool equal(tn_tensor *a, tn_tensor *b)
{
    size_t size_a, size_b;
    char *x = bytes_of(a, &size_a), *y = bytes_of(b, &size_b);
    bool same = size_a == size_b && memcmp(x, y, size_a) == 0;
    free(x);
    free(y);
    return same;
}

static void drop_all(tn_tensor **tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tn_tensor_drop(tensors[i]);
}

/* If the layer `draws` random numbers, the values are not compared with `expected`, because they
 * differ in each call. */
static void call_together(tn_module *module, const struct subject *s, bool grad,
                          tn_tensor *const *expected, int64_t n_expected, bool draws)
{
    struct job jobs[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .module = module, .subject = s, .start = &start, .grad = grad };
        ck_assert_int_eq(pthread_create(&jobs[i].thread, NULL, call_often, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(jobs[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_msg(jobs[i].failure == NULL, "%s: %s", spec, jobs[i].failure);
        ck_assert_msg(jobs[i].n_out == n_expected, "%s: %d results", spec, (int)jobs[i].n_out);
        for (int round = 0; round < ROUNDS; round++) {
            for (int64_t k = 0; k < n_expected; k++)
                ck_assert_msg(draws || equal(jobs[i].out[round][k], expected[k]),
                              "%s: result %d of thread %d, round %d: other values", spec, (int)k, i,
                              round);
            drop_all(jobs[i].out[round], n_expected);
        }
    }
    pthread_barrier_destroy(&start);
}

static int drew;

static void ask(const struct subject *s)
{
    TN_SCOPE;
    tn_tensor *first[RESULTS], *second[RESULTS];
    tn_module *alone, *shared;
    int64_t count;
    bool draws = false;
    if (s->n_in == 0)
        return;
    alone = tn_module_parse(spec);
    ck_assert_msg(alone != NULL, "%s: %s", spec, tn_error_text());
    ck_assert_int_eq(tn_module_to(alone, NULL, TN_F64), TN_OK);
    tn_module_eval(alone);
    count = call(alone, s, first);
    ck_assert_msg(count > 0, "%s: %s", spec, tn_error_text());
    ck_assert_msg(call(alone, s, second) == count, "%s: %s", spec, tn_error_text());
    for (int64_t i = 0; i < count; i++)
        draws |= !equal(first[i], second[i]);
    drew += draws;
    for (int grad = 0; grad < 2; grad++) {
        shared = tn_module_copy(alone); /* the threads are the first to call it */
        ck_assert_msg(shared != NULL, "%s: %s", spec, tn_error_text());
        call_together(shared, s, grad == 1, first, count, draws);
        tn_module_drop(shared);
    }
    drop_all(first, count);
    drop_all(second, count);
    tn_module_drop(alone);
}

START_TEST(every_layer_gives_each_thread_the_values_that_one_thread_gets)
{
    ck_assert_int_gt(each_layer(ask), 250);
    /* FractionalMaxPool2d and 3d draw their windows in eval mode, too. layers.txt has five of them;
     * two results can be equal by chance. */
    ck_assert_int_le(drew, 5);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_layer_gives_each_thread_the_values_that_one_thread_gets,
        NULL,
    };
    return suite_run("every layer, several threads", tests);
}
