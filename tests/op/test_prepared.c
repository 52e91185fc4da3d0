/* SPDX-License-Identifier: MIT
 *
 * Prepared calls: a kernel that prepares, runs with other data, what is refused, and several
 * threads at the same time. Kernels are chosen by the dtypes of all operands, too. */
#include <pthread.h>
#include <stdatomic.h>

#include "core/op/internal.h"
#include "tests/op/toy_device.h"
#include "tests/op/suite.h"

/* ---- an operator of the test: y = x * w + shift, w a row --------------------------------------
 */

struct weigh_options {
    uint32_t size;
    uint32_t pad;
    double shift;
    const char *label;
    tn_ints places;
};
static const struct weigh_options defaults = { .size = sizeof defaults, .label = "" };
static const tn_option options[] = {
    TN_OPTION_FLOAT(struct weigh_options, shift, "0", "is added"),
    TN_OPTION_STRING(struct weigh_options, label, "''", "is ignored"),
    TN_OPTION_INTS(struct weigh_options, places, "()", "is ignored"), TN_OPTION_END
};

static tn_status weigh_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = x->ndim;
    for (int32_t d = 0; d < x->ndim; d++)
        infer->out[0].shape[d] = x->shape[d];
    return TN_OK;
}

static const tn_operand weigh_in[] = { { "x", 0, TN_MASK_FLOAT }, { "w", 0, TN_MASK_FLOAT } };
static const tn_operand weigh_out[] = { { "y", 0, 0 } };

/* What the kernel did. `packed` holds 2 w; run halves it, so that using w itself gives other
 * numbers. */
static struct {
    _Atomic int64_t prepared, released, run, with_data;
    bool fail, nothing;
    int64_t workspaces;
    uint64_t constant;
} seen;

struct packed {
    int64_t count;
    float twice[];
};

static size_t weigh_workspace(const tn_call *call)
{
    ck_assert_ptr_null(call->workspace);
    seen.workspaces++;
    return (size_t)toy_count(call->out[0]) * sizeof(float);
}

static tn_status weigh_prepare(const tn_call *call, tn_prepared_data *out)
{
    int64_t count = toy_count(call->in[1]);
    struct packed *packed;

    ck_assert_uint_eq(call->flags, TN_CALL_REPEATED);
    ck_assert_int_eq(out->head.kind, TN_KIND_tn_prepared_data);
    ck_assert_ptr_null(call->in[0]->data);
    ck_assert_ptr_null(call->out[0]->data);
    ck_assert_ptr_null(call->prepared);
    ck_assert_int_eq(toy_count(call->out[0]), toy_count(call->in[0]));
    if (seen.fail)
        return tn_fail(TN_ERR_MEMORY, "no memory for packed weights");
    seen.constant = call->constant;
    if (seen.nothing || (call->constant & 2) == 0)
        return TN_OK;
    packed = malloc(sizeof *packed + (size_t)count * sizeof(float));
    packed->count = count;
    for (int64_t i = 0; i < count; i++)
        packed->twice[i] = 2 * toy_floats(call->in[1])[i];
    out->data = packed;
    out->bytes = (uint64_t)count * sizeof(float);
    atomic_fetch_add(&seen.prepared, 1);
    return TN_OK;
}

static void weigh_release(const tn_kernel_def *kernel, void *data)
{
    ck_assert_str_eq(kernel->name, "weigh");
    atomic_fetch_add(&seen.released, 1);
    free(data);
}

static tn_status weigh_run(const tn_call *call)
{
    const struct weigh_options *o = call->options;
    const struct packed *packed = call->prepared;
    int64_t columns = toy_count(call->in[1]);

    ck_assert_ptr_nonnull(call->workspace);
    atomic_fetch_add(&seen.run, 1);
    atomic_fetch_add(&seen.with_data, packed != NULL);
    for (int64_t i = 0; i < toy_count(call->out[0]); i++) {
        float w = packed != NULL ? packed->twice[i % columns] / 2
                                 : toy_floats(call->in[1])[i % columns];

        toy_floats(call->out[0])[i] = toy_floats(call->in[0])[i] * w + (float)o->shift;
    }
    return TN_OK;
}

