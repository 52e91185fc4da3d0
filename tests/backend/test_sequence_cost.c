/* SPDX-License-Identifier: MIT
 *
 * The cost of operators that process a sequence step by step must be proportional to its length,
 * also in backward. The cost is the number of bytes allocated and, on the fake driver, the number
 * of kernels and their work items. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "tests/backend/backend.h"
#include "tests/fake-cuda/fake.h"

enum { LENGTH = 96, BATCH = 4, SIZE = 8 };

static _Atomic int64_t taken;

static void count(void *user, const tn_memory_event *event)
{
    (void)user;
    if (event->bytes > 0)
        atomic_fetch_add(&taken, event->bytes);
}

static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "bytes",
                                          .memory = count };

/* The counters of the fake driver, if it drives the device; NULL otherwise. */
static const struct fake_cuda *fake_of(const tn_device *device)
{
    void *handle = dlopen(getenv("TENON_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return handle != NULL && strcmp(tn_device_type(device), "cuda") == 0
               ? dlsym(handle, "fake_cuda")
               : NULL;
}

static tn_tensor *leaf(const tn_device *device, tn_ints shape)
{
    double *values = room(count_of(shape));
    numbers(values, count_of(shape), -1, 1, TN_F32);
    tn_tensor *x = put(device, TN_F32, shape, values, DENSE);
    ok(tn_tensor_set_requires_grad(x, true));
    return x;
}

static tn_tensor *indices(const tn_device *device, int64_t size, int64_t value)
{
    double *values = room(size);
    for (int64_t i = 0; i < size; i++)
        values[i] = (double)value;
    return put(device, TN_I64, TN_SHAPE(size), values, DENSE);
}

/* ---- what is measured: each returns a number that depends on all steps ----------------------- */

static tn_tensor *all_of(tn_tensor *sum, tn_tensor *more)
{
    return sum != NULL ? tn_add(sum, more) : more;
}

static tn_tensor *recurrent(const tn_device *device, int64_t length, char kind, bool lengths)
{
    int64_t rows = (kind == 'l' ? 4 : kind == 'g' ? 3 : 1) * SIZE;
    tn_tensor *x = leaf(device, TN_SHAPE(length, BATCH, SIZE)),
              *h = leaf(device, TN_SHAPE(BATCH, SIZE)), *w = leaf(device, TN_SHAPE(rows, SIZE)),
              *u = leaf(device, TN_SHAPE(rows, SIZE)), *b = leaf(device, TN_SHAPE(rows)),
              *ends = lengths ? indices(device, BATCH, length) : TN_NONE, *y = NULL, *last, *c;
    if (kind == 'l')
        tn_lstm_sequence(x, h, h, w, u, b, b, TN_NONE, ends, &y, &last, &c);
    else if (kind == 'g')
        tn_gru_sequence(x, h, w, u, b, b, ends, &y, &last);
    else
        tn_rnn_sequence(x, h, w, u, b, b, ends, &y, &last);
    return tn_sum(y);
}

static tn_tensor *lstm(const tn_device *device, int64_t length)
{
    return recurrent(device, length, 'l', false);
}

static tn_tensor *lstm_with_lengths(const tn_device *device, int64_t length)
{
    return recurrent(device, length, 'l', true);
}

static tn_tensor *gru(const tn_device *device, int64_t length)
{
    return recurrent(device, length, 'g', false);
}

static tn_tensor *rnn(const tn_device *device, int64_t length)
{
    return recurrent(device, length, 'r', false);
}

static tn_tensor *ctc(const tn_device *device, int64_t length)
{
    tn_tensor *x = tn_log_softmax(leaf(device, TN_SHAPE(length, BATCH, SIZE)), -1);
    tn_tensor *target = tn_reshape(indices(device, BATCH * 3, 1), TN_SHAPE(BATCH, 3));
    return tn_ctc_loss(x, target, indices(device, BATCH, length), indices(device, BATCH, 3));
}

static tn_tensor *select_each(const tn_device *device, int64_t length)
{
    tn_tensor *x = leaf(device, TN_SHAPE(length, 64 * SIZE)), *y = NULL;
    for (int64_t t = 0; t < length; t++)
        y = all_of(y, tn_tanh(tn_select(x, 0, t)));
    return tn_sum(y);
}

static tn_tensor *slice_each(const tn_device *device, int64_t length)
{
    tn_tensor *x = leaf(device, TN_SHAPE(64 * SIZE, length + 2)), *y = NULL;
    tn_slice_options window = TN_SLICE_OPTIONS;
    for (int64_t t = 0; t < length; t++) {
        window.start = t;
        window.end = t + 3;
        window.step = 1 + t % 2;
        y = all_of(y, tn_sum(tn_tanh(tn_slice(x, 1, window.start, window.end, window.step))));
    }
    return y;
}

static tn_tensor *gather_each(const tn_device *device, int64_t length)
{
    tn_tensor *x = leaf(device, TN_SHAPE(length, 64 * SIZE)), *y = NULL;
    for (int64_t t = 0; t < length; t++)
        y = all_of(y, tn_tanh(tn_index_select(x, indices(device, 1, t), 0)));
    return tn_sum(y);
}

static tn_tensor *embed_each(const tn_device *device, int64_t length)
{
    tn_tensor *table = leaf(device, TN_SHAPE(length, 64 * SIZE)), *y = NULL;
    for (int64_t t = 0; t < length; t++)
        y = all_of(y, tn_tanh(tn_embedding(table, indices(device, 2, t))));
    return tn_sum(y);
}

/* ---- the measure ----------------------------------------------------------------------------- */

struct cost {
    double bytes, launches, items;
};

static struct cost cost_of(const tn_device *device, int64_t length,
                           tn_tensor *(*what)(const tn_device *, int64_t))
{
    TN_SCOPE;
    const struct fake_cuda *fake = fake_of(device);
    tn_tensor *loss = what(device, length);
    there(loss);
    int64_t bytes = taken, launches = fake ? fake->launches : 0, items = fake ? fake->items : 0;
    ok(tn_backward(loss));
    return (struct cost){ (double)(taken - bytes), fake ? (double)(fake->launches - launches) : 0,
                          fake ? (double)(fake->items - items) : 0 };
}

static const struct {
    const char *name;
    tn_tensor *(*what)(const tn_device *device, int64_t length);
} subjects[] = {
    { "lstm_sequence", lstm },
    { "lstm_sequence with lengths", lstm_with_lengths },
    { "gru_sequence", gru },
    { "rnn_sequence", rnn },
    { "ctc_loss", ctc },
    { "select in a loop", select_each },
    { "slice in a loop", slice_each },
    { "index_select in a loop", gather_each },
    { "embedding in a loop", embed_each },
};

START_TEST(twice_the_length_costs_twice_as_much_to_go_back_through)
{
    ok(tn_register(&observer));
    EACH_DEVICE(device)
    {
        if (strcmp(tn_device_type(device), "opencl") == 0)
            continue; /* the same kernels as cuda, and minutes of compiling */
        for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
            const char *name = tn_device_name(device);
            cost_of(device, 4, subjects[i].what); /* what is made once */
            struct cost one = cost_of(device, LENGTH, subjects[i].what),
                        two = cost_of(device, 2 * LENGTH, subjects[i].what);
            if (getenv("TN_TEST_NUMBERS"))
                printf("%-26s %-8s %.0f to %.0f bytes, %.0f to %.0f launches of %.0f to %.0f\n",
                       subjects[i].name, name, one.bytes, two.bytes, one.launches, two.launches,
                       one.items, two.items);
            ck_assert_msg(one.bytes > 0, "%s on %s took no memory", subjects[i].name, name);
            ck_assert_msg(two.bytes <= 2.1 * one.bytes, "%s on %s: %g bytes, then %g",
                          subjects[i].name, name, one.bytes, two.bytes);
            ck_assert_msg(two.launches <= 2.1 * one.launches, "%s on %s: %g launches, then %g",
                          subjects[i].name, name, one.launches, two.launches);
            ck_assert_msg(two.items <= 2.1 * one.items, "%s on %s: %g work items, then %g",
                          subjects[i].name, name, one.items, two.items);
        }
    }
}
END_TEST

RUN_SUITE("lengths", twice_the_length_costs_twice_as_much_to_go_back_through)
