/* SPDX-License-Identifier: MIT
 *
 * Several threads call one module, and each handles its own errors. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

enum { THREADS = 4, BATCHES = 32, ROWS = 8, IN = 16, OUT = 4 };

struct work {
    tn_module *net;
    int first, end; /* the batches of this thread */
    int width;      /* of an input */
    float (*results)[ROWS][OUT];
    tn_error error; /* why this thread ended early; code TN_OK: it did not */
};

static void predict(tn_module *net, int batch, int width, float *result)
{
    TN_SCOPE; /* all tensors of this batch end here */
    tn_tensor *x = tn_tensor_full(TN_SHAPE(ROWS, width), 0.1 * batch, TN_F32, NULL);
    tn_tensor *y = tn_module_call(net, x);

    if (y != NULL)
        tn_tensor_copy_out(y, result, sizeof(float[ROWS][OUT]));
}

static void *run(void *argument)
{
    struct work *work = argument;

    tn_grad_begin(false); /* a mode of this thread */
    for (int i = work->first; i < work->end && !tn_failed(); i++)
        predict(work->net, i, work->width, work->results[i][0]);
    tn_grad_end();
    tn_error_take(&work->error); /* the thread's errors end with it: keep the first */
    return NULL;
}

/* Runs all batches in `count` threads. Thread `faulty` gets inputs that do not fit. */
static void run_all(tn_module *net, int count, int faulty, float (*results)[ROWS][OUT])
{
    struct work work[THREADS];
    pthread_t threads[THREADS];
    int started = 0, number = 0;

    memset(work, 0, sizeof work);
    for (int i = 0; i < count; i++) {
        work[i].net = net;
        work[i].first = BATCHES * i / count;
        work[i].end = BATCHES * (i + 1) / count;
        work[i].width = i == faulty ? IN - 1 : IN;
        work[i].results = results;
    }
    while (started < count &&
           (number = pthread_create(&threads[started], NULL, run, &work[started])) == 0)
        started++;
    if (started < count)
        tn_fail(TN_ERR_RUNTIME, "pthread_create: thread %d did not start: %s", started,
                strerror(number));
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        if (work[i].error.code != TN_OK)
            printf("thread %d: %s\n", i, work[i].error.message);
    }
}

int main(void)
{
    static float one[BATCHES][ROWS][OUT], many[BATCHES][ROWS][OUT], rest[BATCHES][ROWS][OUT];
    tn_module *net = tn_module_new("Sequential(Linear(%d, 64), BatchNorm1d(64), GELU(), "
                                   "Dropout(0.5), Linear(64, %d))",
                                   IN, OUT);

    tn_module_eval(net); /* before the threads begin */
    if (!tn_failed()) {
        run_all(net, 1, -1, one);
        run_all(net, THREADS, -1, many);
        printf("%d threads: %s\n", THREADS,
               memcmp(one, many, sizeof one) == 0 ? "the same bits" : "other results");

        run_all(net, THREADS, 2, rest);
        printf("the others: %s\n",
               memcmp(one, rest, sizeof one / 2) == 0 &&
                       memcmp(one[BATCHES * 3 / 4], rest[BATCHES * 3 / 4], sizeof one / 4) == 0
                   ? "the same bits"
                   : "other results");
    }
    if (tn_failed())
        fprintf(stderr, "threads: %s\n", tn_error_text());
    tn_module_drop(net);
    return tn_failed();
}