static const tn_op_def weigh = { TN_HEAD(tn_op_def),
                                 .name = "test_weigh",
                                 .math = "y = x w",
                                 .help = "",
                                 .revision = 1,
                                 .inputs = weigh_in,
                                 .outputs = weigh_out,
                                 .n_inputs = 2,
                                 .n_outputs = 1,
                                 .dispatch_input = 0,
                                 .options = options,
                                 .defaults = &defaults,
                                 .options_size = sizeof defaults,
                                 .infer = weigh_infer };
static const uint64_t weigh_dtypes[] = { TN_BIT(TN_F32), TN_BIT(TN_F32), 0 };
static const tn_kernel_def weigh_kernel = { TN_HEAD(tn_kernel_def),
                                            .op = "test_weigh",
                                            .device = "cpu",
                                            .name = "weigh",
                                            .revision = 1,
                                            .dtypes = TN_BIT(TN_F32),
                                            .workspace = weigh_workspace,
                                            .run = weigh_run,
                                            .prepare = weigh_prepare,
                                            .release = weigh_release,
                                            .inplace = 1,
                                            .operand_dtypes = weigh_dtypes };

static const tn_op *weigh_op(void)
{
    static bool registered;

    if (!registered) {
        ck_assert_int_eq(tn_register(&weigh), TN_OK);
        ck_assert_int_eq(tn_register(&weigh_kernel), TN_OK);
        registered = true;
    }
    seen.prepared = seen.released = seen.run = seen.with_data = seen.workspaces = 0;
    seen.fail = seen.nothing = false;
    return tn_op_find("test_weigh", 0);
}

static tn_tensor *run(tn_prepared *prepared, tn_tensor *x, tn_tensor *w)
{
    tn_tensor *in[] = { x, w }, *y = NULL;

    tn_prepared_run(prepared, in, 2, &y, 1);
    return y;
}

static tn_prepared *prepare(tn_tensor *x, tn_tensor *w, uint64_t constant)
{
    tn_tensor *in[] = { x, w };

    return tn_op_prepare(tn_op_find("test_weigh", 0), in, 2, NULL, constant);
}

static int64_t prepared_bytes(void)
{
    tn_memory_stats stats;

    ck_assert_int_eq(tn_device_memory(tn_device_find("cpu"), &stats), TN_OK);
    return stats.prepared;
}

START_TEST(a_kept_call_prepares_once_and_runs_with_other_data)
{
    TN_SCOPE;
    const tn_op *op = weigh_op();
    int64_t places[] = { 4, 5 };
    char label[] = "kept";
    struct weigh_options o = {
        .size = sizeof o, .shift = 1, .label = label, .places = { places, 2 }
    };
    tn_tensor *w = VEC(10, 100), *in[] = { VEC(1, 2), w }, *plain;
    tn_prepared *kept = tn_op_prepare(op, in, 2, &o, 2);

    ck_assert_msg(kept != NULL, "%s", tn_error_text());
    o.shift = 7; /* the options were copied */
    label[0] = '\0';
    ck_assert_str_eq(tn_prepared_kernel(kept)->name, "weigh");
    ck_assert_int_eq(prepared_bytes(), 8);
    ck_assert_uint_eq(seen.constant, 2);
    HAS(run(kept, VEC(1, 2), w), 11, 201);
    HAS(run(kept, VEC(3, 4), w), 31, 401);
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_eq(seen.with_data, 2);
    ck_assert_int_eq(seen.workspaces, 1);
    ck_assert_int_eq(tn_op_call(op, in, 2, NULL, &plain, 1), TN_OK);
    HAS(plain, 10, 200);
    ck_assert_int_eq(seen.with_data, 2); /* a plain call has no prepared data */
    tn_prepared_drop(kept);
    ck_assert_int_eq(seen.released, 1);
    ck_assert_int_eq(prepared_bytes(), 0);
    tn_prepared_drop(NULL);
}
END_TEST

START_TEST(a_constant_input_that_is_written_is_prepared_again)
{
    TN_SCOPE;
    tn_tensor *w = VEC(1, 2), *x = VEC(1, 1);
    tn_prepared *kept;

    weigh_op();
    kept = prepare(x, w, 2);
    HAS(run(kept, x, w), 1, 2);
    ck_assert_ptr_nonnull(tn_add_scalar_(w, 5));
    HAS(run(kept, x, w), 6, 7);
    HAS(run(kept, x, w), 6, 7);
    ck_assert_int_eq(seen.prepared, 2);
    ck_assert_int_eq(seen.released, 1);
    seen.fail = true;
    ck_assert_ptr_nonnull(tn_add_scalar_(w, 1));
    ck_assert_ptr_null(run(kept, x, w));
    FAILED(TN_ERR_MEMORY, "test_weigh: prepare of kernel weigh: no memory for packed weights");
    seen.fail = false;
    HAS(run(kept, x, w), 7, 8); /* the next run tries again */
    ck_assert_ptr_null(run(kept, x, VEC(7, 8)));
    FAILED(TN_ERR_VALUE, "w: another tensor than the constant one");
    tn_prepared_drop(kept);
    ck_assert_int_eq(seen.prepared, seen.released);
    ck_assert_int_eq(prepared_bytes(), 0);
}
END_TEST

START_TEST(a_kernel_may_have_nothing_to_prepare)
{
    TN_SCOPE;
    tn_tensor *w = VEC(1, 2);
    tn_prepared *kept;

    weigh_op();
    seen.nothing = true;
    kept = prepare(VEC(1, 1), w, 2);
    HAS(run(kept, VEC(5, 6), w), 5, 12);
    ck_assert_int_eq(seen.with_data, 0);
    tn_prepared_drop(kept);
    ck_assert_int_eq(seen.released, 0);
    seen.nothing = false;
    kept = prepare(VEC(1, 1), w, 0); /* no input is constant: other weights each time */
    HAS(run(kept, VEC(5, 6), VEC(2, 2)), 10, 12);
    tn_prepared_drop(kept);
}
END_TEST

START_TEST(inputs_of_another_kind_are_refused_with_words)
{
    TN_SCOPE;
    tn_tensor *w = VEC(1, 2), *x = VEC(1, 1), *in[] = { x, w, w }, *out[2];
    tn_prepared *kept;

    weigh_op();
    kept = prepare(x, w, 2);
    ck_assert_ptr_null(run(kept, VEC(1, 2, 3, 4), w));
    FAILED(TN_ERR_VALUE,
           "x is float32[4] on cpu:0 with strides [1]; the call was prepared for float32[2] "
           "on cpu:0 with strides [1]: prepare another call for it");
    ck_assert_ptr_null(run(kept, tn_cast(x, TN_F64), w));
    FAILED(TN_ERR_VALUE, "x is float64[2]");
    ck_assert_ptr_null(run(kept, tn_expand(VEC(1), TN_SHAPE(2)), w));
    FAILED(TN_ERR_VALUE, "with strides [0]");
    ck_assert_ptr_null(run(kept, TN_NONE, w));
    FAILED(TN_ERR_VALUE, "x: wrong input, got TN_NONE; expected a tensor");
    ck_assert_ptr_null(run(kept, NULL, w));
    tn_error_clear();
    ck_assert_int_eq(tn_prepared_run(kept, in, 3, out, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "inputs: wrong number, got 3; expected 2 (x, w)");
    ck_assert_int_eq(tn_prepared_run(kept, in, 2, out, 2), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "outputs: wrong number, got 2; expected 1");
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    ck_assert_ptr_null(run(kept, x, w));
    FAILED(TN_ERR_RUNTIME, "between tn_grad_begin(false) and tn_grad_end()");
    tn_grad_begin(false);
    HAS(run(kept, x, w), 1, 2);
    tn_grad_end();
    ck_assert_int_eq(tn_prepared_run(NULL, in, 2, out, 1), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_ptr_null(tn_prepared_kernel(NULL));
    tn_error_clear();
    tn_prepared_drop(kept);
}
END_TEST

START_TEST(calls_that_cannot_be_kept_are_refused_with_words)
{
    TN_SCOPE;
    const tn_op *op = weigh_op();
    tn_tensor *x = VEC(1, 2), *in[] = { x, VEC(1, 2) }, *leaf[] = { LEAF(1, 2), x };
    tn_tensor *mixed[] = { x, tn_tensor_from((const int64_t[]){ 1, 2 }, TN_I64, TN_SHAPE(2)) };

    ck_assert_ptr_null(tn_op_prepare(op, leaf, 2, NULL, 0));
    FAILED(TN_ERR_RUNTIME, " requires grad, and a prepared call records no gradient");
    ck_assert_ptr_null(tn_op_prepare(tn_op_find("add", 0), mixed, 2, NULL, 0));
    FAILED(TN_ERR_TYPE, "add: b: wrong dtype, got int64; expected float32, to which tn_op_call "
                        "casts it: a prepared call casts no inputs, call tn_cast first");
    ck_assert_ptr_null(tn_op_prepare(tn_op_find("permute", 0), in, 1, NULL, 0));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "it returns a view");
    ck_assert_ptr_null(tn_op_prepare(tn_op_find("square", 0), in, 2, NULL, 0));
    FAILED(TN_ERR_VALUE, "inputs: wrong number");
    ck_assert_ptr_null(tn_op_prepare(NULL, in, 2, NULL, 0));
    tn_error_clear();
    seen.fail = true;
    ck_assert_ptr_null(tn_op_prepare(op, in, 2, NULL, 2));
    FAILED(TN_ERR_MEMORY, "prepare of kernel weigh");
}
END_TEST

/* ---- in place, into tensors that exist --------------------------------------------------------
 */

START_TEST(a_kept_call_writes_into_tensors_that_exist)
{
    TN_SCOPE;
    tn_tensor *w = VEC(2, 3), *x = VEC(1, 2), *y = VEC(0, 0), *in[] = { x, w };
    tn_prepared *kept;

    weigh_op();
    kept = prepare(x, w, 2);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &y, 1), TN_OK);
    HAS(y, 2, 6);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &x, 1),
                     TN_OK); /* the kernel's inplace mask */
    HAS(x, 2, 6);
    ck_assert_uint_eq(tn_tensor_version(x), 1);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &w, 1), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "y shares memory with input 1, and kernel weigh cannot compute in place");
    y = VEC(1, 2, 3);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &y, 1), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE,
           "y: wrong tensor, got float32[3] on cpu:0; expected a contiguous float32[2]");
    y = LEAF(1, 2);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &y, 1), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "y requires grad");
    tn_prepared_drop(kept);
}
END_TEST

/* ---- operators of the tree --------------------------------------------------------------------
 */

START_TEST(operators_of_the_tree_can_be_kept)
{
    TN_SCOPE;
    tn_tensor *a = tn_reshape(VEC(1, 2, 3, 4), TN_SHAPE(1, 2, 2)),
              *b = tn_reshape(VEC(1, 0, 0, 1), TN_SHAPE(1, 2, 2)), *in[] = { a, b }, *y;
    tn_prepared *kept = tn_op_prepare(tn_op_find("bmm", 0), in, 2, NULL, 0);

    ck_assert_msg(kept != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_prepared_run(kept, in, 2, &y, 1), TN_OK);
    HAS(y, 1, 2, 3, 4);
    in[1] = a;
    ck_assert_int_eq(tn_prepared_run(kept, in, 2, &y, 1), TN_OK);
    HAS(y, 7, 10, 15, 22);
    tn_prepared_drop(kept);
    in[0] = VEC(0, 3, 0, 4);
    kept = tn_op_prepare(tn_op_find("nonzero", 0), in, 1, NULL,
                         0); /* the kernel makes its output */
    ck_assert_msg(kept != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_prepared_run(kept, in, 1, &y, 1), TN_OK);
    HAS(y, 1, 3);
    in[0] = VEC(1, 0, 0, 0);
    ck_assert_int_eq(tn_prepared_run(kept, in, 1, &y, 1), TN_OK);
    HAS(y, 0);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 1, &y, 1), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "depends on values");
    tn_prepared_drop(kept);
}
END_TEST

/* ---- dtypes of all operands -------------------------------------------------------------------
 */

START_TEST(kernels_are_chosen_by_the_dtypes_of_all_operands)
{
    TN_SCOPE;
    const tn_op *op = weigh_op();
    tn_tensor *in[] = { VEC(1, 2), tn_cast(VEC(1, 2), TN_F64) }, *y;

    ck_assert_int_eq(tn_op_call(op, in, 2, NULL, &y, 1), TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "refused: weigh: w is float64; expected float32");
    ck_assert_int_eq(seen.run, 0);
    ck_assert_ptr_null(tn_op_prepare(op, in, 2, NULL, 0));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "refused: weigh: w is float64; expected float32");
}
END_TEST

/* ---- memory ---- */

static void keep_and_run(const tn_op *op, tn_tensor *const *in)
{
    struct weigh_options o = { .size = sizeof o, .shift = 1, .label = "text" };
    tn_prepared *kept = tn_op_prepare(op, in, 2, &o, 2);
    tn_tensor *y;

    if (kept != NULL && tn_prepared_run(kept, in, 2, &y, 1) == TN_OK &&
        tn_tensor_touch(in[1]) == TN_OK)
        (void)tn_prepared_run(kept, in, 2, &y, 1);
    tn_prepared_drop(kept);
}

START_TEST(each_allocation_fails_in_turn_law_4)
{
    TN_SCOPE;
    const tn_op *op = weigh_op();
    tn_tensor *in[] = { VEC(1, 2), VEC(3, 4) };
    int64_t failures = 0;
    bool reached = true;

    keep_and_run(op, in);
    FINE();
    for (uint64_t n = 1; reached; n++) {
        TN_SCOPE;
        ck_assert_uint_lt(n, 1000);
        tn__memory_fail(n);
        keep_and_run(op, in);
        reached = tn__memory_fail(0) >= n;
        ck_assert(!tn_failed() || tn_error_code() == TN_ERR_MEMORY);
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(seen.prepared, seen.released);
        ck_assert_int_eq(prepared_bytes(), 0);
    }
    ck_assert_int_ge(failures, 3);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------
 */

enum { THREADS = 4, RUNS = 200 };

struct worker {
    tn_prepared *kept;
    tn_tensor *w;
    int number;
    bool wrong;
};

static void *works(void *user)
{
    struct worker *worker = user;

    for (int i = 0; i < RUNS; i++) {
        TN_SCOPE;
        float x = (float)(worker->number * RUNS + i), got[2];
        tn_tensor *y = run(worker->kept, VEC(x, x + 1), worker->w);

        worker->wrong |= y == NULL || tn_tensor_copy_out(y, got, sizeof got) != TN_OK ||
                         got[0] != 3 * x || got[1] != 5 * (x + 1);
    }
    return NULL;
}

START_TEST(several_threads_run_one_kept_call)
{
    TN_SCOPE;
    tn_tensor *w = VEC(3, 5);
    struct worker workers[THREADS];
    pthread_t thread[THREADS];
    tn_prepared *kept;

    weigh_op();
    kept = prepare(VEC(0, 0), w, 2);
    ck_assert_int_eq(tn_tensor_touch(w), TN_OK); /* the call must be prepared again */
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ kept, w, i, false };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, works, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert(!workers[i].wrong);
    }
    ck_assert_int_eq(seen.prepared, 2);
    ck_assert_int_eq(seen.run, THREADS * RUNS);
    tn_prepared_drop(kept);
    ck_assert_int_eq(seen.released, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prepared");
    TCase *tests = tcase_create("prepared");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_kept_call_prepares_once_and_runs_with_other_data);
    tcase_add_test(tests, a_constant_input_that_is_written_is_prepared_again);
    tcase_add_test(tests, a_kernel_may_have_nothing_to_prepare);
    tcase_add_test(tests, inputs_of_another_kind_are_refused_with_words);
    tcase_add_test(tests, calls_that_cannot_be_kept_are_refused_with_words);
    tcase_add_test(tests, a_kept_call_writes_into_tensors_that_exist);
    tcase_add_test(tests, operators_of_the_tree_can_be_kept);
    tcase_add_test(tests, kernels_are_chosen_by_the_dtypes_of_all_operands);
    tcase_add_test(tests, each_allocation_fails_in_turn_law_4);
    tcase_add_test(tests, several_threads_run_one_kept_call);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
